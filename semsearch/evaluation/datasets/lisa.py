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
from semsearch.errors import DatasetError
from semsearch.evaluation.datasets.records import Qrels, RetrievalSet, judge, retrieval_set
from semsearch.evaluation.datasets.textlines import Line, files_named, numbered_lines

logger = logging.getLogger(__name__)

_DOCUMENTS = re.compile(r"LISA\d\.\d{3}", re.IGNORECASE)
_QUERIES = re.compile(r"LISA\.QUE", re.IGNORECASE)
_JUDGEMENTS = re.compile(r"LISARJ\.NUM", re.IGNORECASE)

_BEGINNING = re.compile(r"\s*Document\s+(\d+)\s*")
_END = re.compile(r"\s*\*{20,}\s*")
_BLANK_LINE = re.compile(r"\n\s*\n")
_QUERY = re.compile(r"^\s*(\d+)\s*\n(.*?)#\s*$", re.MULTILINE | re.DOTALL)


def has_lisa_files(folder: Path) -> bool:
    """Whether a folder contains documents, queries and judgements of LISA."""
    return all(files_named(folder, pattern) for pattern in (_DOCUMENTS, _QUERIES, _JUDGEMENTS))


def read_lisa(name: str, folder: Path) -> RetrievalSet:
    """Read the collection; a document is its title and abstract (`joined_text`).

    Some document numbers occur twice: the first document is kept, the number of others is logged.
    A record without its ``Document N`` line, as in LISA1.501, is left out, and its place is logged.
    Lines that are not UTF-8 are read as Latin-1.

    Args:
        name: the name of the set.
        folder: a folder with its files under their published names.

    Raises:
        CorpusError: a file cannot be read.
        DatasetError: the judgements are not numbers, or of other queries and documents.
    """
    documents: dict[str, str] = {}
    repeated = 0
    for file in files_named(folder, _DOCUMENTS):
        for number, text in _documents(file):
            repeated += number in documents
            documents.setdefault(number, text)
    if repeated:
        logger.warning("%s: %d documents with duplicate numbers are left out", name, repeated)
    [queries, *_], [judgements, *_] = (files_named(folder, one) for one in (_QUERIES, _JUDGEMENTS))
    text = "\n".join(line.text for line in _lines(queries))
    asked = {str(int(number)): one_line(query) for number, query in _QUERY.findall(text)}
    return retrieval_set(name, documents, asked, _judgements(judgements))


def _lines(file: Path) -> Iterator[Line]:
    return numbered_lines(file, fallback="latin-1")


def _documents(file: Path) -> Iterator[tuple[str, str]]:
    lines = _lines(file)
    for line in lines:
        if not line.text.strip():
            continue
        beginning = _BEGINNING.fullmatch(line.text)
        inner = [other.text for other in takewhile(lambda one: not _END.fullmatch(one.text), lines)]
        if beginning is None:
            logger.warning("%s: a record without 'Document N' is left out", line.place)
            continue
        title_and_abstract = _BLANK_LINE.split("\n".join(inner).strip(), maxsplit=1)
        yield str(int(beginning[1])), joined_text(map(one_line, title_and_abstract))


def _judgements(file: Path) -> Qrels:
    """Judgements as a sequence of numbers; those of a query may span several lines."""
    qrels: Qrels = {}
    try:
        numbers = iter([int(cell) for line in _lines(file) for cell in line.text.split()])
    except ValueError as error:
        raise DatasetError(f"{file}: judgements must be numbers: {error}") from None
    for query in numbers:
        for document in islice(numbers, next(numbers, 0)):
            judge(qrels, str(query), str(document), 1)
    return qrels
