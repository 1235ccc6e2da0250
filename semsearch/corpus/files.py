"""Which files of a folder are unchanged since an index has read them."""

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

#: A file that changed so lately could change again without its time stamp changing.
SETTLED_NANOSECONDS = 3_000_000_000


class FileState(NamedTuple):
    """What a file is recognised by.

    Args:
        path: where it is.
        size: in bytes.
        modified: its time stamp in nanoseconds; 0 for one too fresh to be trusted.
        reading: how it was read.
        digest: of its bytes; empty until it is computed.
    """

    path: str
    size: int
    modified: int
    reading: str
    digest: str = ""

    @classmethod
    def of(cls, path: Path, reading: str) -> FileState:
        """That of a file now."""
        status = path.stat()
        settled = abs(time.time_ns() - status.st_mtime_ns) > SETTLED_NANOSECONDS
        modified = status.st_mtime_ns if settled else 0
        place = text_of(os.path.abspath(path))  # noqa: PTH100 - a link is another place
        return cls(place, status.st_size, modified, reading)

    def with_digest(self, path: Path) -> FileState:
        """The same with the digest of its bytes."""
        with reading(str(path)), path.open("rb") as stream:
            return self._replace(digest=hashlib.file_digest(stream, "blake2b").hexdigest()[:32])


#: Gives the state in which an index has read the file of a name; None where it has none, or where
#: the documents of that file are others by now.
Known = Callable[[str], FileState | None]


@dataclass
class FolderFiles:
    """The files that one reading of a corpus meets in folders.

    Args:
        known: what an index remembers.
        read: the files that were read whole.
        unchanged: those that were not read, with their present states.
        met: the first file of each name, for another folder may have one of the same.
    """

    known: Known | None = None
    read: dict[str, FileState] = field(default_factory=dict)
    unchanged: dict[str, FileState] = field(default_factory=dict)
    met: dict[str, Path] = field(default_factory=dict)
    _is_sound: bool = True

    def looks_unchanged(self, name: str, path: Path) -> bool:
        """Whether a file has the path, size and time stamp that are remembered."""
        known = self.known(name) if self.known else None
        if known is None:
            return False
        with reading(str(path)):
            state = FileState.of(path, known.reading)
        return state.modified > 0 and state == known._replace(digest="")

    def is_unchanged(self, name: str, path: Path, state: FileState) -> bool:
        """Whether a file need not be read: by its time stamp or else, at equal size, its bytes."""
        known = self.known(name) if self.known else None
        if known is None or (known.size, known.reading) != (state.size, state.reading):
            return False
        if state.modified == 0 or state != known._replace(digest=""):
            state = state.with_digest(path)
            if state.digest != known.digest:
                return False
        self.unchanged[name] = state._replace(digest=known.digest)
        return True

    @contextmanager
    def reading(self, name: str, path: Path, state: FileState) -> Iterator[None]:
        """A file is being read; it counts as read at the end, unless `spoil` was called."""
        self._is_sound = True
        if self.known is not None:  # before it is read: what changes later is seen the next time
            state = state.with_digest(path)
        yield
        if self._is_sound and self.known is not None:
            self.read[name] = state

    def spoil(self) -> None:
        """Something in the present file cannot be used."""
        self._is_sound = False
