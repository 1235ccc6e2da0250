"""Detects files of a folder that are unchanged since an index read them."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from semsearch.corpus.sources import reading, text_of

#: A file changed more recently than this could change again without a new time stamp.
SETTLED_NANOSECONDS = 3_000_000_000


class FileState(NamedTuple):
    """Identifies a version of a file.

    Args:
        path: its absolute path.
        size: in bytes.
        modified: its time stamp in nanoseconds; 0 if too recent to be trusted.
        reading: the options it was read with.
        digest: of its bytes; empty until computed.
    """

    path: str
    size: int
    modified: int
    reading: str
    digest: str = ""

    @classmethod
    def of(cls, path: Path, reading: str) -> FileState:
        """The current state of a file."""
        status = path.stat()
        settled = abs(time.time_ns() - status.st_mtime_ns) > SETTLED_NANOSECONDS
        modified = status.st_mtime_ns if settled else 0
        absolute = text_of(os.path.abspath(path))  # noqa: PTH100 - links are not resolved
        return cls(absolute, status.st_size, modified, reading)

    def with_digest(self, path: Path) -> FileState:
        """A copy with the digest of the file's bytes."""
        with reading(str(path)), path.open("rb") as stream:
            return self._replace(digest=hashlib.file_digest(stream, "blake2b").hexdigest()[:32])


#: Returns the state in which an index read the file with this name; None if it did not, or if the
#: documents of that file have changed since.
Known = Callable[[str], FileState | None]


@dataclass
class FolderFiles:
    """The files found in folders while a corpus is read.

    Args:
        known: looks up files that an index has read.
        to_remember: the states that the index has not recorded, of files that were read completely
            or have another time stamp only.
        unchanged: the names of the files that were skipped as unchanged.
        met: the first file with each name; another folder may contain the same name.
        left_out: the files that were not read, although they are there: with other options or
            packages they could be, or they are damaged. Their documents stay in an index.
    """

    known: Known | None = None
    to_remember: dict[str, FileState] = field(default_factory=dict)
    unchanged: list[str] = field(default_factory=list)
    met: dict[str, Path] = field(default_factory=dict)
    left_out: set[str] = field(default_factory=set)
    _is_complete: bool = True

    def is_unchanged(self, name: str, path: Path, state: FileState) -> bool:
        """Whether a file can be skipped: by its time stamp or else, at equal size, by its bytes."""
        known = None if self.known is None else self.known(name)
        if known is None or (known.size, known.reading) != (state.size, state.reading):
            return False
        if state.modified == 0 or state != known._replace(digest=""):
            state = state.with_digest(path)
            if state.digest != known.digest:
                return False
            if state != known:
                self.to_remember[name] = state
        self.unchanged.append(name)
        return True

    @contextmanager
    def reading(self, name: str, path: Path, state: FileState) -> Iterator[None]:
        """Wrap the reading of a file; it counts as read unless `spoil` is called."""
        self._is_complete = True
        if self.known is not None:  # before reading, so that later changes are noticed next time
            state = state.with_digest(path)
        yield
        if self._is_complete and self.known is not None:
            self.to_remember[name] = state

    def spoil(self) -> None:
        """Mark the current file as not completely read."""
        self._is_complete = False
