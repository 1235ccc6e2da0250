"""Operations of other processes on the index of `test_histories`; some are killed in them."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

from sqlalchemy import Engine, event

from semsearch import Document, Index
from semsearch.encoders import load_encoder
from semsearch.errors import SemsearchError

SPEC = "hashing:16"
OTHER_SPEC = "hashing:24"


@cache
def encoder(spec: str = SPEC):
    return load_encoder(spec)


def open_index(path: Path) -> Index:
    return Index.open(path, [encoder(), encoder(OTHER_SPEC)])


def write(index: Index, documents: Iterable[Document], skip: bool, allow: bool | None) -> None:
    """Upsert documents or, with `allow`, sync them: whether many may be removed."""
    with index.writer(**({"on_bad_row": lambda error: None} if skip else {})) as writer:
        if allow is None:
            writer.upsert(documents)
        else:
            writer.sync(documents, allow_removals=allow)


def delete(index: Index, ids: list[str] | None, where: str | None) -> None:
    index.delete(ids, where)


def maintain(index: Index, method: str, *arguments: object) -> None:
    """Call a method of the writer: ``compact``, ``repair``, ``add_space``, ``drop_space``."""
    with index.writer() as writer:
        getattr(writer, method)(*arguments)


def in_a_process(path: Path, operation: Callable, arguments: tuple, killed_at: int) -> None:
    """Run an operation; with `killed_at`, die before the statement or commit of that number.

    The exit status is 3 if semsearch raises an error.
    """
    if killed_at:
        left = killed_at

        def count(*_: object) -> None:
            nonlocal left
            left -= 1
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)

        for name in ("before_cursor_execute", "commit"):
            event.listen(Engine, name, count)
    try:
        with open_index(path) as index:
            operation(index, *arguments)
    except SemsearchError:
        os._exit(3)
    os._exit(0)
