"""Copies an index to another location or store, without encoding anything again."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import numpy

from semsearch.encoders import EncodesSentences
from semsearch.errors import DamagedIndexError, IndexStoreError, SpaceError
from semsearch.index.removal_plan import (
    Allowance,
    check_allowance,
    check_removal,
    forget_size,
    note_size,
    planned_removal,
)
from semsearch.protocols import Matrix, TokenSpans
from semsearch.stores import create_store, open_store
from semsearch.stores.protocol import (
    NewDocument,
    Seen,
    Selection,
    Space,
    Store,
    StoreState,
    StoreWriter,
    TextVectors,
    misfits,
)
from semsearch.vector_indexes import IndexType

logger = logging.getLogger(__name__)

DOCUMENTS_AT_ONCE = 1024
#: The number of documents compared at the end, spread over the whole index.
SAMPLE_DOCUMENTS = 100
#: The tolerated difference of vector components: copies are exact, except for rounding by stores
#: that normalise the vectors they read.
TOLERANCE = 1e-6


class Copied(NamedTuple):
    """The result of a copy."""

    documents: int = 0  #: in the target now
    written: int = 0
    removed: int = 0
    passages: int = 0


def copy_index(
    source: Path,
    target: Path,
    *,
    allow_removals: Allowance = False,
    wait: float = 0,
    on_batch: Callable[[int, int], None] = lambda done, total: None,
) -> Copied:
    """Make an index equal to another one: its documents, passages and vectors.

    Documents that are already equal are skipped, so an interrupted copy can be continued; documents
    that the source lacks are removed.

    Args:
        source: the index to copy.
        target: the location of the copy, which is created if there is no index.
        allow_removals: whether many documents of the target may be removed; see `IndexWriter.sync`.
        wait: how many seconds to wait for another process that is writing the target.
        on_batch: called after each batch with the number of documents done, and of all documents.

    Raises:
        ArgumentError: `allow_removals` has the wrong type.
        SpaceError: the target has spaces of other encoders or in another order, or stores their
            vectors in another type, or a space of the source lacks vectors.
        RemovalError: more would be removed than is allowed; the target stays as it is.
        IndexStoreError: the copy is not equal to the source.
    """
    check_allowance(allow_removals)
    with closing(open_store(source)) as read, read.read() as state:
        spaces = state.spaces()
        for space in spaces:
            if not space.complete:
                raise SpaceError(f"space '{space.name}' of {source} still lacks vectors")
        with (
            closing(_target(target, state.max_tokens, spaces)) as written,
            written.writer(wait=wait) as writer,
        ):
            _take_spaces(writer, state.max_tokens, spaces, target)
            others = _check_removal(state, writer, allow_removals)
            _carry_language(state, writer)
            count = _copy(state, writer, on_batch)
            removed = writer.remove(others) if others else 0
            writer.note_corpora(state.corpora)
            forget_size(writer)
            writer.optimise()
            with writer.state() as copy:
                passages = _check_equal(state, copy, source, target)
                return Copied(copy.count(), count, removed, passages)


class _Described(EncodesSentences):
    """An encoder as recorded in an index, to create its space in another index."""

    def __init__(self, space: Space, max_tokens: int) -> None:
        self.spec = space.spec
        self.fingerprint = space.fingerprint
        self.dimension = space.dimension
        self.max_document_tokens = max_tokens
        self.max_query_tokens = None
        self._description = space.description

    def description(self) -> Mapping[str, Any]:
        return self._description

    def token_spans(self, text: str) -> TokenSpans:
        raise NotImplementedError

    def encode_queries(self, texts: Sequence[str]) -> Matrix:
        raise NotImplementedError

    def encode_documents(self, texts: Sequence[str]) -> Matrix:
        raise NotImplementedError


def _target(place: Path, max_tokens: int, spaces: Sequence[Space]) -> Store:
    """The target, created with the first space if there is none."""
    return create_store(place, max_tokens, [_Described(spaces[0], max_tokens)], spaces[0].dtype)


def _take_spaces(
    writer: StoreWriter, max_tokens: int, spaces: Sequence[Space], place: Path
) -> None:
    """Add the spaces that an empty target lacks, and check that it has the same.

    Raises:
        SpaceError: it has others or another default, or stores vectors in another type.
    """
    with writer.state() as copy:
        held = {space.fingerprint: space for space in copy.spaces()}
        is_empty = not copy.count()
    for space in spaces if is_empty else ():
        if space.fingerprint not in held:
            added = writer.add_space(_Described(space, max_tokens), space.dtype)
            held[space.fingerprint] = added
        writer.mark_complete(held[space.fingerprint])
    if list(held) != [space.fingerprint for space in spaces]:
        raise SpaceError(
            f"{place} has the spaces {_listed(held.values())}, not {_listed(spaces)} of the source "
            "(compared by their models and order); choose another location"
        )
    for space in spaces:
        held[space.fingerprint].check_dtype(space.dtype)


def _listed(spaces: Iterable[Space]) -> str:
    return ", ".join(space.name for space in spaces)


def _check_removal(
    state: StoreState, writer: StoreWriter, allow_removals: Allowance
) -> Selection | None:
    """The documents that the source lacks, if there are any and they may be removed.

    It is checked before documents are written, because these would count in the total; those that
    an interrupted copy has written do not.

    Raises:
        RemovalError: they may not be removed.
    """
    others = Selection(unseen=True)
    ids = state.ids()
    with writer.state() as copy:
        copy.begin_run()
        for start in range(0, len(ids), DOCUMENTS_AT_ONCE):
            copy.mark_seen(dict.fromkeys(ids[start : start + DOCUMENTS_AT_ONCE], Seen("", 0)))
        removal = planned_removal(copy, others)._replace(settled=copy.unfinished_sync)
    check_removal(removal, allow_removals)
    return others if removal.documents else None


def _carry_language(state: StoreState, writer: StoreWriter) -> None:
    """Copy the language of BM25 and the field indexes; log what remains different."""
    source = state.info()
    with writer.state() as copy:
        target = copy.info()
        index_type = copy.index_type
    if source.language is not None and source.language != target.language:
        if target.has_words:
            writer.set_language(source.language)
        else:
            logger.warning("BM25's language '%s' is not copied", source.language.name)
    elif source.language is None and target.language is not None:
        logger.warning("the copy keeps BM25's language '%s'", target.language.name)
    elif source.has_words and not target.has_words:
        logger.warning("the copy has no BM25: its store cannot search words")
    lacking = sorted(set(source.indexed_fields) - set(target.indexed_fields))
    for name in lacking:
        try:
            writer.index_field(name)
        except IndexStoreError:
            logger.warning("the index of field '%s' is not copied; filters work without it", name)
    if state.index_type != index_type:
        logger.warning(
            "the index type is not copied: the source has %s; the copy %s",
            _settings(state.index_type),
            _settings(index_type),
        )


def _settings(index_type: IndexType) -> str:
    return f"{index_type.kind}, recall {index_type.recall:g}"


def _copy(state: StoreState, writer: StoreWriter, on_batch: Callable[[int, int], None]) -> int:
    """Write documents that are missing or different in the target; returns their number."""
    with writer.state() as copy:
        spaces = _matching(state.spaces(), copy.spaces())
    total, done, count, last = state.count(), 0, 0, 0
    while found := state.documents_after(last, DOCUMENTS_AT_ONCE):
        last = max(found)
        ids = [str(document.id) for document in found.values()]
        stored = state.known(ids)
        with writer.state() as copy:
            copy.mark_seen(dict.fromkeys(ids, Seen("", 0)))  # some may be new in the source
            copied = copy.known(ids)
        lacking = [name for name in ids if not _is_equal(stored[name], copied.get(name))]
        if lacking:
            passages = state.passages_of(lacking)
            digests = {one.text_hash for listed in passages.values() for one in listed}
            texts = {str(document.id): document.text for document in found.values()}
            new = [
                NewDocument(
                    name,
                    texts[name],
                    stored[name].title,
                    stored[name].metadata,
                    stored[name].text_hash,
                    passages[name],
                )
                for name in lacking
            ]
            for name, reason in misfits(writer, new).items():
                raise IndexStoreError(
                    f"document '{name}': {reason}; shorten or delete it in the source"
                )
            found_vectors = state.vectors_of(sorted(digests))
            if {(number, digest) for number in spaces for digest in digests} - found_vectors.keys():
                raise DamagedIndexError(
                    "a passage has no vector, or a damaged one; see: semsearch verify --repair"
                )
            if not count:
                note_size(writer)
            writer.put(new, _renumbered(found_vectors, spaces))
            count += len(new)
        done += len(ids)
        on_batch(done, total)
    return count


def _is_equal(wanted: Any, found: Any) -> bool:
    """Whether two stored documents are equal apart from their internal numbers."""
    return found is not None and found[1:] == wanted[1:]


def _matching(spaces: Sequence[Space], others: Sequence[Space]) -> dict[int, Space]:
    """The other index's space of the same model, by the number of each space."""
    by_fingerprint = {space.fingerprint: space for space in others}
    return {space.id: by_fingerprint[space.fingerprint] for space in spaces}


