"""An honest measure without labels: does a question find the one passage that it was taken from?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy
from numpy.typing import NDArray

from semsearch.protocols import Encoder
from semsearch.unsupervised.questions import Question

Ranks = NDArray[numpy.float64]

#: How many queries are compared with all passages at once.
BLOCK = 512


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
    passages = encoder.encode_documents([question.passage for question in (*asked, *others)])
    queries = encoder.encode_queries([question.query for question in asked])
    ranks = numpy.empty(len(asked))
    for start in range(0, len(asked), BLOCK):
        scores = queries[start : start + BLOCK] @ passages.T
        rows = numpy.arange(len(scores))
        own = scores[rows, start + rows]
        ranks[start : start + BLOCK] = (scores >= own[:, None]).sum(axis=1)
    return 1 / ranks


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
