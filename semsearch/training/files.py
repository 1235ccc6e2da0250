"""Training data from files: CSV, TSV, JSON lines, JSON or Parquet, columns recognised by name."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from semsearch.corpus import good_rows, open_table
from semsearch.corpus.roles import (
    GRADE,
    LABEL,
    NEGATIVE,
    SCORE,
    find_column,
    find_pair,
    plain_name,
)
from semsearch.corpus.table import Row
from semsearch.errors import ArgumentError, BadRowError, ColumnNotFoundError
from semsearch.texts import quantity
from semsearch.training.examples import (
    POSITIVE_LABELS,
    Examples,
    Kind,
    Notify,
    ordered_labels,
    positive_labels,
)
from semsearch.training.scales import scaled

#: A whole number as pandas writes it beside missing values.
_WHOLE = re.compile(r"^(-?[0-9]+)\.0+$")
_FRACTION = re.compile(r"-?[0-9]*\.[0-9]+")
#: SNLI's label of pairs on which its annotators did not agree. Its copy with numbers has -1.
NO_LABEL = "-"
NO_LABEL_NUMBER = "-1"
NUMBERED_LABELS = {NO_LABEL_NUMBER, "0", "1", "2"}


class _Columns(NamedTuple):
    left: str
    right: str
    negative: str | None
    score: str | None
    label: str | None

    def kind(self, wanted: Sequence[Kind]) -> Kind | None:
        """The first wanted kind whose columns exist."""
        available = {
            Kind.SCORED: self.score is not None,
            Kind.LABELLED: self.label is not None,
            Kind.TRIPLETS: self.negative is not None,
            # Scored pairs are not positive pairs; some labelled pairs are.
            Kind.POSITIVE: self.score is None and self.negative is None,
        }
        return next((kind for kind in wanted if available[kind]), None)


def read_examples(
    path: Path, wanted: Sequence[Kind], scale: tuple[float, float] | None, notify: Notify
) -> Examples:
    """Read the examples of a file.

    Args:
        path: the file; it may be compressed with gzip.
        wanted: the usable kinds, the preferred one first.
        scale: the lowest and the highest gold score; None guesses and reports it.
        notify: called with what was guessed.

    Raises:
        CorpusError: the file cannot be read.
        ColumnNotFoundError: the file has no columns of a wanted kind.
        ArgumentError: no label means a positive pair.
        BadRowError: a row has no text, its score is not a number on the scale, or its label is a
            fraction.
    """
    with open_table(path) as table:
        columns = _columns(table.columns)
        kind = columns and columns.kind(wanted)
        if columns is None or kind is None:
            needed = " or ".join(_needed(one) for one in wanted)
            found = ", ".join(table.columns)
            raise ColumnNotFoundError(
                f"{table.name}: columns {needed} are needed (columns: {found}); rename them"
            )
        rows = list(good_rows(table))
        name, names = table.name, table.columns
    text_columns = [columns.left, columns.right]
    if kind is Kind.TRIPLETS and columns.negative:
        text_columns.append(columns.negative)
    if kind is Kind.POSITIVE and columns.label:
        rows = _positive(rows, columns.label, name, notify)
    elif kind is Kind.POSITIVE and (unused := [one for one in names if one not in text_columns]):
        notify(f"{name}: every pair is taken as positive; not used: {', '.join(unused)}")
    if kind is Kind.LABELLED and columns.label:
        rows = _decided(rows, columns.label, name, notify)
    texts = tuple([_text(row, column) for row in rows] for column in text_columns)
    places = [row.source for row in rows]
    if kind is Kind.SCORED:
        scores = [_number(row, columns.score or "") for row in rows]
        targets, scale = scaled(scores, places, scale, name, notify)
        return Examples(name, kind, texts, places, targets, scale=scale)
    if kind is Kind.LABELLED:
        return labelled(name, texts, places, [_label(row, columns.label or "") for row in rows])
    return Examples(name, kind, texts, places, [])


def labelled(
    name: str, texts: tuple[list[str], ...], places: list[str], labels: Sequence[str]
) -> Examples:
    """Labelled pairs; the classes are the labels that occur, as `ordered_labels` returns them."""
    names = ordered_labels(labels)
    number = {label: place for place, label in enumerate(names)}
    targets = [number[label] for label in labels]
    return Examples(name, Kind.LABELLED, texts, places, targets, labels=names)


def _columns(names: Sequence[str]) -> _Columns | None:
    pair = find_pair(names)
    if pair is None:
        return None
    left, right = pair
    # 'paraphrase' is a text or, beside two texts, a label.
    label = find_column([name for name in names if name not in pair], (*LABEL, *GRADE))
    return _Columns(left, right, find_column(names, NEGATIVE), find_column(names, SCORE), label)


def _needed(kind: Kind) -> str:
    return {
        Kind.SCORED: "'sentence1', 'sentence2', 'score'",
        Kind.LABELLED: "'sentence1', 'sentence2', 'label'",
        Kind.POSITIVE: "'anchor', 'positive'",
        Kind.TRIPLETS: "'anchor', 'positive', 'negative'",
    }[kind]


def _text(row: Row, column: str) -> str:
    value = row.fields.get(column)
    if not isinstance(value, str) or not value.strip():
        raise BadRowError(row.source, f"no text in column '{column}'")
    return value


def _number(row: Row, column: str) -> float:
    value = row.fields.get(column)
    try:
        number = float(value)  # type: ignore[arg-type]  # it raises
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise BadRowError(row.source, f"no number in column '{column}'")
    return number


def _label(row: Row, column: str) -> str:
    return _written(row.fields, column) or NO_LABEL


def _written(fields: Mapping[str, Any], column: str) -> str:
    value = fields.get(column)
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else _WHOLE.sub(r"\1", str(value).strip())


def _decided(rows: list[Row], column: str, name: str, notify: Notify) -> list[Row]:
    missing = {NO_LABEL}
    if {_label(row, column) for row in rows} - missing == NUMBERED_LABELS:
        missing.add(NO_LABEL_NUMBER)
    kept = [row for row in rows if _label(row, column) not in missing]
    if len(kept) < len(rows):
        left_out = quantity(len(rows) - len(kept), "pair")
        notify(f"{name}: {left_out} without a label left out")
    for row in kept:
        if _FRACTION.fullmatch(label := _label(row, column)):
            reason = f"{label} in column '{column}' is a score, not a label; rename it to 'score'"
            raise BadRowError(row.source, reason)
    return kept


def _positive(rows: list[Row], column: str, name: str, notify: Notify) -> list[Row]:
    labels = {_label(row, column) for row in rows} - {NO_LABEL}
    positive = positive_labels(labels)
    if plain_name(column) in GRADE:
        positive |= {label for label in labels if label.isdecimal() and label.strip("0")}
    elif "1" in labels and (
        classes := {label for label in labels if label.isdecimal()} - {"0", "1"}
    ):
        raise ArgumentError(
            f"{name}: column '{column}' holds {min(classes)} beside 1, so 1 need not mean a "
            "positive pair; name the classes (entailment, …), or call a column of grades "
            "'relevance'"
        )
    kept = [row for row in rows if _label(row, column) in positive]
    if not kept:
        known = ", ".join(sorted(POSITIVE_LABELS))
        raise ArgumentError(
            f"{name}: no label in column '{column}' means a positive pair (these do: {known})"
        )
    notify(f"{name}: {len(kept):,} of {len(rows):,} pairs are positive by '{column}'")
    return kept
