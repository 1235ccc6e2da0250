"""Decides whether the first row of a CSV file is a header or data.

Each column votes: for data if its first cell is of the same kind as the cells below (a number above
numbers, a date above dates, prose above prose, a label that occurs again), for a header if it is of
another kind. If most columns of numbers, dates or codes vote for a header, it is one: the questions
of a survey are prose above prose. A tie is a header, as is a first row with a usual column name.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from itertools import islice, pairwise

from semsearch.corpus.celltypes import is_missing, is_prose
from semsearch.corpus.columns import ID_NAMES, TEXT_NAMES, TITLE_NAMES

#: The part of a file that is examined.
MAX_RECORDS, MAX_CELL_CHARACTERS = 100, 1_000

#: Common column names, in lower case.
USUAL_NAMES = {*TEXT_NAMES, *TITLE_NAMES, *ID_NAMES}
USUAL_NAMES |= {"author", "category", "class", "date", "label", "labels", "score", "sentiment"}
USUAL_NAMES |= {"sentence1", "sentence2", "tags", "topic", "type", "url", "year"}

#: The share of cells that determines the kind of a column.
MOST = 0.9
MOSTLY_PROSE = 2 / 3
#: A column with at least this many cells and at most a fifth as many values holds labels.
ROWS_OF_LABELS = 10

_NUMBER = re.compile(
    r"[-+]?[$€£]?(?:\d[\d,]*+(?:\.\d*+)?|\.\d++|\d{1,3}(?:\.\d{3})+,\d+)(?:[eE][-+]?\d+)?"
    r"(?: ?(?:[%€$£]|[A-Z]{3}))?"
)
_YEAR = re.compile(r"(?:19|20)\d\d|2100")
_OFFSET = r"[-+]\d\d?(?::?\d\d)?"
_ZONE = rf"(?:Z|[A-Z]{{3,4}}(?:{_OFFSET})?|{_OFFSET})"
_CLOCK = rf"(?:(?:T|,? )\d\d?:\d\d(?::\d\d(?:\.\d+)?)?(?: ?[AP]\.?M\.?)?(?: ?{_ZONE})?)?"
_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
_KINDS = {
    "date": re.compile(
        rf"(?:\d{{4}}[-/.]\d\d?[-/.]\d\d?|\d\d?[-/.]\d\d?[-/.]\d{{2,4}}){_CLOCK}"
        rf"|(?:[a-z]{{3}},? )?\d\d?[- ]{_MONTH}[- ]\d{{2,4}}.{{0,20}}"
        rf"|(?:[a-z]{{3}},? )?{_MONTH} \d\d?,? .{{0,24}}\d{{4}}{_CLOCK}",
        re.IGNORECASE,
    ),
    "time": re.compile(r"\d\d?:\d\d(?::\d\d)?(?: ?[ap]m)?", re.IGNORECASE),
    "url": re.compile(r"(?:https?://|www\.)\S+", re.IGNORECASE),
    "address": re.compile(r"[^@\s]+@[^@\s]+\.[a-z]+", re.IGNORECASE),
    "hash": re.compile(r"(?=.*\d)[0-9a-f-]{16,}", re.IGNORECASE),
}
#: Signs of missing values; ``#`` and ``%`` name columns.
_MISSING_SIGN = re.compile(r"[-–—.?*]+")
_CODE_MAX_CHARACTERS = 40
_DIGITS = re.compile(r"\d+")


def has_header(records: Iterable[Sequence[str]], wanted: Collection[str] = ()) -> bool:
    """Whether the first of these records is a header.

    Args:
        records: the first records of a file; at least one.
        wanted: column names given by the user; a record with one of them is a header.
    """
    first, *below = (
        [cell[:MAX_CELL_CHARACTERS].strip() for cell in record]
        for record in islice(records, MAX_RECORDS)
    )
    if any(name in first for name in wanted if not name.isdecimal()):
        return True
    # Concatenated files repeat their header in the middle.
    rows = [row for row in below if len(row) == len(first) and row != first]
    columns = [[row[i] for row in rows if row[i]] for i in range(len(first))]
    for name, cells in zip(first, columns, strict=True):
        if name.lower() in USUAL_NAMES and name not in cells:
            return True
    named = [name for name in first if name]
    votes = 1 if len(set(named)) < len(named) else 0  # column names are distinct
    kinds = 0
    numbering = _is_numbering(first)
    for name, cells in zip(first, columns, strict=True):
        if name and cells and not (numbering and _NUMBER.fullmatch(name)):
            most = _most(map(_kind, cells))
            if most is None:
                votes += _vote(name, cells)
            else:
                kinds += _kind_vote(name, most)
    return kinds < 0 or kinds + votes <= 0


def _kind_vote(name: str, most: str) -> int:
    """1 if the first cell of a column is of the same kind as the others, -1 if not; 0 if undecided.

    A year above numbers may be a number, or the name of a column; ``NA`` or ``-``, a missing value.
    """
    kind = _kind(name)
    if kind == most:
        return 1
    if is_missing(name) or _MISSING_SIGN.fullmatch(name):
        return 0
    return 0 if most == "number" and kind == "year" else -1


def _vote(name: str, cells: Sequence[str]) -> int:
    """1 if the first cell of a column is data like the others, -1 if not; 0 if undecided."""
    if name in cells:
        return 1
    if sum(map(is_prose, cells)) >= MOSTLY_PROSE * len(cells):
        short = sorted(map(len, cells))[len(cells) // 10]
        if 2 * len(name) < short:
            return -1
        return 1 if is_prose(name) else 0
    if len(cells) >= ROWS_OF_LABELS and 5 * len(set(cells)) <= len(cells):
        return -1
    return 0


def _kind(cell: str) -> str | None:
    """The kind of a cell by its form; for a code like ``doc-17``, its pattern ``doc-9``."""
    if _YEAR.fullmatch(cell):
        return "year"
    if _NUMBER.fullmatch(cell):
        return "number"
    for kind, form in _KINDS.items():
        if form.fullmatch(cell):
            return kind
    if len(cell) <= _CODE_MAX_CHARACTERS and " " not in cell and _DIGITS.search(cell):
        return _DIGITS.sub("9", cell)
    return None


def _most(kinds: Iterable[str | None]) -> str | None:
    """The most frequent kind, if frequent enough; years among numbers are numbers."""
    counts = Counter(kinds)
    if counts["number"]:
        counts["number"] += counts.pop("year", 0)
    kind, count = counts.most_common(1)[0]
    return kind if count >= MOST * counts.total() else None


def _is_numbering(first: Iterable[str]) -> bool:
    """Whether the numbers in the first row number columns (0, 1, 2 …) or years (2019, 2020 …)."""
    numbers = [int(cell) for cell in first if re.fullmatch(r"\d{1,4}", cell)]
    if len(numbers) < 2:
        return False
    steps = {after - before for before, after in pairwise(numbers)}
    return steps == {1} or (
        min(steps) > 0 and all(_YEAR.fullmatch(str(number)) for number in numbers)
    )