def _renumbered(vectors: TextVectors, spaces: Mapping[int, Space]) -> TextVectors:
    """The vectors, with the numbers of the other index's spaces."""
    return {(spaces[space].id, digest): vector for (space, digest), vector in vectors.items()}


def _check_equal(state: StoreState, copy: StoreState, source: Path, target: Path) -> int:
    """Compare counts, and passages and vectors of a sample; returns the number of passages."""
    counts = [(one.info().documents, one.info().chunks) for one in (state, copy)]
    if counts[0] != counts[1]:
        raise _unequal(source, target, f"{counts[1]} documents and passages instead of {counts[0]}")
    ids = state.ids()
    sample = ids[:: max(1, len(ids) // SAMPLE_DOCUMENTS)]
    if state.passages_of(sample) != copy.passages_of(sample):
        raise _unequal(source, target, "their passages differ")
    others = _matching(state.spaces(), copy.spaces())
    for space in state.spaces():
        left = state.document_vectors(space, sample)
        right = copy.document_vectors(others[space.id], sample)
        if left.keys() != right.keys() or any(
            left[name].shape != right[name].shape
            or not numpy.allclose(left[name], right[name], atol=TOLERANCE)
            for name in left
        ):
            raise _unequal(source, target, f"their vectors of space '{space.name}' differ")
    return counts[0][1]


def _unequal(source: Path, target: Path, how: str) -> IndexStoreError:
    return IndexStoreError(
        f"{target} is not equal to {source}: {how}; run semsearch verify on both, then copy again"
    )
