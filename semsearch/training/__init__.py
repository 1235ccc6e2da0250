"""Training of bi- and cross-encoders on one's own data. Importing it imports no torch."""

from semsearch.training.contrast import Contrast
from semsearch.training.cross_encoder import CrossEncoding
from semsearch.training.lessons import Course
from semsearch.training.recipe import Loss, Recipe
from semsearch.training.run import Trained, train
from semsearch.training.siamese import Siamese
from semsearch.training.translation import Translation

__all__ = [
    "Contrast",
    "Course",
    "CrossEncoding",
    "Loss",
    "Recipe",
    "Siamese",
    "Trained",
    "Translation",
    "train",
]
