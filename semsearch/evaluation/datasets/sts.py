"""Reads STS Benchmark (Cer et al. 2017) and the yearly SemEval sets (2012 to 2016)."""

from __future__ import annotations

import re
from pathlib import Path

from semsearch.errors import DatasetError
from semsearch.evaluation.datasets.pairtable import gold_score
from semsearch.evaluation.datasets.records import ScoredPair
from semsearch.evaluation.datasets.registry import data_file
from semsearch.evaluation.datasets.textlines import files_named, numbered_lines

#: ``STS.input.MSRpar.txt``; in 2016 also ``STS2016.input.headlines.txt``.
_INPUT = re.compile(r"STS\d*\.input\.(.+)\.txt")


def read_stsbenchmark(split: str = "test") -> list[ScoredPair]:
    """The pairs of STS Benchmark's original release, with gold scores from 0 to 5.

    Args:
        split: ``train``, ``dev`` or ``test``.

    Raises:
        DatasetNotFoundError: the set has not been downloaded.
        DatasetError: a line is invalid.
    """
    return read_stsbenchmark_file(data_file(f"sts/stsbenchmark/sts-{split}.csv"))


def is_stsbenchmark(file: Path) -> bool:
    """Whether a file has the layout of STS Benchmark."""
    first = next(numbered_lines(file), None)
    return first is not None and first.text.startswith("main-") and first.text.count("\t") >= 6


def read_stsbenchmark_file(file: Path) -> list[ScoredPair]:
    """The pairs of a file in this layout.

    Lines are tab-separated and never quoted: genre, file, year, number, gold score, both sentences
    and, in some lines, their sources.

    Raises:
        DatasetError: a line is invalid.
    """
    pairs = []
    for line in numbered_lines(file):
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
        pairs, without = _aligned(file, gold)
        subsets[_INPUT.sub(r"\1", file.name)] = pairs
        unscored += without
    return subsets, unscored


def _aligned(sentences: Path, gold: Path) -> tuple[list[ScoredPair], int]:
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
