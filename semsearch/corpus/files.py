"""Detects files of a folder that are unchanged since an index read them."""

from __future__ import annotations

import time
from collections.abc import Callable
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
        options: those that it was read with.
    """

    path: str
    size: int
    modified: int
    options: str

    @classmethod
    def of(cls, path: Path, options: str) -> FileState:
        """The current state of a file."""
        with reading(str(path)):
            status = path.stat()
        settled = abs(time.time_ns() - status.st_mtime_ns) > SETTLED_NANOSECONDS
        modified = status.st_mtime_ns if settled else 0
        return cls(text_of(str(path.absolute())), status.st_size, modified, options)


@dataclass
class FolderFiles:
    """The files found in folders while a corpus is read.

    Args:
        known: returns the state in which an index read the file with this name; None if it did
            not, or if the documents of that file have changed since.
        to_remember: the states of the files that were read completely.
        unchanged: the names of the files that were skipped as unchanged.
        left_out: the files that were not read, although they are there: with other options or
            packages they could be, or they are damaged. Their documents stay in an index.
    """

    known: Callable[[str], FileState | None] = lambda name: None
    to_remember: dict[str, FileState] = field(default_factory=dict)
    unchanged: list[str] = field(default_factory=list)
    left_out: set[str] = field(default_factory=set)
