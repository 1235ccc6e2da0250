"""Losses for bi-encoders, and the learning rates of their parts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy
import torch
from sentence_transformers.base.losses.merged_forward import embed_columns
from sentence_transformers.sentence_transformer import losses

from semsearch.errors import ArgumentError
from semsearch.training.examples import Examples
from semsearch.training.measures import ENCODED_AT_ONCE, Vectors, gold_of
from semsearch.training.stages import Loss, Recipe

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

#: Transformers embed larger batches in parts, with gradient caching (Gao et al. 2021), so that
#: memory use does not grow with the batch size.
CACHED_FROM = 128
CACHED_PART = 64

#: The names of layers in BERT, ModernBERT and T5, whose blocks consist of layers.
LAYER = re.compile(r"\.(layer|layers|block)\.(\d+)\.")
EMBEDDINGS = r"\.(embeddings|embed_tokens|shared)\."

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
    """The loss of a recipe, with a randomly initialised head if it has one.

    Of a model that truncates its vectors, only the dimensions that it keeps are trained.

    Raises:
        ArgumentError: the recipe's dimensions exceed the model's.
        ArgumentError: the softmax loss, whose head takes vectors of one width, is to be trained
            on shortened ones.
    """
    full = model.get_embedding_dimension()
    if recipe.dimensions and max(recipe.dimensions) > full:
        raise ArgumentError(f"the model has {full} dimensions, not {max(recipe.dimensions)}")
    if loss is Loss.SOFTMAX and (recipe.dimensions or model.truncate_dim):
        raise ArgumentError("the softmax loss does not support --dimensions or truncated models")
    chosen: torch.nn.Module = _full_width_loss(model, loss, examples, recipe)
    if recipe.dimensions or model.truncate_dim:
        chosen = losses.MatryoshkaLoss(model, chosen, sorted({full, *recipe.dimensions}))
    return chosen


def embed_together(loss: torch.nn.Module) -> None:
    """Make a loss embed all columns in one pass; sentence-transformers embeds the first separately.

    One pass is faster if the columns are of similar length, as all are padded to the longest text.
    """
    inner: Any = loss.loss if isinstance(loss, losses.MatryoshkaLoss) else loss
    if not hasattr(inner, "compute_loss_from_embeddings"):
        return

    def forward(features: Features, labels: torch.Tensor | None) -> torch.Tensor:
        embeddings = embed_columns(inner.model, features, separate_first=False)
        found: torch.Tensor = inner.compute_loss_from_embeddings(embeddings, labels)
        return found

    inner.forward = forward


def _full_width_loss(
    model: SentenceTransformer, loss: Loss, examples: Examples, recipe: Recipe
) -> Any:
    match loss:
        case Loss.SOFTMAX:
            width = model.get_embedding_dimension()
            return losses.SoftmaxLoss(model, width, len(examples.labels))
        case Loss.CONTRASTIVE:
            return losses.ContrastiveLoss(model)
        case Loss.COSINE:
            return losses.CosineSimilarityLoss(model)
        case Loss.COSENT:
            return losses.CoSENTLoss(model)
        case Loss.RANKING if recipe.batch_size > CACHED_FROM and model.transformers_model:
            return losses.CachedMultipleNegativesRankingLoss(model, mini_batch_size=CACHED_PART)
        case Loss.RANKING:
            return losses.MultipleNegativesRankingLoss(model)
        case Loss.TRIPLET:
            euclidean = losses.TripletDistanceMetric.EUCLIDEAN
            return losses.TripletLoss(model, euclidean, recipe.margin)


def learning_rates(module: torch.nn.Module, recipe: Recipe) -> dict[str, float]:
    """Learning rates of the parameters that do not have the default one, by name pattern.

    With a decay of d, the last of n layers has d times the full rate, the first d ** n times, the
    embeddings d ** (n + 1) times; the head of a cross-encoder has the full rate.

    Raises:
        ArgumentError: a decay is given, but the model's layers or embeddings are not found.
    """
    names = [name for name, _ in module.named_parameters()]
    rates = {}
    if any(name.startswith("classifier.") for name in names):
        rates[r"^classifier\."] = recipe.head_learning_rate
    if recipe.embedding_learning_rate is not None:
        rates[r"\.word_embeddings\."] = recipe.embedding_learning_rate
    if recipe.layer_decay == 1:
        return rates
    found = [match for name in names if (match := LAYER.search(name))]
    if not found or not any(re.search(EMBEDDINGS, name) for name in names):
        raise ArgumentError("layer_decay does not support this model; leave it out")
    word, layers = found[0][1], 1 + max(int(match[2]) for match in found)
    rate, decay = recipe.learning_rate, recipe.layer_decay
    rates |= {rf"\.{word}\.{n}\.": rate * decay ** (layers - n) for n in range(layers)}
    return rates | {EMBEDDINGS: rate * decay ** (layers + 1)}
