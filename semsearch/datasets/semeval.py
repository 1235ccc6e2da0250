"""The yearly SemEval STS sets (2012 to 2016): pairs in one file, gold scores in another."""

from __future__ import annotations

import re
from pathlib import Path

from semsearch.datasets.pairtable import gold_score
from semsearch.datasets.records import ScoredPair
from semsearch.datasets.textlines import cells_of, numbered_lines, reading
from semsearch.errors import DatasetError

#: ``STS.input.MSRpar.txt``; in 2016 also ``STS2016.input.headlines.txt``.
_INPUT = re.compile(r"STS\d*\.input\.(.+)\.txt")


def has_semeval_files(folder: Path) -> bool:
    """Whether a folder holds a year's files."""
    with reading(folder):
        return any(_INPUT.fullmatch(file.name) for file in folder.iterdir())


def read_semeval(folder: Path) -> tuple[dict[str, list[ScoredPair]], int]:
    """The scored pairs of each sub-set, by its name, and how many pairs have no gold score.

    ``STS.input.NAME.txt`` has two sentences a line between tabs (and, in 2016, where they are
    from); the same line of ``STS.gs.NAME.txt`` is their score from 0 to 5, or empty. Gold
    without sentences is passed over: so SMT is published since 2013.

    Raises:
        DatasetError: the files do not fit each other, or a line is not like that.
    """
    subsets, unscored = {}, 0
    with reading(folder):
        names = sorted(file.name for file in folder.iterdir())
    for match in filter(None, map(_INPUT.fullmatch, names)):
        sentences = folder / match[0]
        gold = folder / match[0].replace(".input.", ".gs.", 1)
        if not gold.is_file():
            raise DatasetError(f"{sentences} has no {gold.name} beside it")
        pairs, without = _aligned(sentences, gold)
        subsets[match[1]] = pairs
        unscored += without
    if not subsets:
        raise DatasetError(f"{folder} has no file STS.input.NAME.txt")
    return subsets, unscored


def _aligned(sentences: Path, gold: Path) -> tuple[list[ScoredPair], int]:
    lines, scores = list(numbered_lines(sentences)), list(numbered_lines(gold))
    for surplus in (lines, scores):
        while len(surplus) > min(len(lines), len(scores)) and not surplus[-1].text.strip():
            surplus.pop()  # a blank line at the end
    if len(lines) != len(scores):
        raise DatasetError(
            f"{sentences} has {len(lines)} lines, {gold.name} {len(scores)}; they must be aligned"
        )
    pairs, unscored = [], 0
    for line, score in zip(lines, scores, strict=True):
        cells = cells_of(line, "\t")
        if len(cells) < 2:
            raise DatasetError(f"{line.place}: no tab between two sentences")
        value = gold_score(score.text, score.place)
        if value is None:
            unscored += 1
        else:
            pairs.append(ScoredPair(cells[0], cells[1], value))
    return pairs, unscored
