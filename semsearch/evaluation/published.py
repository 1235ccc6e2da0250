"""Published results, for comparison."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple


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
