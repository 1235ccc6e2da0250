"""Scores of models on sets of examples; higher is better."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy
from numpy.typing import NDArray

from semsearch.evaluation.statistics import spearman
from semsearch.training.examples import Examples, Kind

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder, SentenceTransformer

ENCODED_AT_ONCE = 64
#: How many anchors are compared with all positives at once.
COMPARED_AT_ONCE = 1024

#: The measure for each kind of examples.
MEASURES = {
    Kind.SCORED: "Spearman x 100",
    Kind.LABELLED: "accuracy, %",
    Kind.POSITIVE: "positive text ranked first, %",
    Kind.TRIPLETS: "positive text nearer, %",
    Kind.TRANSLATIONS: "cosine to the teacher's vector x 100",
    Kind.TEXTS: "cosine to the teacher's vector x 100",
    Kind.DOCUMENTS: "minus the loss",
}

Vectors = NDArray[numpy.float32]
#: The class of each pair, from the vectors of both texts.
Classify = Callable[[Vectors, Vectors], NDArray[numpy.int64]]


class Measured(NamedTuple):
    """A score, with its data and measure."""

    data: str
    measure: str
    score: float
    before: float | None = None  #: of the base model, if it has the same task
    dimension: int | None = None  #: of shortened vectors


def score_siamese(
    model: SentenceTransformer,
    examples: Examples,
    classify: Classify | None = None,
    dimension: int | None = None,
) -> float:
    """The score of a bi-encoder, from 0 to 100 (Spearman's from -100).

    Texts are encoded without the model's prompts for queries and documents.

    Args:
        model: the bi-encoder.
        examples: of any kind; labelled ones only with `classify`.
        classify: returns the classes, from the vectors of both texts.
        dimension: how many leading dimensions of the vectors are compared; None for all.
    """
    columns = columns_of(
        lambda texts: model.encode(
            texts,
            batch_size=ENCODED_AT_ONCE,
            normalize_embeddings=classify is None,
            truncate_dim=dimension,
            show_progress_bar=False,
        ),
        examples,
    )
    if examples.kind is Kind.LABELLED and classify is not None:
        return _accuracy(classify(columns[0], columns[1]), examples.targets)
    return score_columns(columns, examples)


def columns_of(encode: Callable[[list[str]], Vectors], examples: Examples) -> list[Vectors]:
    """The vectors of each column of texts; each distinct text is encoded once."""
    distinct = list(dict.fromkeys(text for column in examples.texts for text in column))
    place = {text: row for row, text in enumerate(distinct)}
    vectors = numpy.asarray(encode(distinct), numpy.float32)
    return [vectors[[place[text] for text in column]] for column in examples.texts]


def score_columns(columns: Sequence[Vectors], examples: Examples) -> float:
    """The score of unit vectors on examples that need no head, from 0 to 100.

    Args:
        columns: the vectors of each column of texts, shape (n, dimension).
        examples: the examples with these texts.
    """
    if examples.kind is Kind.TRIPLETS:
        anchor, positive, negative = columns
        nearer = (anchor * positive).sum(axis=1) > (anchor * negative).sum(axis=1)
        return 100 * float(nearer.mean())
    if examples.kind is Kind.POSITIVE:
        return _first_places(examples, columns[0], columns[1])
    return _spearman((columns[0] * columns[1]).sum(axis=1), examples.targets)


def score_cross_encoder(model: CrossEncoder, examples: Examples) -> float:
    """The score of a cross-encoder on scored or labelled pairs, from 0 to 100."""
    import torch

    pairs = [list(pair) for pair in zip(*examples.texts, strict=True)]
    logits = numpy.asarray(
        model.predict(
            pairs,
            batch_size=ENCODED_AT_ONCE,
            show_progress_bar=False,
            activation_fn=torch.nn.Identity(),
        )
    )
    if examples.kind is Kind.SCORED:
        return _spearman(logits, examples.targets)
    if logits.ndim == 1:
        return _accuracy((logits > 0).astype(numpy.int64), examples.targets)
    return _accuracy(logits.argmax(axis=1), examples.targets)


def _spearman(scores: NDArray[Any], gold: Sequence[float]) -> float:
    """Spearman's rank correlation x 100; 0 if scores are constant or not finite."""
    if not numpy.isfinite(scores).all():
        return 0.0
    return float(numpy.nan_to_num(100 * spearman(scores, numpy.asarray(gold, numpy.float64))))


def _accuracy(found: NDArray[numpy.int64], wanted: Sequence[float]) -> float:
    return 100 * float((found == numpy.asarray(wanted)).mean())


def _first_places(examples: Examples, anchors: Vectors, positives: Vectors) -> float:
    """How often a positive of an anchor is the nearest of all, in %; equal texts count as one."""
    left, right = examples.texts
    pairs = set(zip(left, right, strict=True))
    row_of = {text: row for row, text in enumerate(right)}
    texts, candidates = list(row_of), positives[list(row_of.values())].T
    hits = 0
    for start in range(0, len(anchors), COMPARED_AT_ONCE):
        nearest = (anchors[start : start + COMPARED_AT_ONCE] @ candidates).argmax(axis=1)
        found = (texts[place] for place in nearest)
        hits += sum(pair in pairs for pair in zip(left[start:], found, strict=False))
    return 100 * hits / len(anchors)
