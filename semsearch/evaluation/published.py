"""The figures that papers give, to stand beside ours."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import NamedTuple

__all__ = ["PublishedRow", "published_ndcg", "published_rows", "published_sts"]


class PublishedRow(NamedTuple):
    """A system of a paper: Spearman x 100 (``sts``) or nDCG@10 x 100 (``ir``) by data set."""

    title: str
    source: str
    systems: list[str]  #: the specs with which we run the same weights
    scores: dict[str, float]


@cache
def published_rows(kind: str) -> list[PublishedRow]:
    """All rows of that kind (``sts`` or ``ir``)."""
    text = files("semsearch.evaluation").joinpath("published.toml").read_text("utf-8")
    return [PublishedRow(**row) for row in tomllib.loads(text)[kind]]


def published_sts(system: str, dataset: str, split: str, aggregation: str) -> float | None:
    """Spearman x 100 of the same system on the same pairs: test sets, yearly ones pooled."""
    if split != "test" or aggregation != "all":
        return None
    return _score("sts", system, dataset)


def published_ndcg(system: str, dataset: str) -> float | None:
    """nDCG@10 x 100 of the same system on the same set."""
    return _score("ir", system, dataset)


def _score(kind: str, system: str, dataset: str) -> float | None:
    for row in published_rows(kind):
        if system in row.systems:
            return row.scores.get(dataset)
    return None
