"""Open the writer of an index."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from semsearch.arguments import check_callable, check_number, check_text
from semsearch.errors import BadRowError
from semsearch.indexing.files import FileMemory
from semsearch.indexing.ray import pool_on
from semsearch.indexing.summary import Summary
from semsearch.indexing.writer import IndexWriter
from semsearch.protocols import Encoder
from semsearch.storage.interface import Store
from semsearch.storage.spaces import Space


@contextmanager
def open_writer(
    store: Store,
    encoder_of: Callable[[Space], Encoder],
    on_bad_row: Callable[[BadRowError], None],
    on_batch: Callable[[Summary], None],
    wait: float,
    ray: str | None,
) -> Iterator[IndexWriter]:
    """A writer of an index; see `Index.writer`."""
    check_callable("on_bad_row", on_bad_row)
    check_callable("on_batch", on_batch)
    wait = check_number("wait", wait, 0)
    pool_for = pool_on(None if ray is None else check_text("ray", ray))
    with store.writer(wait=wait) as writer:
        yield IndexWriter(
            writer,
            encoder_of,
            memory=FileMemory(store.path, store.read),
            pool_for=pool_for,
            on_bad_row=on_bad_row,
            on_batch=on_batch,
        )
