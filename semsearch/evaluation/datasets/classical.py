"""Reads the classical test collections in SMART format: Cranfield, CISI, CACM, MED, ADI.

In documents and queries, ``.I 7`` begins an entry, a dot and a letter begin a part: ``.T`` the
title, ``.W`` the body; others (authors, sources, citations, notes) are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from semsearch.corpus.texts import joined_text, one_line
from semsearch.errors import DatasetError
from semsearch.evaluation.datasets import records
from semsearch.evaluation.datasets.records import Qrels, RetrievalSet, judge, relevance
from semsearch.evaluation.datasets.textlines import files_named, numbered_lines

#: File names, in any case: ``cran.all.1400``, ``CISI.QRY``, ``cranqrel``.
_FILES = {
    "documents": re.compile(r".+\.all(\.1400)?", re.IGNORECASE),
    "queries": re.compile(r".+\.(qry|que)|query\.text", re.IGNORECASE),
    "judgements": re.compile(r".+\.rel|.*qrels?(\.text|\.txt)?", re.IGNORECASE),
}

#: Cranfield's codes, 1 for a complete answer to 4 for minimum interest, as grades.
_CRANFIELD_GRADES = {1: 4, 2: 3, 3: 2, 4: 1, 5: 0, -1: 0}

_ENTRY = re.compile(r"\.I\s+(\S+)\s*")
_PART = re.compile(r"\.([ABCKNTWX])\s*")
_NUMBER = re.compile(r"-?\d+(\.\d*)?")
_ZERO = re.compile(r"0(\.0*)?")


def has_classical_files(folder: Path) -> bool:
    """Whether a folder contains a classical collection."""
    return all(files_named(folder, pattern) for pattern in _FILES.values())


def read_classical(name: str, folder: Path) -> RetrievalSet:
    """Read a classical collection.

    Judgements refer to queries by the ids in the query file if it has all of them, else by their
    position. The latter is Cranfield: its queries have the ids 1, 2, 4, 8 … 365, and its judgements
    number them from 1 to 225, which become the ids.

    Judgements are ``query document relevance``, ``query 0 document relevance`` (TREC), or ``query
    document`` with or without columns of zeros (CISI, CACM), whose grade is 1. Three numbers in
    each line are read as the first of these formats.

    Cranfield grades from 1, a complete answer, to 4, minimum interest; these become 4 to 1, so
    that higher is better. Its code 5, no interest, and the undocumented -1 become 0.

    Args:
        name: the name of the set.
        folder: a folder with its files under their published names.

    Raises:
        DatasetError: a file is missing or invalid.
    """
    files = {}
    for what, pattern in _FILES.items():
        found = files_named(folder, pattern)
        if len(found) != 1:
            names = ", ".join(file.name for file in found)
            raise DatasetError(f"{folder} must have one file of {what} (found: {names})")
        files[what] = found[0]
    queries, qrels = read_entries(files["queries"]), _judgements(files["judgements"])
    if not qrels.keys() <= queries.keys():
        by_position = {str(number): text for number, text in enumerate(queries.values(), start=1)}
        if qrels.keys() <= by_position.keys():
            queries = by_position
    return records.retrieval_set(name, read_entries(files["documents"]), queries, qrels)


def read_entries(file: Path) -> dict[str, str]:
    """The texts of a file by id, in order.

    A text is its title and body (`joined_text`) with single spaces; it can be empty, like two of
    Cranfield's. Lines that are not UTF-8 are read as Latin-1.

    Raises:
        CorpusError: the file cannot be read.
        DatasetError: it has no entry, or a duplicate id.
    """
    entries: dict[str, dict[str, list[str]]] = {}
    parts: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in numbered_lines(file, fallback="latin-1"):
        if entry := _ENTRY.fullmatch(line.text):
            name = _id_of(entry[1])
            if name in entries:
                raise DatasetError(f"{line.place}: duplicate id {name}")
            parts = entries[name] = {"T": [], "W": []}
            lines = []
        elif heading := _PART.fullmatch(line.text):
            lines = parts.setdefault(heading[1], [])
        else:
            lines.append(line.text)
    if not entries:
        raise DatasetError(f"{file} must begin with '.I 1'")
    return {
        name: joined_text(one_line(" ".join(parts[part])) for part in "TW")
        for name, parts in entries.items()
    }


def _judgements(file: Path) -> Qrels:
    is_cranfield = file.name.casefold().startswith("cran")
    lines = [line for line in numbered_lines(file) if line.text.strip()]
    rows = [line.text.split() for line in lines]
    query, document, grade = _columns(file, rows)
    qrels: Qrels = {}
    for line, row in zip(lines, rows, strict=True):
        if not all(map(_NUMBER.fullmatch, row)):
            raise DatasetError(f"{line.place}: judgements must be numbers, not {line.text!r}")
        value = 1 if grade is None else relevance(row[grade], line.place)
        if is_cranfield:
            if value not in _CRANFIELD_GRADES:
                raise DatasetError(f"{line.place}: {value} is no code of Cranfield (1 to 5, -1)")
            value = _CRANFIELD_GRADES[value]
        judge(qrels, _id_of(row[query]), _id_of(row[document]), value)
    return qrels


def _columns(file: Path, rows: Sequence[Sequence[str]]) -> tuple[int, int, int | None]:
    """The columns of query, document and relevance, if any."""
    widths = {len(row) for row in rows}
    width = widths.pop() if len(widths) == 1 else 0
    zeros = [all(_ZERO.fullmatch(row[column]) for row in rows) for column in range(width)]
    if width >= 2 and all(zeros[2:]):
        return 0, 1, None
    if width == 4 and zeros[1]:
        return 0, 2, 3
    if width == 3:
        return 0, 1, 2
    raise DatasetError(f"{file}: judgements must be 'query document relevance' in all lines")


def _id_of(text: str) -> str:
    """An id without leading zeros, which only some files have."""
    return text.lstrip("0") or "0"
