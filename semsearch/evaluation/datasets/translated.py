"""Reads STS Benchmark in translation (stsb-multi-mt, May 2021), in one language or across two.

Line i of a split has the same pair and the same gold score in all languages.
"""

from __future__ import annotations

import re

from semsearch.errors import DatasetError, DatasetNotFoundError
from semsearch.evaluation.datasets.pairtable import read_scored_table
from semsearch.evaluation.datasets.records import ScoredPair
from semsearch.evaluation.datasets.registry import check_split, data_file

TRANSLATED = "stsb-multi"
SOURCE_LANGUAGE = "en"

_LANGUAGES = re.compile(r"([a-z]{2})(?:-([a-z]{2}))?")


def is_translated(name: str) -> bool:
    """Whether a name refers to STS Benchmark in translation."""
    return name.partition(":")[0] == TRANSLATED


def read_translated(name: str, split: str = "test") -> list[ScoredPair]:
    """The pairs with gold scores from 0 to 5.

    Args:
        name: ``stsb-multi:pt`` for a language; ``stsb-multi:en-pt`` for pairs of an English and a
            Portuguese sentence.
        split: ``train``, ``dev`` or ``test``.

    Raises:
        DatasetNotFoundError: the language has not been downloaded, or the name is invalid.
        DatasetError: the split does not exist, or the pairs of two languages differ.
    """
    left, right = languages_of(name)
    check_split(name, split, ("train", "dev", "test"))
    return [
        ScoredPair(one.left, other.right, one.gold) for one, other in _aligned(left, right, split)
    ]


def parallel_sentences(language: str, split: str = "train") -> list[tuple[str, str]]:
    """The distinct sentences of a split in English, each with its translation.

    Raises:
        DatasetNotFoundError: the language has not been downloaded.
        DatasetError: its pairs differ from those in English.
    """
    sides = (
        ((one.left, other.left), (one.right, other.right))
        for one, other in _aligned(SOURCE_LANGUAGE, language, split)
    )
    return list(dict.fromkeys(pair for both in sides for pair in both))


def languages_of(name: str) -> tuple[str, str]:
    """The languages of the first and second sentences of a set.

    Raises:
        DatasetNotFoundError: the name is invalid.
    """
    found = _LANGUAGES.fullmatch(name.partition(":")[2])
    if found is None:
        raise DatasetNotFoundError(
            f"'{name}' must name one language ({TRANSLATED}:pt) or two ({TRANSLATED}:en-pt)"
        )
    return found[1], found[2] or found[1]


def _aligned(left: str, right: str, split: str) -> list[tuple[ScoredPair, ScoredPair]]:
    """The pairs of a split in two languages, aligned by their gold scores."""
    files = [data_file(f"sts/{TRANSLATED}/stsb-{one}-{split}.csv") for one in (left, right)]
    first, second = (read_scored_table(file).pairs for file in files)
    if [pair.gold for pair in first] != [pair.gold for pair in second]:
        raise DatasetError(f"{TRANSLATED}:{left}-{right}: the pairs of the two languages differ")
    return list(zip(first, second, strict=True))
