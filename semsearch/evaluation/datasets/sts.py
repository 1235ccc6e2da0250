"""Reads STS Benchmark (Cer et al. 2017), its translations and the yearly SemEval sets.

In the translations (stsb-multi-mt, May 2021), line i of a split has the same pair and the same gold
score in all languages.
"""

from __future__ import annotations

import re
from pathlib import Path

from semsearch.errors import DatasetError, DatasetNotFoundError
from semsearch.evaluation.datasets.pairtable import gold_score, read_scored_table
from semsearch.evaluation.datasets.records import ScoredPair
from semsearch.evaluation.datasets.registry import check_split, data_file
from semsearch.evaluation.datasets.textlines import files_named, numbered_lines

#: ``STS.input.MSRpar.txt``; in 2016 also ``STS2016.input.headlines.txt``.
_INPUT = re.compile(r"STS\d*\.input\.(.+)\.txt")

TRANSLATED = "stsb-multi"
SOURCE_LANGUAGE = "en"

_LANGUAGES = re.compile(r"([a-z]{2})(?:-([a-z]{2}))?")


def read_stsbenchmark(split: str = "test") -> list[ScoredPair]:
    """The pairs of STS Benchmark's original release, with gold scores from 0 to 5.

    Lines are tab-separated and never quoted: genre, file, year, number, gold score, both sentences
    and, in some lines, their sources.

    Args:
        split: ``train``, ``dev`` or ``test``.

    Raises:
        DatasetNotFoundError: the set has not been downloaded.
        DatasetError: a line is invalid.
    """
    pairs = []
    for line in numbered_lines(data_file(f"sts/stsbenchmark/sts-{split}.csv")):
        cells = line.text.split("\t")
        gold = gold_score(cells[4], line.place) if len(cells) >= 7 else None
        if gold is None:
            raise DatasetError(f"{line.place}: not a scored pair of STS Benchmark")
        pairs.append(ScoredPair(cells[5], cells[6], gold))
    return pairs


def has_semeval_files(folder: Path) -> bool:
    """Whether a folder contains the files of a SemEval year."""
    return bool(files_named(folder, _INPUT))


def read_semeval(folder: Path) -> tuple[dict[str, list[ScoredPair]], int]:
    """The scored pairs of each subset by name, and the number of pairs without a gold score.

    ``STS.input.NAME.txt`` has two tab-separated sentences per line (and, in 2016, their sources);
    the same line of ``STS.gs.NAME.txt`` is their score from 0 to 5, or empty. Gold scores without
    sentences are ignored: SMT has been published this way since 2013.

    Raises:
        CorpusError: a file is missing or cannot be read.
        DatasetError: the files are not aligned, or a line is invalid.
    """
    subsets, unscored = {}, 0
    for file in files_named(folder, _INPUT):
        gold = file.with_name(file.name.replace(".input.", ".gs.", 1))
        pairs, without = _aligned_files(file, gold)
        subsets[_INPUT.sub(r"\1", file.name)] = pairs
        unscored += without
    return subsets, unscored


def _aligned_files(sentences: Path, gold: Path) -> tuple[list[ScoredPair], int]:
    lines, scores = list(numbered_lines(sentences)), list(numbered_lines(gold))
    while len(scores) > len(lines) and not scores[-1].text.strip():
        scores.pop()  # a blank line at the end
    if len(lines) != len(scores):
        raise DatasetError(
            f"{sentences} has {len(lines)} lines, {gold.name} {len(scores)}; they must be aligned"
        )
    pairs, unscored = [], 0
    for line, score in zip(lines, scores, strict=True):
        cells = line.text.split("\t")
        if len(cells) < 2:
            raise DatasetError(f"{line.place}: no tab between two sentences")
        value = gold_score(score.text, score.place)
        if value is None:
            unscored += 1
        else:
            pairs.append(ScoredPair(cells[0], cells[1], value))
    return pairs, unscored


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
