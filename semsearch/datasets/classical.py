"""The classical test collections: which files they are, and judgements in all their dialects."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from semsearch.datasets.judging import Qrels, judge, relevance, retrieval_set
from semsearch.datasets.records import RetrievalSet
from semsearch.datasets.smart import id_of, read_entries
from semsearch.datasets.textlines import Line, cells_of, numbered_lines, reading
from semsearch.errors import DatasetError

#: File names, in any case: ``cran.all.1400``, ``CISI.QRY``, ``cranqrel``, ``rlv-ass``.
_FILES = {
    "documents": re.compile(r".+\.all(\.1400)?|doc-text", re.IGNORECASE),
    "queries": re.compile(r".+\.(qry|que)|query[.-]text", re.IGNORECASE),
    "judgements": re.compile(r".+\.rel|.*qrels?(\.text|\.txt)?|rlv-ass", re.IGNORECASE),
}

#: Cranfield's codes, 1 for a complete answer to 4 for minimum interest, as grades.
_CRANFIELD_GRADES = {1: 4, 2: 3, 3: 2, 4: 1, 5: 0, -1: 0}


def has_classical_files(folder: Path) -> bool:
    """Whether a folder holds a collection of this kind."""
    return all(_named(folder, pattern) for pattern in _FILES.values())


def read_classical(name: str, folder: Path) -> RetrievalSet:
    """Read a classical collection: Cranfield, CISI, CACM, MED, NPL, TIME or one like them.

    Judgements count queries by the ids in the query file, if that has them all, else by their
    order. The latter is Cranfield: its queries are labelled 1, 2, 4, 8 … 365, and its judgements
    count them from 1 to 225. (By a plain tf-idf ranking nDCG@10 is 0.34 by order and 0.01 by
    label.) The queries of the result are then called 1, 2, 3 …

    Judgements are ``query document relevance``, ``query 0 document relevance`` (TREC), ``query
    document`` with or without columns of zeros (CISI, CACM), or a query and all documents that
    are relevant to it (TIME, NPL). Where a file says no grade, it is 1. A file with three numbers
    in each line is taken for the first of these.

    Cranfield grades from 1, a complete answer, to 4, minimum interest; here these are 4 to 1, so
    that higher is better. Its code 5, no interest, and -1, which no readme explains, are 0. There
    is one -1 for each query, and tf-idf ranks those documents high; as most publications do, we
    count them as not relevant all the same.

    Args:
        name: what the set is called.
        folder: where its files are, under the names that they are published with.

    Raises:
        DatasetError: a file is missing, or a line of it is wrong.
    """
    files = {what: _the(folder, what) for what in _FILES}
    documents, queries = read_entries(files["documents"]), read_entries(files["queries"])
    is_cranfield = files["judgements"].name.casefold().startswith("cran")
    qrels = _judgements(files["judgements"], _cranfield_grade if is_cranfield else relevance)
    if not qrels.keys() <= queries.keys():
        by_order = {str(place): text for place, text in enumerate(queries.values(), start=1)}
        if qrels.keys() <= by_order.keys():
            queries = by_order
    return retrieval_set(name, documents, queries, qrels)


def _cranfield_grade(text: str, place: str) -> int:
    code = relevance(text, place)
    if code not in _CRANFIELD_GRADES:
        raise DatasetError(f"{place}: {code} is none of Cranfield's codes (1 to 5, -1)")
    return _CRANFIELD_GRADES[code]


def _named(folder: Path, pattern: re.Pattern[str]) -> list[Path]:
    with reading(folder):
        return sorted(file for file in folder.iterdir() if pattern.fullmatch(file.name))


def _the(folder: Path, what: str) -> Path:
    found = _named(folder, _FILES[what])
    if len(found) != 1:
        told = ", ".join(file.name for file in found) or "none"
        raise DatasetError(f"{folder} needs one file of {what} ({told} there)")
    return found[0]


def _judgements(file: Path, grade: Callable[[str, str], int]) -> Qrels:
    lines = [line for line in numbered_lines(file) if line.text.strip()]
    rows = [cells_of(line) for line in lines]
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
    """Where query, document and relevance stand; None where lines list documents."""
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
    """The lines between two slashes as one."""
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
    """A query, then the documents that are relevant to it."""
    qrels: Qrels = {}
    for line, row in zip(lines, rows, strict=True):
        _check_numbers(line, row)
        for document in row[1:]:
            judge(qrels, id_of(row[0]), id_of(document), 1)
    return qrels


def _check_numbers(line: Line, row: Sequence[str]) -> None:
    if not row or not all(re.fullmatch(r"-?\d+(\.\d*)?", cell) for cell in row):
        raise DatasetError(f"{line.place}: not a judgement in numbers: {line.text.strip()[:40]!r}")
