"""Training of bi-encoders, cross-encoders and BERT. Importing it does not import torch."""

from semsearch.training.adaptation import Adaptation
from semsearch.training.contrast import Contrast
from semsearch.training.cross_encoder import CrossEncoding
from semsearch.training.distillation import Distillation
from semsearch.training.pretraining import Pretraining
from semsearch.training.recipe import Loss, Recipe
from semsearch.training.reranking import Reranking
from semsearch.training.run import Trained, train
from semsearch.training.siamese import Siamese
from semsearch.training.stages import Settings
from semsearch.training.task import Task
from semsearch.training.translation import Translation

__all__ = [
    "Adaptation",
    "Contrast",
    "CrossEncoding",
    "Distillation",
    "Loss",
    "Pretraining",
    "Recipe",
    "Reranking",
    "Settings",
    "Siamese",
    "Task",
    "Trained",
    "Translation",
    "train",
]
