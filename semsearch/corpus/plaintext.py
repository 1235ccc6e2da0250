"""Reads plain text: a file as one document, a folder as one document a file."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from semsearch.corpus.formats import CorpusFormat, format_by_name, without_gz
from semsearch.corpus.sources import open_source, reading, text_of
from semsearch.corpus.table import MAX_ROW_BYTES, Row, Table, size_shown
from semsearch.corpus.textstream import TextStream
from semsearch.errors import BadRowError, CorpusError

if TYPE_CHECKING:
    from semsearch.corpus.sources import Progress, Source

__all__ = ["read_folder", "read_text", "text_files"]

_COLUMNS = ("id", "title", "text")

#: How far a heading is looked for: a text may have millions of lines, and no heading.
HEADING_WITHIN_CHARACTERS = 1 << 20


def read_text(source: Source, encoding: str | None) -> Table:
    """The table of a single text: one row, which is called what the file is called."""
    identifier = PurePath(source.name).as_posix()
    rows = iter((_row(source, identifier, encoding),))
    return Table(source.name, _COLUMNS, rows, announced=False)


def read_folder(folder: Path, encoding: str | None, progress: Progress) -> Table:
    """The table of all texts in a folder: one row a file, called by its path inside the folder.

    Raises:
        CorpusError: when there is none, or later where a file cannot be read.
    """
    files = text_files(folder)
    first = next(files, None)
    if first is None:
        raise CorpusError(f"{folder} has no .txt or .md files")
    rows = _rows(folder, chain((first,), files), encoding, progress)
    return Table(str(folder), _COLUMNS, rows, announced=False)


def text_files(folder: Path) -> Iterator[Path]:
    """The texts in a folder and the folders in it, in the order of their paths.

    Hidden ones are left out, and so are linked folders, which may lead round in a circle.
    """
    pending = [folder]
    while pending:
        path = pending.pop()
        with reading(str(path)):
            entries = [*filter(_is_wanted, path.iterdir())] if path.is_dir() else None
        if entries is None:
            yield path
        else:
            pending.extend(sorted(entries, key=lambda entry: entry.name, reverse=True))


def _is_wanted(entry: Path) -> bool:
    if entry.name.startswith("."):
        return False
    if entry.is_dir():
        return not entry.is_symlink()
    return format_by_name(entry) is CorpusFormat.TEXT


def _rows(
    folder: Path, files: Iterator[Path], encoding: str | None, progress: Progress
) -> Iterator[Row | BadRowError]:
    for path in files:
        with open_source(path, progress) as source:
            row = _row(source, text_of(path.relative_to(folder).as_posix()), encoding)
        yield row


def _row(source: Source, identifier: str, encoding: str | None) -> Row | BadRowError:
    text = TextStream(source, encoding, newline=None).read(MAX_ROW_BYTES + 1)
    if len(text) > MAX_ROW_BYTES:
        reason = f"longer than {size_shown(MAX_ROW_BYTES)}"
        return BadRowError(source.name, reason, document_id=identifier)
    path = without_gz(PurePath(source.name))
    title = _heading(text) if path.suffix.lower() == ".md" else None
    return Row(source.name, {"id": identifier, "title": title or path.stem, "text": text})


def _heading(markdown: str) -> str | None:
    """The first heading of a Markdown text: ``# This`` or a line underlined with ``===``."""
    fence = previous = ""
    for line in map(str.strip, markdown[:HEADING_WITHIN_CHARACTERS].split("\n")):
        if fence:
            fence = "" if line.startswith(fence) else fence
        elif line.startswith(("```", "~~~")):
            fence = line[:3]
        elif previous and line and not line.strip("="):
            return previous
        elif line.startswith("#") and (title := _after_hashes(line)):
            return title
        previous = line
    return None


def _after_hashes(line: str) -> str:
    """``Title`` of ``## Title ##``; nothing if it is no heading (``#hashtag``)."""
    hashes, _, title = line.replace("\t", " ").partition(" ")
    words, _, closing = title.rpartition(" ")
    if hashes.strip("#") or len(hashes) > 6:
        return ""
    return (title if closing.strip("#") else words).strip()
