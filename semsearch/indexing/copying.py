"""Copies an index to another location or store, without encoding anything again."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple, cast

import numpy

from semsearch.corpus.documents import SkippedRows
from semsearch.errors import ArgumentError, SpaceError
from semsearch.indexing.changes import SeenDocuments
from semsearch.indexing.files import FileMemory
from semsearch.indexing.pool import Encoded
from semsearch.indexing.removal import Allowance, check_removal, unseen_documents
from semsearch.indexing.writer import IndexWriter
from semsearch.protocols import Encoder
from semsearch.storage import create_store, open_store
from semsearch.storage.interface import Reader, Writer, text_hash
from semsearch.storage.spaces import Space

logger = logging.getLogger(__name__)


class Copied(NamedTuple):
    """The result of a copy."""

    documents: int  #: in the target now
    written: int
    removed: int
    passages: int


def copy_index(
    source: Path,
    target: Path,
    *,
    allow_removals: Allowance = False,
    on_batch: Callable[[int, int], None] = lambda done, total: None,
) -> Copied:
    """Make an index equal to another one: its documents, passages and vectors.

    Documents that are already equal are skipped, so an interrupted copy can be continued; documents
    that the source lacks are removed.

    Args:
        source: the index to copy.
        target: the location of the copy, which is created if there is no index.
        allow_removals: whether many documents of the target may be removed; see `IndexWriter.sync`.
        on_batch: called after each batch with the number of documents done, and of all documents.

    Raises:
        SpaceError: the target has spaces of other encoders or in another order, or stores their
            vectors in another type, or a space of the source lacks vectors.
        RemovalError: more would be removed than is allowed; no document is written.
        BadRowError: the target cannot hold a document.
    """
    with closing(open_store(source)) as read, read.read() as state:
        spaces, total = state.spaces(), state.count()
        for space in spaces:
            space.check_complete(source)
        max_tokens = state.settings().max_tokens
        encoders = {space.fingerprint: _recorded(space, max_tokens) for space in spaces}
        first = [encoders[spaces[0].fingerprint]]
        with (
            closing(create_store(target, max_tokens, first)) as written,
            written.writer() as store,
        ):
            _take_spaces(store, encoders, spaces, target)
            with store.read() as copy, closing(SeenDocuments()) as kept:
                kept.add_ids(state.ids())  # the target may be another index
                removal, _ = unseen_documents(copy, kept, SkippedRows(), copy.count())
                check_removal(removal, allow_removals)
            _copy_settings(state, store)
            writer = IndexWriter(
                store,
                lambda space: encoders[space.fingerprint],
                FileMemory(target, written.read),
                lambda _: _StoredVectors(state),
                split=lambda changes: state.passages_of([change.id for change in changes]),
                on_batch=lambda summary: on_batch(summary.documents, total),
            )
            summary = writer.sync(chain.from_iterable(state.scan()), allow_removals=True)
            with store.read() as copy:
                passages = copy.info().passages
    return Copied(total, summary.documents - summary.unchanged, summary.removed, passages)


class _StoredVectors(AbstractContextManager["_StoredVectors"]):
    """A pool that looks vectors up in the source instead of encoding."""

    look_ahead = 0

    def __init__(self, state: Reader) -> None:
        self._state = state
        self._ids = {space.fingerprint: space.id for space in state.spaces()}

    def submit(self, space: Space, texts: Sequence[str]) -> Callable[[], Encoded]:
        """Look up the vectors of passages."""
        hashes = [text_hash(text) for text in texts]
        stored = self._state.vectors_of_texts(hashes)
        number = self._ids[space.fingerprint]
        places = [place for place, digest in enumerate(hashes) if (number, digest) in stored]
        vectors = numpy.array([stored[number, hashes[place]] for place in places])
        return lambda: Encoded(vectors, places, 0.0)

    def __exit__(self, *error: object) -> None:
        """Leave the source open."""


def _recorded(space: Space, max_tokens: int) -> Encoder:
    """An encoder as recorded in an index, to create its space in another one."""
    recorded = space._asdict() | {
        "max_document_tokens": max_tokens,
        "description": lambda: space.description,
    }
    return cast("Encoder", SimpleNamespace(**recorded))


def _take_spaces(
    store: Writer, encoders: Mapping[str, Encoder], spaces: Sequence[Space], place: Path
) -> None:
    """Add the spaces that an empty target lacks, and check that it has the same, in this order."""
    with store.read() as copy:
        held = {space.fingerprint: space for space in copy.spaces()}
        is_empty = not copy.count()
    for space in spaces if is_empty else ():
        if space.fingerprint not in held:
            held[space.fingerprint] = store.add_space(encoders[space.fingerprint])
        store.complete(held[space.fingerprint])
    if list(held) != list(encoders):
        names = ", ".join(space.name for space in held.values())
        raise SpaceError(
            f"{place} has other spaces ({names}) than the source, or in another order; choose "
            "another location"
        )


def _copy_settings(state: Reader, store: Writer) -> None:
    """Copy the records of corpora, BM25's language and field indexes; log what is not copied."""
    source, own = state.info(), state.settings()
    with store.read() as copy:
        target, settings = copy.info(), copy.settings()._replace(corpora=own.corpora)
    store.configure(settings)
    if source.has_words and not target.has_words:
        logger.warning("the copy has no BM25: its store cannot search words")
    elif source.language not in (None, target.language):
        with _unless_unsupported("the language of BM25"):
            store.configure(settings._replace(language=source.language))
    for name in sorted(set(source.indexed_fields) - set(target.indexed_fields)):
        with _unless_unsupported(f"the index of field '{name}'"):
            store.index_field(name)
    if own.index_type != settings.index_type:
        logger.warning("the index type (%s) is not copied", own.index_type.kind)


@contextmanager
def _unless_unsupported(what: str) -> Iterator[None]:
    try:
        yield
    except ArgumentError:
        logger.warning("%s is not copied: the store of the copy does not support it", what)
