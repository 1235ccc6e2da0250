"""The losses of a bi-encoder: one pass of the model for all columns of a batch, then the loss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy
import torch
from numpy.typing import NDArray
from sentence_transformers.base.losses.merged_forward import embed_columns
from sentence_transformers.sentence_transformer import losses

from semsearch.errors import ArgumentError, CombinationError
from semsearch.training.examples import Examples
from semsearch.training.recipe import Loss, Recipe
from semsearch.training.scoring import Vectors

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

#: Batches above this are embedded in parts, by gradient caching (Gao et al. 2021), so that memory
#: does not grow with them.
CACHED_FROM = 128
CACHED_PART = 64

Features = Sequence[dict[str, torch.Tensor]]


class SoftmaxHead(torch.nn.Module):
    """softmax(W (u, v, |u - v|)), Reimers & Gurevych 2019, section 3."""

    def __init__(self, dimension: int, labels: int) -> None:
        super().__init__()
        self.classifier = torch.nn.Linear(3 * dimension, labels)

    def logits(self, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        """Shape (n, labels), from two of shape (n, dimension)."""
        features = torch.cat([left, right, (left - right).abs()], dim=1)
        logits: torch.Tensor = self.classifier(features.to(self.classifier.weight.dtype))
        return logits

    def classes(self, left: Vectors, right: Vectors) -> NDArray[numpy.int64]:
        """The most probable class of each pair, from two of shape (n, dimension)."""
        device = self.classifier.weight.device
        with torch.no_grad():
            logits = self.logits(*(torch.from_numpy(side).to(device) for side in (left, right)))
        found: NDArray[numpy.int64] = logits.argmax(dim=1).cpu().numpy()
        return found

    def compute_loss_from_embeddings(
        self, embeddings: Sequence[torch.Tensor], labels: torch.Tensor
    ) -> torch.Tensor:
        """The cross-entropy of the labels."""
        left, right = embeddings
        return torch.nn.functional.cross_entropy(self.logits(left, right), labels.view(-1))


class EmbeddingLoss(torch.nn.Module):
    """A loss over what the model makes of all columns, embedded in one pass.

    sentence-transformers embeds the first column apart, because it may be much shorter; our
    batches are of like length, and one pass converts the weights to bf16 once instead of twice.
    """

    def __init__(self, model: SentenceTransformer, head: Any) -> None:
        super().__init__()
        self.model = model
        self.head = head

    def forward(self, features: Features, labels: torch.Tensor | None) -> torch.Tensor:
        """The mean loss of a batch."""
        embeddings = embed_columns(self.model, features, separate_first=False)
        embeddings = [embedding.float() for embedding in embeddings]
        loss: torch.Tensor = self.head.compute_loss_from_embeddings(embeddings, labels)
        return loss


class TeacherLoss(torch.nn.Module):
    """1 - cosine to the vector that a teacher gives (Reimers & Gurevych 2020).

    Args:
        model: the student.
        wanted: the teacher's vectors, shape (n, dimension); labels name a row of them.
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
        return 1 - torch.nn.functional.cosine_similarity(vectors, goal).mean()


def embedding_loss(
    model: SentenceTransformer, loss: Loss, examples: Examples, recipe: Recipe
) -> torch.nn.Module:
    """The loss, with a head of random weights where it has one.

    Raises:
        ArgumentError: the recipe's dimensions are more than the model has, or the loss is softmax,
            whose head takes vectors of one width.
    """
    full = model.get_embedding_dimension()
    if recipe.dimensions and max(recipe.dimensions) > full:
        raise ArgumentError(f"the model has {full} dimensions, not {max(recipe.dimensions)}")
    if recipe.dimensions and loss is Loss.SOFTMAX:
        raise CombinationError("the softmax loss has no shorter dimensions; use another --loss")
    chosen: torch.nn.Module = _full_width_loss(model, loss, examples, recipe)
    if recipe.dimensions:
        chosen = losses.MatryoshkaLoss(model, chosen, sorted({full, *recipe.dimensions}))
    return chosen


def _full_width_loss(
    model: SentenceTransformer, loss: Loss, examples: Examples, recipe: Recipe
) -> Any:
    if loss is Loss.RANKING and recipe.batch_size > CACHED_FROM:
        return losses.CachedMultipleNegativesRankingLoss(model, mini_batch_size=CACHED_PART)
    head: Any
    match loss:
        case Loss.SOFTMAX:
            head = SoftmaxHead(model.get_embedding_dimension(), len(examples.labels))
        case Loss.COSINE:
            head = losses.CosineSimilarityLoss(model)
        case Loss.COSENT:
            head = losses.CoSENTLoss(model)
        case Loss.RANKING:
            head = losses.MultipleNegativesRankingLoss(model)
        case Loss.TRIPLET:
            head = losses.TripletLoss(
                model,
                distance_metric=losses.TripletDistanceMetric.EUCLIDEAN,
                triplet_margin=recipe.margin,
            )
    return EmbeddingLoss(model, head.to(model.device))
