"""Questions and the passages they were taken from: ranks, hard negatives, and what changed them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy
from numpy.typing import NDArray

from semsearch.protocols import Encoder
from semsearch.training.questions import Question

Ranks = NDArray[numpy.floating]

#: How many queries are compared with all passages at once.
BLOCK = 512
#: How many passages of a ranking can become hard negatives.
DEPTH = 50
#: A passage that scores more than this part of the right one's score may be right, too (de Souza P.
#: Moreira et al. 2024, NV-Retriever, section 3: positive-aware mining).
LARGEST_PART = 0.95


class Gain(NamedTuple):
    """What training did to the mean reciprocal rank of the same questions."""

    before: float
    after: float
    low: float  #: of the 95 % interval of the difference of the means
    high: float
    questions: int

    @property
    def is_certain(self) -> bool:
        """Whether it is above zero beyond what the choice of the questions explains."""
        return self.low > 0

    def __str__(self) -> str:
        return (
            f"MRR {self.after:.3f} after {self.before:.3f} "
            f"({self.after - self.before:+.3f}, 95 % interval {self.low:+.3f} to {self.high:+.3f}, "
            f"{self.questions:,} held-out questions)"
        )


def reciprocal_ranks(
    encoder: Encoder, asked: Sequence[Question], others: Sequence[Question]
) -> Ranks:
    """1 / rank of each question's own passage among those of all, asked and others.

    Passages of the same score share the worst rank among them.
    """
    passages = [question.passage for question in (*asked, *others)]
    ranks = [
        (scores >= own[:, None]).sum(axis=1) for own, scores in _scores(encoder, asked, passages)
    ]
    reciprocal: Ranks = 1 / numpy.concatenate(ranks)
    return reciprocal


def hard_negatives(encoder: Encoder, asked: Sequence[Question]) -> list[str]:
    """The nearest passage of another question that is not too near, for each question.

    Where the first places are all too near, it is the last one looked at.
    """
    passages = [question.passage for question in asked]
    depth = min(DEPTH, len(asked) - 1)
    found: list[str] = []
    for own, scores in _scores(encoder, asked, passages):
        start = len(found)
        rows = numpy.arange(len(scores))
        scores[rows, start + rows] = -numpy.inf
        nearest = numpy.argsort(-scores, axis=1)[:, :depth]
        too_near = numpy.take_along_axis(scores, nearest, axis=1) > LARGEST_PART * own[:, None]
        chosen = numpy.minimum(too_near.sum(axis=1), depth - 1)
        found += [passages[place] for place in nearest[rows, chosen]]
    return found


def _scores(
    encoder: Encoder, asked: Sequence[Question], passages: Sequence[str]
) -> Iterator[tuple[Ranks, Ranks]]:
    """By block, the score of each question's own passage, the same in row, and those of all."""
    vectors = encoder.encode_documents(list(passages))
    queries = encoder.encode_queries([question.query for question in asked])
    for start in range(0, len(asked), BLOCK):
        scores = queries[start : start + BLOCK] @ vectors.T
        rows = numpy.arange(len(scores))
        yield scores[rows, start + rows], scores


def gain(before: Ranks, after: Ranks, seed: int) -> Gain:
    """The difference of the means with its interval, by the bootstrap over paired questions."""
    from scipy.stats import bootstrap

    difference = after - before
    interval = bootstrap(
        (difference,), numpy.mean, method="percentile", rng=numpy.random.default_rng(seed)
    ).confidence_interval
    return Gain(
        float(before.mean()),
        float(after.mean()),
        float(interval.low),
        float(interval.high),
        len(difference),
    )
