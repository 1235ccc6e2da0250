"""Training of bi-encoders, cross-encoders and BERT. Importing it does not import torch."""

from semsearch.training.adapt import Adaptation
from semsearch.training.distill import Distillation
from semsearch.training.encoder import Contrast, Siamese
from semsearch.training.pretrain import Pretraining
from semsearch.training.reranker import CrossEncoding, Reranking
from semsearch.training.run import Task, Trained, train
from semsearch.training.stages import Loss, Recipe, Settings
from semsearch.training.translate import Translation

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
