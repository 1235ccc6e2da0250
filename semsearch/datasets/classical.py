"""Reads the classical test collections: Cranfield, CISI, CACM, MED, NPL, TIME and similar ones.

Documents and queries are in one of three formats. SMART (Cranfield, CISI, CACM, MED, ADI): ``.I 7``
begins an entry, a dot and a letter begin a part: ``.T`` the title, ``.W`` the body; others
(authors, sources, citations, notes) are ignored. TIME: ``*TEXT 017 …`` or ``*FIND 1`` begins an
entry, ``*STOP`` ends the file. NPL: a number precedes an entry, a slash follows it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from semsearch.corpus.texts import joined_text, one_line
from semsearch.datasets.judging import Qrels, judge, relevance, retrieval_set
from semsearch.datasets.records import RetrievalSet
from semsearch.datasets.textlines import Line, numbered_lines, reading
from semsearch.errors import DatasetError

#: File names, in any case: ``cran.all.1400``, ``CISI.QRY``, ``cranqrel``, ``rlv-ass``.
_FILES = {
    "documents": re.compile(r".+\.all(\.1400)?|doc-text", re.IGNORECASE),
    "queries": re.compile(r".+\.(qry|que)|query[.-]text", re.IGNORECASE),
    "judgements": re.compile(r".+\.rel|.*qrels?(\.text|\.txt)?|rlv-ass", re.IGNORECASE),
}

#: Cranfield's codes, 1 for a complete answer to 4 for minimum interest, as grades.
_CRANFIELD_GRADES = {1: 4, 2: 3, 3: 2, 4: 1, 5: 0, -1: 0}

_SMART_ENTRY = re.compile(r"\.I\s+(\S+)\s*")
_SMART_PART = re.compile(r"\.([ABCKNTWX])\s*")
_TIME_ENTRY = re.compile(r"\*(TEXT|FIND)\s+(\d+)\b.*")
_NUMBER = re.compile(r"\s*(\d+)\s*")


def has_classical_files(folder: Path) -> bool:
    """Whether a folder contains a classical collection."""
    return all(_named(folder, pattern) for pattern in _FILES.values())


def read_classical(name: str, folder: Path) -> RetrievalSet:
    """Read a classical collection: Cranfield, CISI, CACM, MED, NPL, TIME or a similar one.

    Judgements refer to queries by the ids in the query file if it has all of them, else by their
    position. The latter is Cranfield: its queries have the ids 1, 2, 4, 8 … 365, and its judgements
    number them from 1 to 225. (With a plain tf-idf ranking, nDCG@10 is 0.34 by position and 0.01
    by id.) The ids of the result are then 1, 2, 3 …

    Judgements are ``query document relevance``, ``query 0 document relevance`` (TREC), ``query
    document`` with or without columns of zeros (CISI, CACM), or a query and all its relevant
    documents (TIME, NPL). A missing grade is 1. Three numbers in each line are read as the first of
    these formats.

    Cranfield grades from 1, a complete answer, to 4, minimum interest; these become 4 to 1, so
    that higher is better. Its code 5, no interest, and the undocumented -1 become 0. There is one
    -1 for each query, and tf-idf ranks those documents high; like most publications, we still
    count them as not relevant.

    Args:
        name: the name of the set.
        folder: a folder with its files under their published names.

    Raises:
        DatasetError: a file is missing or invalid.
    """
    files = {what: _only(folder, what) for what in _FILES}
    documents, queries = read_entries(files["documents"]), read_entries(files["queries"])
    is_cranfield = files["judgements"].name.casefold().startswith("cran")
    qrels = _judgements(files["judgements"], _cranfield_grade if is_cranfield else relevance)
    if not qrels.keys() <= queries.keys():
        by_position = {str(number): text for number, text in enumerate(queries.values(), start=1)}
        if qrels.keys() <= by_position.keys():
            queries = by_position
    return retrieval_set(name, documents, queries, qrels)


def _cranfield_grade(text: str, place: str) -> int:
    code = relevance(text, place)
    if code not in _CRANFIELD_GRADES:
        raise DatasetError(f"{place}: {code} is not one of Cranfield's codes (1 to 5, -1)")
    return _CRANFIELD_GRADES[code]


def _named(folder: Path, pattern: re.Pattern[str]) -> list[Path]:
    with reading(folder):
        return sorted(file for file in folder.iterdir() if pattern.fullmatch(file.name))


def _only(folder: Path, what: str) -> Path:
    found = _named(folder, _FILES[what])
    if len(found) != 1:
        names = ", ".join(file.name for file in found) or "none"
        raise DatasetError(f"{folder} must have one file of {what} (found: {names})")
    return found[0]


def _judgements(file: Path, grade: Callable[[str, str], int]) -> Qrels:
    lines = [line for line in numbered_lines(file) if line.text.strip()]
    rows = [line.text.split() for line in lines]
    if ["/"] in rows:
        return _listed(*_between_slashes(lines, rows))
    columns = _columns(rows)
    if columns is None:
        return _listed(lines, rows)
    query, document, code = columns
    qrels: Qrels = {}
    for line, row in zip(lines, rows, strict=True):
        _check_numbers(line, row)
        given = 1 if code is None else grade(row[code], line.place)
        judge(qrels, id_of(row[query]), id_of(row[document]), given)
    return qrels


def _columns(rows: Sequence[Sequence[str]]) -> tuple[int, int, int | None] | None:
    """The columns of query, document and relevance; None if lines list documents."""
    widths = {len(row) for row in rows}
    if len(widths) != 1:
        return None
    width = widths.pop()
    zeros = [all(re.fullmatch(r"0(\.0*)?", row[column]) for row in rows) for column in range(width)]
    if width >= 2 and all(zeros[2:]):
        return 0, 1, None
    if width == 4 and zeros[1]:
        return 0, 2, 3
    return (0, 1, 2) if width == 3 else None


def _between_slashes(
    lines: Sequence[Line], rows: Sequence[list[str]]
) -> tuple[list[Line], list[list[str]]]:
    """Join the lines between two slashes."""
    starts, joined = [], []
    entry: list[str] = []
    for line, row in zip(lines, rows, strict=True):
        if not entry:
            starts.append(line)
        entry += row
        if entry[-1] == "/":
            joined.append(entry[:-1])
            entry = []
    return starts, [*joined, entry] if entry else joined


def _listed(lines: Sequence[Line], rows: Sequence[Sequence[str]]) -> Qrels:
    """Judgements as a query followed by its relevant documents."""
    qrels: Qrels = {}
    for line, row in zip(lines, rows, strict=True):
        _check_numbers(line, row)
        for document in row[1:]:
            judge(qrels, id_of(row[0]), id_of(document), 1)
    return qrels


def _check_numbers(line: Line, row: Sequence[str]) -> None:
    if not row or not all(re.fullmatch(r"-?\d+(\.\d*)?", cell) for cell in row):
        raise DatasetError(
            f"{line.place}: judgements must be numbers, not {line.text.strip()[:40]!r}"
        )


def id_of(text: str) -> str:
    """An id without leading zeros, which only some files have."""
    return text.lstrip("0") or "0"


def read_entries(file: Path) -> dict[str, str]:
    """The texts of a file by id, in order.

    A text is its title and body (`joined_text`) with single spaces; it can be empty, like two of
    Cranfield's. The ids of TIME's documents are their positions, as in its judgements, and not the
    numbers after ``*TEXT``. Lines that are not UTF-8 are read as Latin-1.

    Raises:
        DatasetError: the file cannot be read, has an unknown format, or a duplicate id.
    """
    lines = [line for line in numbered_lines(file, fallback="latin-1") if line.text.strip()]
    first = lines[0].text if lines else ""
    if _SMART_ENTRY.fullmatch(first):
        entries = _smart(lines)
    elif _TIME_ENTRY.fullmatch(first):
        entries = _time(lines)
    elif _NUMBER.fullmatch(first):
        entries = _npl(lines)
    else:
        raise DatasetError(f"{file} must begin with '.I 1', '*TEXT', '*FIND' or a number")
    texts: dict[str, str] = {}
    for place, name, text in entries:
        if name in texts:
            raise DatasetError(f"{place}: duplicate id {name}")
        texts[name] = text
    return texts


def _smart(lines: list[Line]) -> Iterator[tuple[str, str, str]]:
    starts = [row for row, line in enumerate(lines) if _SMART_ENTRY.fullmatch(line.text)]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        parts: dict[str, list[str]] = {"T": [], "W": []}
        part: list[str] = []
        for line in lines[start + 1 : end]:
            heading = _SMART_PART.fullmatch(line.text)
            if heading:
                part = parts.setdefault(heading[1], [])
            else:
                part.append(line.text)
        title, body = _joined(parts["T"]), _joined(parts["W"])
        name = id_of(lines[start].text.split()[1])
        yield lines[start].place, name, joined_text([title, body])


def _time(lines: list[Line]) -> Iterator[tuple[str, str, str]]:
    starts = [row for row, line in enumerate(lines) if _TIME_ENTRY.fullmatch(line.text)]
    for number, (start, end) in enumerate(zip(starts, [*starts[1:], len(lines)], strict=True), 1):
        heading = _TIME_ENTRY.fullmatch(lines[start].text)
        name = heading[2] if heading and heading[1] == "FIND" else str(number)
        body = (line.text for line in lines[start + 1 : end] if line.text.strip() != "*STOP")
        yield lines[start].place, id_of(name), _joined(body)


def _npl(lines: list[Line]) -> Iterator[tuple[str, str, str]]:
    entry: list[Line] = []
    for line in lines:
        if line.text.strip() != "/":
            entry.append(line)
            continue
        number = _NUMBER.fullmatch(entry[0].text) if entry else None
        if number is None:
            raise DatasetError(
                f"{line.place}: the entry that ends here does not begin with a number"
            )
        yield entry[0].place, id_of(number[1]), _joined(line.text for line in entry[1:])
        entry = []
    if entry:
        raise DatasetError(
            f"{entry[0].place}: the entry that begins here does not end with a slash"
        )


def _joined(lines: Iterable[str]) -> str:
    return one_line(" ".join(lines))
