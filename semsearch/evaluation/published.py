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


def published_sts(system: str, dataset: str, split: str, n: int) -> float | None:
    """The published Spearman x 100 of a system on the same pairs, all together."""
    return _score("sts", system, dataset, split, n)


def published_ndcg(system: str, dataset: str, split: str, n: int) -> float | None:
    """The published nDCG@10 x 100 of a system on the same queries."""
    return _score("ir", system, dataset, split, n)


def _score(kind: str, system: str, dataset: str, split: str, n: int) -> float | None:
    for row in published_rows(kind):
        if system in row.systems:
            return row.score(dataset, split, n)
    return None
