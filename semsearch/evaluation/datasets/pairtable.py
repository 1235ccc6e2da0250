"""Reads tables of sentence pairs with a score or a label."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from semsearch.corpus.roles import (
    LABEL,
    SCORE,
    at_position,
    find_column,
    find_pair,
    listed,
    plain_name,
    quoted_names,
)
from semsearch.errors import ColumnNotFoundError, DatasetError
from semsearch.evaluation.datasets.records import LabelledPair, ScoredPair
from semsearch.evaluation.datasets.textlines import Rows, cell, table_rows

#: The labels of pairs on which annotators did not agree.
NO_LABEL = ("", "-")

#: The plausibility of fewer scores is not checked.
MIN_TO_CHECK = 3
_WHOLE_NUMBER = re.compile(r"\s*[+-]?[0-9]+\s*")
_NAMES_SHOWN = 5


class PairColumns(NamedTuple):
    """Columns named by the user: by name, or by position from 1; None to guess."""

    left: str | None = None
    right: str | None = None
    score: str | None = None


class _Columns(NamedTuple):
    """The columns of both texts and of their score or label."""

    left: str
    right: str
    value: str
    by_user: bool  # whether the user named some of them


class _Pair(NamedTuple):
    place: str
    left: str
    right: str
    value: str


class ScoredTable(NamedTuple):
    """The contents of a table of scored pairs."""

    pairs: list[ScoredPair]
    unscored: int  #: rows without a gold score
    columns: str  #: a line about the columns used


def read_scored_table(file: Path, wanted: PairColumns | None = None) -> ScoredTable:
    """The pairs of a table that have a gold score.

    The header names two text columns (``sentence1`` and ``sentence2``, or others of
    `corpus.roles`) and a score. Without a header there are three columns, two texts and a number.
    Integers that may be classes or ids are accepted only if the user names their column; 0 and 1 in
    the last column are always accepted.

    Args:
        file: CSV, TSV, JSON lines …, optionally gzipped.
        wanted: the columns named by the user.

    Raises:
        DatasetError: the file cannot be read or lacks these columns, a gold score is not a number,
            or the numbers are implausible as gold scores.
    """
    with table_rows(file) as table:
        columns = _find(file, table, (*SCORE, "label"), "score", wanted or PairColumns())
        found = [(pair, gold_score(pair.value, pair.place)) for pair in _pairs(table, columns)]
        is_last = columns.value == table.columns[-1]
        has_header = table.has_header
    pairs = [ScoredPair(one.left, one.right, gold) for one, gold in found if gold is not None]
    gold = [pair.gold for pair in pairs]
    whole = all(_WHOLE_NUMBER.fullmatch(one.value) for one, score in found if score is not None)
    if len(gold) >= MIN_TO_CHECK and (
        reason := _implausibility(gold, columns, whole=whole, named=has_header, last=is_last)
    ):
        raise DatasetError(f"{file}: {quoted_names([columns.value])} {reason}")
    texts = " and ".join(quoted_names([column]) for column in columns[:2])
    span = f" ({min(gold):g} to {max(gold):g})" if gold else ""
    how = f"texts from {texts}, gold scores from {quoted_names([columns.value])}{span}"
    return ScoredTable(pairs, len(found) - len(pairs), f"{file.name}: {how}")


def _implausibility(
    gold: Sequence[float], columns: _Columns, *, whole: bool, named: bool, last: bool
) -> str | None:
    """Why these numbers are unlikely to be gold scores; None if they are plausible.

    Args:
        gold: the numbers.
        columns: where they stand.
        whole: whether all are integers.
        named: whether their column has a name.
        last: whether it is the last column.
    """
    values = sorted(set(gold))
    if len(values) == 1:
        return f"is {values[0]:g} in all rows, so no correlation is defined"
    if columns.by_user or not whole:
        return None
    advice = "if these are gold scores, name it with --score-column"
    if len(gold) >= 10 and all(after - one == 1 for one, after in pairwise(gold)):
        return f"numbers the rows; {advice}"
    is_score = named and plain_name(columns.value) != "label"
    if is_score or (values == [0, 1] and (named or last)):
        return None
    shown = ", ".join(f"{value:g}" for value in values[:_NAMES_SHOWN])
    more = ", …" if len(values) > _NAMES_SHOWN else ""
    return f"holds integers that may be classes or ids ({shown}{more}); {advice}"


def read_labelled_table(file: Path) -> list[LabelledPair]:
    """The pairs of a table that have a label; empty labels and ``-`` are left out.

    Columns are found as by `read_scored_table`, with a label instead of the score.

    Raises:
        DatasetError: the file cannot be read, or lacks these columns.
    """
    with table_rows(file) as table:
        columns = _find(file, table, (*LABEL, "gold", "score"), "label", PairColumns())
        return [
            LabelledPair(pair.left, pair.right, pair.value.strip())
            for pair in _pairs(table, columns)
            if pair.value.strip() not in NO_LABEL
        ]


def gold_score(text: str, place: str) -> float | None:
    """A gold score; None for an empty cell.

    Raises:
        DatasetError: it is not a finite number.
    """
    if not text.strip():
        return None
    score = _finite_number(text)
    if score is None:
        raise DatasetError(f"{place}: the gold score is not a number: {text.strip()[:40]!r}")
    return score


def _finite_number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _pairs(table: Rows, columns: _Columns) -> Iterator[_Pair]:
    for row in table.rows:
        left, right, value = (cell(row, column) for column in columns[:3])
        yield _Pair(row.source, left, right, value)


def _find(
    file: Path, table: Rows, names: Sequence[str], what: str, wanted: PairColumns
) -> _Columns:
    """The columns that the user names, others by their usual names.

    Args:
        file: the table.
        table: its rows.
        names: usual names of the score or label.
        what: ``score`` or ``label``.
        wanted: the columns named by the user.

    Raises:
        ColumnNotFoundError: a named column does not exist, or a column cannot be found.
    """
    named = [column and _named(file, table, column) for column in wanted]
    value = named[2] or find_column(table.columns, names)
    if value is None and not any(named) and not table.has_header:
        numbers = [column for column in table.columns if _is_number(table, column)]
        value = numbers[0] if len(numbers) == 1 else None
    left, right = (
        name or column
        for name, column in zip(named, find_pair(table.columns) or (None, None), strict=False)
    )
    if value is not None and len(table.columns) == 3 and (any(named) or not table.has_header):
        others = [column for column in table.columns if column not in (value, left, right)]
        left = left or (others.pop(0) if others else None)
        right = right or (others.pop(0) if others else None)
    if left is None or right is None or value is None:
        raise ColumnNotFoundError(
            f"{file}: no columns for two texts and a {what} (columns: {listed(table.columns)}; "
            f"expected: sentence1, sentence2, {names[0]})"
            + "; name them with --left-column, --right-column, --score-column"
            * (what == "score")
        )
    if len({left, right, value}) < 3:
        raise ColumnNotFoundError(
            f"{file}: the texts and the score must be three different columns"
        )
    return _Columns(left, right, value, any(named))


def _named(file: Path, table: Rows, name: str) -> str:
    column = at_position(table.columns, name.strip())
    if column is None:
        raise ColumnNotFoundError(f"{file}: no column {name!r} (columns: {listed(table.columns)})")
    return column


def _is_number(table: Rows, column: str) -> bool:
    return all(_finite_number(cell(row, column)) is not None for row in table.first)
