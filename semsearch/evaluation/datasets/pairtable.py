"""Reads tables of sentence pairs with a score or a label."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from semsearch.corpus import Row, Table, good_rows, open_table
from semsearch.corpus.roles import (
    LABEL,
    SCORE,
    at_position,
    find_column,
    find_pair,
    listed,
    quoted_names,
)
from semsearch.errors import ColumnNotFoundError, DatasetError
from semsearch.evaluation.datasets.records import LabelledPair, ScoredPair
from semsearch.evaluation.datasets.textlines import cell

#: The columns of a table without a header, two texts and a value.
BARE = ("column 1", "column 2", "column 3")
#: The labels of pairs on which annotators did not agree.
NO_LABEL = ("", "-")


class PairColumns(NamedTuple):
    """Columns named by the user: by name, or by position from 1; None to guess."""

    left: str | None = None
    right: str | None = None
    score: str | None = None


class ScoredTable(NamedTuple):
    """The contents of a table of scored pairs."""

    pairs: list[ScoredPair]
    unscored: int  #: rows without a gold score
    columns: str  #: a line about the columns used


def read_scored_table(file: Path, wanted: PairColumns | None = None) -> ScoredTable:
    """The pairs of a table that have a gold score.

    The header names two text columns (``sentence1`` and ``sentence2``, or others of
    `corpus.roles`) and a score. Without a header, they are the three columns in this order.

    Args:
        file: CSV, TSV, JSON lines …, optionally gzipped.
        wanted: the columns named by the user.

    Raises:
        CorpusError: the file cannot be read, or lacks these columns.
        DatasetError: a gold score is not a number.
    """
    pairs, unscored = [], 0
    with open_table(file) as table:
        columns = _find(table, (*SCORE, "label"), "score", wanted or PairColumns())
        for row, left, right, score in _pairs(table, columns):
            gold = gold_score(score, row.source)
            if gold is None:
                unscored += 1
            else:
                pairs.append(ScoredPair(left, right, gold))
    gold_scores = [pair.gold for pair in pairs]
    span = f" ({min(gold_scores):g} to {max(gold_scores):g})" if pairs else ""
    left, right, score = (quoted_names([column]) for column in columns)
    line = f"{file.name}: texts from {left} and {right}, gold scores from {score}{span}"
    return ScoredTable(pairs, unscored, line)


def read_labelled_table(file: Path) -> list[LabelledPair]:
    """The pairs of a table that have a label; empty labels and ``-`` are left out.

    Columns are found as by `read_scored_table`, with a label instead of the score.

    Raises:
        CorpusError: the file cannot be read, or lacks these columns.
    """
    with open_table(file) as table:
        columns = _find(table, (*LABEL, "gold", "score"), "label", PairColumns())
        return [
            LabelledPair(left, right, label.strip())
            for _, left, right, label in _pairs(table, columns)
            if label.strip() not in NO_LABEL
        ]


def gold_score(text: str, place: str) -> float | None:
    """A gold score; None for an empty cell.

    Raises:
        DatasetError: it is not a finite number.
    """
    if not text.strip():
        return None
    with suppress(ValueError):
        if math.isfinite(gold := float(text)):
            return gold
    raise DatasetError(f"{place}: the gold score is not a number: {text.strip()[:40]!r}")


def _pairs(table: Table, columns: Sequence[str]) -> Iterator[tuple[Row, str, str, str]]:
    for row in good_rows(table):
        left, right, value = (cell(row, column) for column in columns)
        yield row, left, right, value


def _find(table: Table, names: Sequence[str], what: str, wanted: PairColumns) -> list[str]:
    """The columns of both texts and of the value: those named by the user, others by usual names.

    Args:
        table: the table.
        names: usual names of the score or label.
        what: ``score`` or ``label``.
        wanted: the columns named by the user.

    Raises:
        ColumnNotFoundError: a named column does not exist, or a column cannot be found.
    """
    usual: Sequence[str | None] = BARE
    if tuple(table.columns) != BARE:
        usual = (*(find_pair(table.columns) or (None, None)), find_column(table.columns, names))
    named = [(name and at_position(table.columns, name.strip())) or name for name in wanted]
    found = [one or other for one, other in zip(named, usual, strict=True)]
    columns = [column for column in found if column is not None and column in table.columns]
    if len(set(columns)) < 3:
        options = "; name them with --left-column, --right-column, --score-column"
        raise ColumnNotFoundError(
            f"{table.name}: no columns for two texts and a {what} (columns: "
            f"{listed(table.columns)}; expected: sentence1, sentence2, {names[0]})"
            f"{options if what == 'score' else ''}"
        )
    return columns
