"""Tables of sentence pairs with a score or a label, whatever their columns are called."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from semsearch.datasets.records import LabelledPair, ScoredPair
from semsearch.datasets.table import Row, find_column, read_rows
from semsearch.errors import DatasetError

__all__ = ["gold_score", "read_labelled_table", "read_scored_table"]

#: Names of both text columns, as plain names.
TEXT_COLUMNS = (
    ("sentence1", "sentence2"),
    ("sentencea", "sentenceb"),
    ("left", "right"),
    ("text1", "text2"),
    ("texta", "textb"),
    ("question1", "question2"),
    ("1string", "2string"),
    ("premise", "hypothesis"),
    ("s1", "s2"),
    ("a", "b"),
)
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
#: How some sets write that people did not agree on a label.
NO_LABEL = ("", "-")


class _Layout(NamedTuple):
    left: int
    right: int
    value: int


def read_scored_table(file: Path) -> tuple[list[ScoredPair], int]:
    """The pairs of a table that have a gold score, and how many have none.

    The header names two text columns (``sentence1`` and ``sentence2``, or as in TEXT_COLUMNS)
    and a score (as in SCORE_COLUMNS). Without a header there are three columns, two texts and a
    number; or those of STS Benchmark.

    Raises:
        DatasetError: the file cannot be read, has other columns, or a gold is no number.
    """
    pairs, unscored = [], 0
    for row, (left, right, value) in _pair_rows(file, SCORE_COLUMNS, "score"):
        score = gold_score(value, row.place)
        if score is None:
            unscored += 1
        else:
            pairs.append(ScoredPair(left, right, score))
    return pairs, unscored


def read_labelled_table(file: Path) -> list[LabelledPair]:
    """The pairs of a table that have a label; those labelled ``-`` or nothing are left out.

    Columns are found as `read_scored_table` finds them, a label (LABEL_COLUMNS) for the score.

    Raises:
        DatasetError: the file cannot be read, or has other columns.
    """
    rows = _pair_rows(file, LABEL_COLUMNS, "label")
    return [
        LabelledPair(left, right, label.strip())
        for _, (left, right, label) in rows
        if label.strip() not in NO_LABEL
    ]


def gold_score(text: str, place: str) -> float | None:
    """The number that a gold score is; None where there is none.

    Raises:
        DatasetError: it is something else.
    """
    if not text.strip():
        return None
    score = _number(text)
    if score is None:
        raise DatasetError(f"{place}: the gold score is no number: {text.strip()[:40]!r}")
    return score


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _pair_rows(
    file: Path, names: Sequence[str], what: str
) -> Iterator[tuple[Row, tuple[str, str, str]]]:
    rows = read_rows(file)
    first = next(rows)
    layout = _named(first.cells, names)
    if layout is None:
        layout = _unnamed(first.cells)
        rows = chain([first], rows)
    if layout is None:
        raise DatasetError(
            f"{first.place}: no columns for two texts and a {what} "
            f"(columns: {', '.join(cell.strip()[:40] for cell in first.cells)}; looked for: "
            f"{' or '.join('/'.join(pair) for pair in TEXT_COLUMNS)}; {what}: {', '.join(names)})"
        )
    for row in rows:
        if len(row.cells) <= max(layout):
            raise DatasetError(f"{row.place}: {len(row.cells)} columns; {max(layout) + 1} needed")
        left, right, value = (row.cells[column] for column in layout)
        yield row, (left, right, value)


def _named(header: Sequence[str], names: Sequence[str]) -> _Layout | None:
    value = find_column(header, names)
    for pair in TEXT_COLUMNS:
        left, right = (find_column(header, [name]) for name in pair)
        if left is not None and right is not None and value is not None:
            return _Layout(left, right, value)
    return None


def _unnamed(cells: Sequence[str]) -> _Layout | None:
    """The layout of a table without a header, by its first row."""
    if len(cells) >= 7 and cells[0].startswith("main-") and _number(cells[4]) is not None:
        return _Layout(5, 6, 4)  # STS Benchmark
    numbers = [column for column, cell in enumerate(cells) if _number(cell) is not None]
    if len(cells) != 3 or len(numbers) != 1:
        return None
    left, right = (column for column in range(3) if column != numbers[0])
    return _Layout(left, right, numbers[0])
