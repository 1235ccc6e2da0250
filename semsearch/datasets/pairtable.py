"""Reads tables of sentence pairs with a score or a label."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain, pairwise
from pathlib import Path
from typing import NamedTuple

from semsearch.datasets.paircolumns import Choice, Layout, PairColumns, find_layout, finite_number
from semsearch.datasets.records import LabelledPair, ScoredPair
from semsearch.datasets.table import Row, cells_in, plain_name, read_rows
from semsearch.errors import DatasetError

SCORE_COLUMNS = (
    "score",
    "gold",
    "goldscore",
    "similarity",
    "similarityscore",
    "relatedness",
    "relatednessscore",
    "rating",
    "label",
)
LABEL_COLUMNS = (
    "label",
    "goldlabel",
    "quality",
    "isduplicate",
    "duplicate",
    "isparaphrase",
    "paraphrase",
    "entailmentjudgment",
    "entailmentlabel",
    "relation",
    "gold",
    "score",
)
#: The labels of pairs on which annotators did not agree.
NO_LABEL = ("", "-")


#: The plausibility of fewer scores is not checked.
MIN_TO_CHECK = 3
_WHOLE_NUMBER = re.compile(r"\s*[+-]?[0-9]+\s*")
_NAMES_SHOWN = 5


class ScoredTable(NamedTuple):
    """The contents of a table of scored pairs."""

    pairs: list[ScoredPair]
    unscored: int  #: rows without a gold score
    columns: str  #: a line about the columns used


def read_scored_table(file: Path, wanted: PairColumns | None = None) -> ScoredTable:
    """The pairs of a table that have a gold score.

    The header names two text columns (``sentence1`` and ``sentence2``, or as in TEXT_COLUMNS)
    and a score (as in SCORE_COLUMNS). Without a header there are three columns, two texts and a
    number, or the columns of STS Benchmark. Integers that may be classes or ids are accepted
    only if the user names their column; 0 and 1 in the last column are always accepted.

    Args:
        file: CSV or TSV, optionally gzipped.
        wanted: the columns named by the user.

    Raises:
        DatasetError: the file cannot be read or lacks these columns, a gold score is not a number,
            or the numbers are implausible as gold scores.
    """
    layout, rows = _pair_rows(file, SCORE_COLUMNS, "score", wanted)
    pairs, unscored, whole = [], 0, True
    for row, (left, right, value) in rows:
        score = gold_score(value, row.place)
        if score is None:
            unscored += 1
        else:
            pairs.append(ScoredPair(left, right, score))
            whole = whole and _WHOLE_NUMBER.fullmatch(value) is not None
    gold = [pair.gold for pair in pairs]
    column = layout.shown(layout.value)
    if len(gold) >= MIN_TO_CHECK:
        reason = _implausibility(gold, layout, whole)
        if reason:
            raise DatasetError(f"{file}: {column} {reason}")
    texts = " and ".join(map(layout.shown, (layout.left, layout.right)))
    span = f" ({min(gold):g} to {max(gold):g})" if gold else ""
    return ScoredTable(
        pairs, unscored, f"{file.name}: texts from {texts}, gold scores from {column}{span}"
    )


def _implausibility(gold: Sequence[float], layout: Layout, whole: bool) -> str | None:
    """Why these numbers are unlikely to be gold scores; None if they are plausible."""
    values = sorted(set(gold))
    if len(values) == 1:
        return f"is {values[0]:g} in all rows, so no correlation is defined"
    if layout.choice is Choice.USER:
        return None
    advice = "if these are gold scores, name it with --score-column"
    if whole and len(gold) >= 10 and all(after - one == 1 for one, after in pairwise(gold)):
        return f"numbers the rows; {advice}"
    is_named = layout.header is not None and plain_name(layout.header[layout.value]) != "label"
    is_last = layout.value > max(layout.left, layout.right)
    if not whole or is_named or (layout.choice is Choice.HEADER and layout.header is None):
        return None
    if values == [0, 1] and (is_last or layout.header is not None):
        return None
    shown = ", ".join(f"{value:g}" for value in values[:_NAMES_SHOWN])
    more = ", …" if len(values) > _NAMES_SHOWN else ""
    return f"holds integers that may be classes or ids ({shown}{more}); {advice}"


def read_labelled_table(file: Path) -> list[LabelledPair]:
    """The pairs of a table that have a label; empty labels and ``-`` are left out.

    Columns are found as by `read_scored_table`, with a label (LABEL_COLUMNS) instead of the score.

    Raises:
        DatasetError: the file cannot be read, or lacks these columns.
    """
    _, rows = _pair_rows(file, LABEL_COLUMNS, "label", None)
    return [
        LabelledPair(left, right, label.strip())
        for _, (left, right, label) in rows
        if label.strip() not in NO_LABEL
    ]


def gold_score(text: str, place: str) -> float | None:
    """A gold score; None for an empty cell.

    Raises:
        DatasetError: it is not a finite number.
    """
    if not text.strip():
        return None
    score = finite_number(text)
    if score is None:
        raise DatasetError(f"{place}: the gold score is not a number: {text.strip()[:40]!r}")
    return score


def _pair_rows(
    file: Path, names: Sequence[str], what: str, wanted: PairColumns | None
) -> tuple[Layout, Iterator[tuple[Row, tuple[str, str, str]]]]:
    rows = read_rows(file)
    first = next(rows)
    layout = find_layout(first, names, what, wanted or PairColumns())
    width: int | None = len(first.cells)
    if layout.header is None:
        rows = chain([first], rows)
        if layout.choice is not Choice.GUESS:
            width = None  # some lines of STS Benchmark have more columns
    return layout, _cells(rows, layout, width)


def _cells(
    rows: Iterator[Row], layout: Layout, width: int | None
) -> Iterator[tuple[Row, tuple[str, str, str]]]:
    columns = layout.left, layout.right, layout.value
    for row in rows:
        left, right, value = cells_in(row, columns, width)
        yield row, (left, right, value)
