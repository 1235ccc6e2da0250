"""Tables of sentence pairs with a score or a label, whatever their columns are called."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain, pairwise
from pathlib import Path
from typing import NamedTuple

from semsearch.datasets.paircolumns import (
    Choice,
    Layout,
    PairColumns,
    find_layout,
    finite_number,
)
from semsearch.datasets.records import LabelledPair, ScoredPair
from semsearch.datasets.table import Row, plain_name, read_rows
from semsearch.errors import DatasetError
from semsearch.texts import quantity

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


#: Fewer scores look like anything.
LEAST_TO_JUDGE = 3
_WHOLE_NUMBER = re.compile(r"\s*[+-]?[0-9]+\s*")
_NAMES_SHOWN = 5


class ScoredTable(NamedTuple):
    """What a table of scored pairs holds."""

    pairs: list[ScoredPair]
    unscored: int  #: rows without a gold score
    columns: str  #: for people: which columns were taken


def read_scored_table(file: Path, wanted: PairColumns | None = None) -> ScoredTable:
    """The pairs of a table that have a gold score.

    The header names two text columns (``sentence1`` and ``sentence2``, or as in TEXT_COLUMNS)
    and a score (as in SCORE_COLUMNS). Without a header there are three columns, two texts and a
    number; or those of STS Benchmark. Whole numbers that may as well be classes or ids are gold
    scores only where the user names their column; 0 and 1 in the last column always can be.

    Args:
        file: CSV or TSV, ``.gz`` too.
        wanted: columns as the user names them.

    Raises:
        DatasetError: the file cannot be read, has other columns, or a gold is no number, or the
            numbers can be no gold scores.
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
    if len(gold) >= LEAST_TO_JUDGE:
        reason = _why_no_scores(gold, layout, whole)
        if reason:
            raise DatasetError(f"{file}: {column} {reason}")
    texts = " and ".join(layout.shown(place) for place in (layout.left, layout.right))
    span = f" ({min(gold):g} to {max(gold):g})" if gold else ""
    return ScoredTable(
        pairs, unscored, f"{file.name}: texts from {texts}, gold scores from {column}{span}"
    )


def _why_no_scores(gold: Sequence[float], layout: Layout, whole: bool) -> str | None:
    """Why these numbers can be no gold scores, or nobody has said that they are."""
    values = sorted(set(gold))
    if len(values) == 1:
        return f"holds {values[0]:g} in all rows: nothing correlates with that"
    if layout.choice is Choice.USER:
        return None
    way_out = "if these are gold scores all the same, name it with --score-column"
    if whole and len(gold) >= 10 and all(after - one == 1 for one, after in pairwise(gold)):
        return f"counts the rows; {way_out}"
    is_named = layout.header is not None and plain_name(layout.header[layout.value]) != "label"
    is_last = layout.value > max(layout.left, layout.right)
    if not whole or is_named or (layout.choice is Choice.HEADER and layout.header is None):
        return None
    if values == [0, 1] and (is_last or layout.header is not None):
        return None
    shown = ", ".join(f"{value:g}" for value in values[:_NAMES_SHOWN])
    more = ", …" if len(values) > _NAMES_SHOWN else ""
    return f"holds whole numbers that may be classes or ids ({shown}{more}); {way_out}"


def read_labelled_table(file: Path) -> list[LabelledPair]:
    """The pairs of a table that have a label; those labelled ``-`` or nothing are left out.

    Columns are found as `read_scored_table` finds them, a label (LABEL_COLUMNS) for the score.

    Raises:
        DatasetError: the file cannot be read, or has other columns.
    """
    _, rows = _pair_rows(file, LABEL_COLUMNS, "label", None)
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
    score = finite_number(text)
    if score is None:
        raise DatasetError(f"{place}: the gold score is no number: {text.strip()[:40]!r}")
    return score


def _pair_rows(
    file: Path, names: Sequence[str], what: str, wanted: PairColumns | None
) -> tuple[Layout, Iterator[tuple[Row, tuple[str, str, str]]]]:
    rows = read_rows(file)
    first = next(rows)
    layout = find_layout(first, names, what, wanted or PairColumns())
    if layout.header is None:
        rows = chain([first], rows)
    return layout, _cells(rows, layout)


def _cells(rows: Iterator[Row], layout: Layout) -> Iterator[tuple[Row, tuple[str, str, str]]]:
    places = layout.left, layout.right, layout.value
    for row in rows:
        if len(row.cells) <= max(places):
            raise DatasetError(
                f"{row.place}: {quantity(len(row.cells), 'column')}; {max(places) + 1} needed"
            )
        left, right, value = (row.cells[place] for place in places)
        yield row, (left, right, value)
