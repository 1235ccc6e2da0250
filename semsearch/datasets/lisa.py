"""Reads LISA, a collection of library science abstracts, in its published layout.

Documents are in files ``LISA0.001``, ``LISA0.501`` …: ``Document 17``, lines of the title, a blank
line, the abstract, a line of asterisks. ``LISA.QUE``: a number, then the lines of a query up to one
that ends with ``#``. ``LISARJ.NUM``: a query, the number of its relevant documents, and their ids.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from itertools import islice, takewhile
from pathlib import Path

from semsearch.corpus.texts import joined_text, one_line
from semsearch.datasets.judging import Qrels, judge, retrieval_set
from semsearch.datasets.records import RetrievalSet
from semsearch.datasets.textlines import Line, numbered_lines, reading
from semsearch.errors import DatasetError

logger = logging.getLogger(__name__)

_DOCUMENTS = re.compile(r"LISA\d\.\d{3}", re.IGNORECASE)
_QUERIES = re.compile(r"LISA\.QUE", re.IGNORECASE)
_JUDGEMENTS = re.compile(r"LISARJ\.NUM", re.IGNORECASE)

_BEGINNING = re.compile(r"\s*Document\s+([0-9]{1,9})\s*")
_END = re.compile(r"\s*\*{20,}\s*")
_BLANK_LINE = re.compile(r"\n\s*\n")
_NUMBER = re.compile(r"\s*[0-9]{1,9}\s*")


def has_lisa_files(folder: Path) -> bool:
    """Whether a folder contains documents, queries and judgements of LISA."""
    return all(_named(folder, pattern) for pattern in (_DOCUMENTS, _QUERIES, _JUDGEMENTS))


def read_lisa(name: str, folder: Path) -> RetrievalSet:
    """Read the collection; a document is its title and abstract (`joined_text`).

    Some document numbers occur twice: the first document is kept, the number of others is logged.
    A record without its ``Document N`` line, as in LISA1.501, is left out, and its place is logged.
    Lines that are not UTF-8 are read as Latin-1.

    Args:
        name: the name of the set.
        folder: a folder with its files under their published names.

    Raises:
        DatasetError: a file cannot be read or is invalid.
    """
    documents: dict[str, str] = {}
    repeated = 0
    for file in _named(folder, _DOCUMENTS):
        for number, text in _documents(file):
            repeated += number in documents
            documents.setdefault(number, text)
    if repeated:
        logger.warning("%s: %d documents with duplicate numbers are left out", name, repeated)
    queries, judgements = (_only(folder, pattern) for pattern in (_QUERIES, _JUDGEMENTS))
    return retrieval_set(name, documents, dict(_queries(queries)), _judgements(judgements))


def _only(folder: Path, pattern: re.Pattern[str]) -> Path:
    first, *others = _named(folder, pattern)
    if others:
        raise DatasetError(f"{first} and {others[0].name} differ only in case; remove one")
    return first


def _named(folder: Path, pattern: re.Pattern[str]) -> list[Path]:
    with reading(folder):
        return sorted(file for file in folder.iterdir() if pattern.fullmatch(file.name))


def _lines(file: Path) -> Iterator[Line]:
    return numbered_lines(file, fallback="latin-1")


def _documents(file: Path) -> Iterator[tuple[str, str]]:
    lines = _lines(file)
    has_begun = False
    for line in lines:
        if not line.text.strip():
            continue
        beginning = _BEGINNING.fullmatch(line.text)
        inner = [other.text for other in takewhile(lambda one: not _END.fullmatch(one.text), lines)]
        if beginning is None:
            if not has_begun:  # no file of documents
                raise DatasetError(f"{line.place}: a document must begin with 'Document N'")
            logger.warning("%s: a record without 'Document N' is left out", line.place)
            continue
        has_begun = True
        title_and_abstract = _BLANK_LINE.split("\n".join(inner).strip(), maxsplit=1)
        yield str(int(beginning[1])), joined_text(map(one_line, title_and_abstract))


def _queries(file: Path) -> Iterator[tuple[str, str]]:
    lines = _lines(file)
    for line in lines:
        if not line.text.strip():
            continue
        if not _NUMBER.fullmatch(line.text):
            raise DatasetError(f"{line.place}: a query must begin with a number")
        words: list[str] = []
        for inner in lines:
            words.append(inner.text)
            if inner.text.rstrip().endswith("#"):
                break
        else:
            raise DatasetError(f"{line.place}: the query that begins here does not end with '#'")
        yield str(int(line.text)), one_line(" ".join(words).rstrip().removesuffix("#"))


def _judgements(file: Path) -> Qrels:
    """Judgements as a sequence of numbers; those of a query may span several lines."""
    qrels: Qrels = {}
    numbers = _numbers(file)
    for place, query in numbers:
        _, count = next(numbers, (place, 0))
        documents = [str(number) for _, number in islice(numbers, count)]
        if len(documents) < count:
            raise DatasetError(f"{place}: {len(documents)} documents of query {query}, not {count}")
        for document in documents:
            judge(qrels, str(query), document, 1)
    return qrels


def _numbers(file: Path) -> Iterator[tuple[str, int]]:
    for line in _lines(file):
        for cell in line.text.split():
            if not _NUMBER.fullmatch(cell):
                raise DatasetError(f"{line.place}: judgements must be numbers, not {cell[:40]!r}")
            yield line.place, int(cell)
