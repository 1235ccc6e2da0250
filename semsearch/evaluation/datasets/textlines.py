"""Reads numbered lines, cells and archives of published files."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from semsearch.corpus import Row, text_lines
from semsearch.errors import CorpusError, DatasetError


class Line(NamedTuple):
    """A line without its newline, and its location (``sts.csv:418``)."""

    place: str
    text: str


def numbered_lines(file: Path, *, fallback: str | None = None) -> Iterator[Line]:
    """The lines of a file in UTF-8, plain or gzipped.

    Args:
        file: the file.
        fallback: the encoding of a file that is not UTF-8, for old data sets.

    Raises:
        CorpusError: the file cannot be read, or a line is not UTF-8 or too long.
    """
    lines = text_lines(file)
    if fallback is not None:
        try:
            lines = iter(list(lines))
        except CorpusError:
            lines = text_lines(file, fallback)
    for number, text in lines:
        yield Line(f"{file}:{number}", text.removesuffix("\n"))


def cell(row: Row, column: str) -> str:
    """A cell as text; empty for a missing one."""
    value = row.fields.get(column)
    return "" if value is None else str(value)


@contextmanager
def unpacked(archive: Path) -> Iterator[Path]:
    """A temporary folder with the files of a ZIP archive.

    Raises:
        DatasetError: the archive is damaged.
    """
    with TemporaryDirectory() as folder:
        try:
            shutil.unpack_archive(archive, folder, "zip")
        except shutil.ReadError as error:
            raise DatasetError(f"{archive} is damaged: {error}") from error
        yield Path(folder)


def files_named(folder: Path, pattern: re.Pattern[str]) -> list[Path]:
    """The files of a folder whose names match a pattern, in order."""
    return sorted(file for file in folder.iterdir() if pattern.fullmatch(file.name))
