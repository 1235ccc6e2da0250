"""Results of systems, and published ones beside them."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from semsearch.evaluation.statistics import Difference, Interval


class Result(NamedTuple):
    """An estimate for one system on one set, times 100."""

    over: str  #: the measure; for STS, how subsets are combined (`Aggregation`)
    system: str
    n: int  #: the number of queries or pairs
    estimate: Interval  #: the mean over queries; for STS, Spearman's correlation
    seconds: float  #: for all computations without loading the model; NaN if unknown
    published: float | None  #: the value in a paper, for this system on the same data
    precision: str | None = None  #: of the system's computations; None without a choice
    pearson: float | None = None  #: for STS, Pearson's correlation


class PairedDifference(NamedTuple):
    """The estimate of `system` minus that of `other` on the same queries or pairs, times 100."""

    over: str
    system: str
    other: str
    difference: Difference


class PublishedRow(NamedTuple):
    """A system in a paper: Spearman x 100 (``sts``) or nDCG@10 x 100 (``ir``) by data set.

    The keys are ``NAME`` for test sets and ``NAME:SPLIT`` for other splits.
    """

    title: str
    source: str
    systems: list[str]  #: specs with the same weights
    scores: dict[str, float]
    sizes: dict[str, int]  #: the number of pairs or queries

    def score(self, dataset: str, split: str, n: int) -> float | None:
        """The value for a split, if it was computed on `n` pairs or queries."""
        key = dataset if split == "test" else f"{dataset}:{split}"
        return self.scores.get(key) if self.sizes.get(key) == n else None


@cache
def published_rows(kind: str) -> list[PublishedRow]:
    """All rows of a kind (``sts`` or ``ir``)."""
    text = files("semsearch.evaluation").joinpath("published.toml").read_text("utf-8")
    tables: dict[str, Any] = tomllib.loads(text)
    sizes = tables["pairs" if kind == "sts" else "queries"]
    return [PublishedRow(**row, sizes=sizes) for row in tables[kind]]


def published_value(kind: str, system: str, dataset: str, split: str, n: int) -> float | None:
    """The published value of a system on the same `n` pairs, all together, or queries.

    Args:
        kind: ``sts`` (Spearman x 100) or ``ir`` (nDCG@10 x 100).
        system: the spec of the system.
        dataset: the name of the set.
        split: of the set.
        n: the number of pairs or queries.
    """
    rows = (row for row in published_rows(kind) if system in row.systems)
    row = next(rows, None)
    return None if row is None else row.score(dataset, split, n)
