"""Losses for bi-encoders, and the learning rates of their parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy
import torch
from sentence_transformers.base.losses.merged_forward import embed_columns
from sentence_transformers.sentence_transformer import losses

from semsearch.training.examples import Examples
from semsearch.training.measures import ENCODED_AT_ONCE, Vectors, gold_of
from semsearch.training.stages import Loss, Recipe

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

#: Transformers embed larger batches in parts, with gradient caching (Gao et al. 2021), so that
#: memory use does not grow with the batch size.
CACHED_FROM = 128
CACHED_PART = 64

Features = Sequence[dict[str, torch.Tensor]]


def classifier_accuracy(model: SentenceTransformer, loss: Any, examples: Examples) -> float:
    """How often the classifier of the softmax loss is right, in %."""
    u, v = (
        model.encode(
            column,
            batch_size=ENCODED_AT_ONCE,
            show_progress_bar=False,
            convert_to_tensor=True,
        )
        for column in examples.texts
    )
    with torch.no_grad():
        logits = loss.classifier(torch.cat([u, v, (u - v).abs()], dim=1))
    return 100 * float(numpy.mean(logits.argmax(dim=1).cpu().numpy() == gold_of(examples)))


class TeacherLoss(torch.nn.Module):
    """1 - cosine to the teacher's vector (Reimers & Gurevych 2020).

    Args:
        model: the student.
        wanted: the teacher's vectors, shape (n, dimension); labels are their row numbers.
    """

    wanted: torch.Tensor

    def __init__(self, model: SentenceTransformer, wanted: Vectors) -> None:
        super().__init__()
        self.model = model
        self.register_buffer("wanted", torch.from_numpy(wanted), persistent=False)

    def forward(self, features: Features, labels: torch.Tensor) -> torch.Tensor:
        """The mean loss of a batch."""
        (texts,) = features
        vectors = self.model(texts)["sentence_embedding"].float()
        goal = self.wanted[labels.view(-1)]
        vectors = vectors[:, : goal.shape[1]]  # the model may truncate them only in `encode`
        return 1 - torch.nn.functional.cosine_similarity(vectors, goal).mean()


def embedding_loss(
    model: SentenceTransformer, loss: Loss, examples: Examples, recipe: Recipe
) -> torch.nn.Module:
    """The loss of a recipe, with a randomly initialised head if it has one."""
    found: Any
    match loss:
        case Loss.SOFTMAX:
            width = model.get_embedding_dimension()
            found = losses.SoftmaxLoss(model, width, len(examples.labels))
        case Loss.CONTRASTIVE:
            found = losses.ContrastiveLoss(model)
        case Loss.COSINE:
            found = losses.CosineSimilarityLoss(model)
        case Loss.COSENT:
            found = losses.CoSENTLoss(model)
        case Loss.RANKING if recipe.batch_size > CACHED_FROM and model.transformers_model:
            found = losses.CachedMultipleNegativesRankingLoss(model, mini_batch_size=CACHED_PART)
        case Loss.RANKING:
            found = losses.MultipleNegativesRankingLoss(model)
        case Loss.TRIPLET:
            euclidean = losses.TripletDistanceMetric.EUCLIDEAN
            found = losses.TripletLoss(model, euclidean, recipe.margin)
    return found  # type: ignore[no-any-return]


def embed_together(loss: Any) -> None:
    """Make a loss embed all columns in one pass; sentence-transformers embeds the first separately.

    One pass is faster if the columns are of similar length, as all are padded to the longest text.
    """
    if not hasattr(loss, "compute_loss_from_embeddings"):
        return

    def forward(features: Features, labels: torch.Tensor | None) -> torch.Tensor:
        embeddings = embed_columns(loss.model, features, separate_first=False)
        found: torch.Tensor = loss.compute_loss_from_embeddings(embeddings, labels)
        return found

    loss.forward = forward


def learning_rates(module: torch.nn.Module, recipe: Recipe) -> dict[str, float]:
    """Learning rates of the parameters that do not have the default one, by name pattern."""
    rates = {}
    if hasattr(module, "classifier"):
        rates[r"^classifier\."] = recipe.head_learning_rate
    if recipe.embedding_learning_rate is not None:
        rates[r"\.word_embeddings\."] = recipe.embedding_learning_rate
    return rates
