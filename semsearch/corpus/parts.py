"""Parts of a corpus that other machines can read, if they have access to its files.

A large file of CSV or JSON lines is divided at line ends. Inside quotes, a line end need not be the
end of a row: lines are added to a part until its quotes match, and the reader of a part detects if
it ends inside a row nevertheless. Small files are read whole.

A part has the same contents wherever it is read. If anything is unusual (a bad row, another version
of the file, a part that ends inside a row), no contents are returned, and the part is read again
where errors can be reported.
"""

from __future__ import annotations

import codecs
import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from enum import Enum
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from semsearch.corpus.columns import Roles
from semsearch.corpus.documents import Notify, OnBadRow, silent, table_documents
from semsearch.corpus.formats import CorpusFormat, format_by_name
from semsearch.corpus.readers import Reading, read
from semsearch.corpus.sources import Progress, Source, open_source, reading, text_of
from semsearch.corpus.table import Layout, Table
from semsearch.corpus.textstream import TextStream, encoding_of
from semsearch.errors import BadRowError, CombinationError, CorpusError, refuse
from semsearch.records import Document

#: The size of parts, and of the largest file that is read whole elsewhere.
PART_BYTES, FILE_BYTES = 2 << 20, 8 << 20
#: The formats, by suffix, of files that may be divided; a .json file may hold JSON lines.
_DIVISIBLE = (CorpusFormat.CSV, CorpusFormat.TSV, CorpusFormat.JSONL, CorpusFormat.JSON)
#: The most lines added to a part until its quotes match.
MAX_LINES = 1000


class Version(NamedTuple):
    """A version of a file, which readers on all machines must find."""

    path: Path  #: absolute
    given: Path  #: as the user named it
    size: int
    modified: int  #: its time stamp in nanoseconds

    @classmethod
    def of(cls, path: Path) -> Version:
        """The current version of a file."""
        status = path.stat()
        return cls(path.absolute(), path, status.st_size, status.st_mtime_ns)

    @property
    def name(self) -> str:
        """Its name in messages."""
        return text_of(str(self.given))

    def is_here(self) -> bool:
        """Whether this machine has access to this version."""
        try:
            return self.of(self.path)[2:] == self[2:]
        except OSError:
            return False


class Part(NamedTuple):
    """Some lines of a file; picklable."""

    file: Version
    wanted: Roles
    layout: Layout
    encoding: str
    start: int  #: in bytes
    end: int
    first_line: int

    @property
    def is_last(self) -> bool:
        """Whether the file ends with it."""
        return self.end >= self.file.size

    @contextmanager
    def table(self) -> Iterator[tuple[Table, Callable[[], bool]]]:
        """Its table, and a function: whether the part, once read, ends inside a row."""
        with reading(self.file.name), self.file.path.open("rb") as file:
            file.seek(self.start)
            stream: BinaryIO = (
                file if self.is_last else io.BytesIO(file.read(self.end - self.start))
            )
            source = Source(
                self.file.name, None, b"", stream, Progress(None), None, None, ExitStack()
            )
            text = TextStream(source, self.encoding, self.layout.newline, self.first_line)
            yield self.layout.table(text)

    def rest(self) -> Part:
        """The part and everything after it in the file."""
        return self._replace(end=self.file.size)


class WholeFile(NamedTuple):
    """A small file; picklable."""

    file: Version
    wanted: Roles
    reading: Reading


class Found(Enum):
    """Why a part was not read."""

    UNSEEN = "unseen"  #: the file is missing, or has another version
    BAD = "bad"  #: it cannot be read, or has a bad row
    RAGGED = "ragged"  #: it ends inside a row


class ReadPart(NamedTuple):
    """The contents of a part.

    Args:
        documents: its documents, or what the reading machine has made of them.
        remarks: for users.
    """

    documents: Sequence[Any]
    remarks: list[str]


def read_elsewhere(part: Part | WholeFile) -> ReadPart | Found:
    """Read a part on a machine that cannot report errors."""
    if not part.file.is_here():
        return Found.UNSEEN
    remarks: list[str] = []
    try:
        if isinstance(part, WholeFile):
            with open_source(part.file.path, Progress(None), part.file.name) as source:
                table = read(source, part.reading)
                if isinstance(table, BadRowError):
                    return Found.BAD
                documents = table_documents(table, part.wanted, refuse, remarks.append)
                return ReadPart(list(documents), remarks)
        errors: list[BadRowError] = []
        with part.table() as (table, is_inside):
            documents = table_documents(table, part.wanted, errors.append, silent)
            found = list(documents)
            if is_inside() and not part.is_last:
                return Found.RAGGED
        return Found.BAD if errors else ReadPart(found, remarks)
    except (CorpusError, CombinationError):
        return Found.BAD


def read_here(part: Part, on_bad_row: OnBadRow) -> Iterator[Document]:
    """Read a part, reporting bad rows."""
    with part.table() as (table, _):
        yield from table_documents(table, part.wanted, on_bad_row, silent)


def divided(
    file: Version, wanted: Roles, options: Reading, notify: Notify
) -> Iterator[Part] | None:
    """The parts of a large file; None if it cannot be divided.

    Args:
        file: the file.
        wanted: the columns named by the user.
        options: how it is read.
        notify: called with a line about its columns.

    Raises:
        CorpusError: its beginning cannot be read.
    """
    named = options.format or format_by_name(file.given)
    if file.size <= PART_BYTES or named not in _DIVISIBLE:
        return None
    with open_source(file.path, Progress(None), file.name) as source:
        if not source.head or not source.is_plain:
            return None
        encoding = codecs.lookup(encoding_of(source.head, options.encoding)).name
        if encoding not in ("utf-8", "utf-8-sig"):
            return None
        table = read(source, options)
        if isinstance(table, BadRowError) or table.layout is None:
            return None
        next(table_documents(table, wanted, _pass, notify), None)
        return _parts(Part(file, wanted, table.layout, encoding, 0, file.size, 1))


def _parts(whole: Part) -> Iterator[Part]:
    start, line = 0, 1
    layout = whole.layout
    with reading(whole.file.name), whole.file.path.open("rb") as file:
        while block := file.read(PART_BYTES):
            block += file.readline()
            for _ in range(MAX_LINES):
                if not layout.has_quotes or block.count(b'"') % 2 == 0:
                    break
                block += file.readline()
            end = start + len(block)
            encoding = "utf-8" if start else whole.encoding
            yield whole._replace(encoding=encoding, start=start, end=end, first_line=line)
            if end >= whole.file.size:
                return
            start = end
            line += _lines(block, layout.newline)


def _lines(block: bytes, newline: str) -> int:
    """The number of lines in a block of whole lines, as `open` counts them with this `newline`."""
    count = block.count(b"\n")
    return count if newline else count + block.count(b"\r") - block.count(b"\r\n")


def _pass(error: BadRowError) -> None:
    """Ignore the error: it is reported when the rows are read."""
