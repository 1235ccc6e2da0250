"""Converts documents (PDF, DOCX …) into rows: one for each page, slide or section."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import PurePath
from typing import TYPE_CHECKING

from semsearch.corpus.conversion import converted
from semsearch.corpus.formats import ZIPPED, CorpusFormat, without_gz
from semsearch.corpus.recognition import ZIP_MAGIC, binary_likeness
from semsearch.corpus.table import Row, Table
from semsearch.corpus.textstream import encoding_of
from semsearch.errors import (
    BadFileError,
    BadRowError,
    CorpusError,
    MissingExtraError,
)
from semsearch.limits import MAX_ROW_BYTES, size_shown

if TYPE_CHECKING:
    from semsearch.corpus.sections import Parts, Section
    from semsearch.corpus.sources import Source

COLUMNS = ("id", "title", "text")

#: The modules and the distribution that each format needs; all are in the extra `files`.
_PACKAGES = {
    CorpusFormat.PDF: (("pypdfium2",), "pypdfium2"),
    CorpusFormat.DOCX: (("mammoth", "lxml"), "mammoth"),
    CorpusFormat.PPTX: (("pptx",), "python-pptx"),
    CorpusFormat.EPUB: (("lxml",), "lxml"),
    CorpusFormat.HTML: (("lxml",), "lxml"),
    CorpusFormat.XLSX: (("openpyxl",), "openpyxl"),
}


def is_readable(kind: CorpusFormat) -> bool:
    """Whether the packages that a format needs are installed."""
    modules, _ = _PACKAGES.get(kind, ((), ""))
    return all(map(find_spec, modules))


def read_document(
    source: Source, identifier: str, kind: CorpusFormat, encoding: str | None
) -> Table:
    """The table of a document: a row for each part that has text.

    The id of a part is ``report.pdf#page=3``. A damaged page or document is a bad row.

    Args:
        source: the document.
        identifier: its id.
        kind: its format.
        encoding: the encoding of HTML, if named by the user.

    Raises:
        MissingExtraError: the extra ``files`` is not installed.
    """
    if not is_readable(kind):
        raise MissingExtraError(_PACKAGES[kind][1], "files", f"reading {kind.value.upper()}")
    try:
        _check_likeness(source, kind)
        parts = converted(source, kind, encoding)
    except CorpusError as error:
        return _table(source, iter((BadFileError(source.name, str(error), identifier),)))
    return _table(source, _rows(source, identifier, parts), parts.remark)


def _check_likeness(source: Source, kind: CorpusFormat) -> None:
    """Reject files of other formats. The first bytes of a ZIP archive need not show its kind."""
    likeness = binary_likeness(source.head, encoding_of(source.head, None))
    plain_zip = likeness and likeness.format is None and source.head.startswith(ZIP_MAGIC)
    if likeness and likeness.format is not kind and not (plain_zip and kind in ZIPPED):
        raise CorpusError(str(likeness))


def convert(source: Source, kind: CorpusFormat, encoding: str | None) -> Parts:
    """Convert a document with the library for its format, whose exceptions are not caught.

    Args:
        source: the document.
        kind: its format.
        encoding: the encoding of HTML, if named by the user.
    """
    match kind:
        case CorpusFormat.PDF:
            from semsearch.corpus.pdf import read_pdf

            return read_pdf(source)
        case CorpusFormat.DOCX:
            from semsearch.corpus.office import read_docx

            return read_docx(source)
        case CorpusFormat.PPTX:
            from semsearch.corpus.office import read_pptx

            return read_pptx(source)
        case CorpusFormat.EPUB:
            from semsearch.corpus.epub import read_epub

            return read_epub(source)
        case _:
            from semsearch.corpus.html import read_html

            return read_html(source, encoding)


def _table(source: Source, rows: Iterator[Row | BadRowError], remark: str = "") -> Table:
    return Table(source.name, COLUMNS, rows, announced=False, remark=remark)


def _rows(source: Source, identifier: str, parts: Parts) -> Iterator[Row | BadRowError]:
    title = " ".join(parts.title.split()) or without_gz(PurePath(identifier)).stem
    found = False
    sections = parts.sections
    while True:
        try:
            section = next(sections, None)
        except CorpusError as error:  # the parts before it are kept
            yield BadFileError(source.name, str(error), identifier)
            return
        if section is None:
            break
        row = _row(source, identifier, title, section)
        found = found or row is not None
        if row is not None:
            yield row
    if not found:
        reason = f"has no text{parts.if_blank and '; '}{parts.if_blank}"
        yield BadFileError(source.name, reason, identifier)


def _row(source: Source, file: str, title: str, section: Section) -> Row | BadRowError | None:
    kind, number, text, heading, fault = section
    name, location = f"{file}#{kind}={number}", f"{source.name}, {kind} {number}"
    if len(text) > MAX_ROW_BYTES:
        fault = f"longer than {size_shown(MAX_ROW_BYTES)}"
    if fault:
        return BadRowError(location, fault, name)
    if not text.strip():
        return None
    if kind == "section":
        title = f"{title}: {heading}" if heading and heading != title else title
        part: dict[str, object] = {"section": heading} if heading else {}
    else:
        title, part = f"{title}, {kind} {number}", {kind: number}
    return Row(location, {"id": name, "title": title, "text": text, "file": file, **part})
