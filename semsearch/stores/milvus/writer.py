"""Writing an index on Milvus.

A commit reserves its numbers, then writes passages, then vectors, then the documents' rows, which
make them visible, then deletes what they replace, and counts words for BM25. Milvus makes each
request durable before it answers. Whatever interrupts a commit leaves rows that no document names;
they are never found, and the next writer deletes them. Requests may be repeated: rows are written
by their primary keys.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

from semsearch.analysis import Language
from semsearch.errors import (
    IndexBusyError,
    IndexClosedError,
    IndexStoreError,
    UnsupportedByStoreError,
)
from semsearch.protocols import Encoder, Matrix
from semsearch.stores.milvus.building import build_words
from semsearch.stores.milvus.catalogue import Bm25, Content, read_catalogue, write_catalogue
from semsearch.stores.milvus.collections import (
    WORDS,
    build_index,
    documents_of,
    make,
    metric_of,
    passages_of,
    rounded,
    vectors_collection,
    vectors_of,
)
from semsearch.stores.milvus.connection import Connection, Row
from semsearch.stores.milvus.kinds import counted
from semsearch.stores.milvus.rows import drafted, misfits, write_rows
from semsearch.stores.milvus.state import MilvusState
from semsearch.stores.milvus.verification import find_faults, recount, sweep
from semsearch.stores.milvus.words import WordChange, change_terms
from semsearch.stores.protocol import (
    Fault,
    NewDocument,
    Selection,
    Space,
    TextVectors,
    described_space,
)
from semsearch.vector_indexes import IndexType

#: Of more numbers (50,000 vectors of MiniLM), exact search takes long.
FLAT_NUMBERS = 50_000 * 384
#: How often the lease is renewed, at most.
RENEWAL_SECONDS = 30
DOCUMENTS_AT_ONCE = 1000


class MilvusWriter:
    """The right to write; see `semsearch.stores.protocol.StoreWriter`.

    Args:
        connection: to Milvus.
        state: reads the present state.
        lease: what the index notes of this writer.
    """

    def __init__(
        self,
        connection: Connection,
        state: Callable[[], MilvusState],
        lease: Mapping[str, Any],
    ) -> None:
        self._opened: Connection | None = connection
        self._read = state
        self._lease = dict(lease)

    @contextmanager
    def state(self) -> Iterator[MilvusState]:
        """The present state, which nobody else changes until the block ends."""
        self._connection  # noqa: B018 - is the writer still open?
        yield self._read()

    def close(self) -> None:
        """Release the right to write."""
        connection, self._opened = self._opened, None
        with suppress(IndexStoreError):  # what failed before may fail here again; the lease expires
            if (
                connection
                and read_catalogue(connection).writer.get("token") == self._lease["token"]
            ):
                write_catalogue(connection, writer={})

    def recover(self) -> None:
        """Delete what an interrupted commit has left, and count again."""
        content = read_catalogue(self._connection).content
        if not content.clean:
            self._restore(content)

    def put(self, documents: Sequence[NewDocument], vectors: TextVectors) -> None:
        """Add documents, or renew those of the same ids, each of them whole."""
        state, content = self._begin()
        draft = drafted(state, content, documents)
        content = content._replace(document=draft.last_document, row=draft.last_row)
        content = self._reserve(content)
        added = write_rows(self._connection, state, draft.rows, vectors)
        self._connection.upsert(documents_of(self._connection), draft.documents)
        words = WordChange(state.totals, state.analyser)
        words.add(added)
        replaced = draft.replaced
        words.remove(self._delete_rows(state, replaced, state.vector_spaces(), draft.documents))
        content = self._count_words(content, words)
        new, gone = ([row["metadata"] for row in rows] for rows in (draft.documents, replaced))
        self._commit(content._replace(fields=counted(content.fields, new, gone)))

    def misfits(self, documents: Sequence[NewDocument]) -> dict[str, str]:
        """Why Milvus cannot hold documents, by their ids."""
        return misfits(documents)

    def remove(self, selection: Selection) -> int:
        """Remove documents; returns how many."""
        state, content = self._begin()
        content = self._reserve(content)
        removed, spaces, fields = 0, state.vector_spaces(), content.fields
        words = WordChange(state.totals, state.analyser)
        for rows in state.selected(selection, ["key", "metadata"]):
            for start in range(0, len(rows), DOCUMENTS_AT_ONCE):
                gone = rows[start : start + DOCUMENTS_AT_ONCE]
                keys = [row["key"] for row in gone]
                self._connection.delete(documents_of(self._connection), keys)
                words.remove(self._delete_rows(state, gone, spaces))
                removed += len(gone)
                fields = counted(fields, [], (row["metadata"] for row in gone))
        content = self._count_words(content, words)
        self._commit(content._replace(fields=fields))
        return removed

    def note_sync(self, documents: int | None) -> None:
        """Record the number of documents before a sync; None when it has finished."""
        self._begin()
        sync = {} if documents is None else {"documents": documents}
        write_catalogue(self._connection, sync=sync)

    def note_corpora(self, readings: Mapping[str, dict[str, Any]]) -> None:
        """Record how corpora are read."""
        state, _ = self._begin()
        write_catalogue(self._connection, corpora={**state.corpora, **readings})

    def add_space(self, encoder: Encoder, dtype: str | None) -> Space:
        """A new space, which is incomplete."""
        state, _ = self._begin()
        spaces = state.spaces()
        space = described_space(encoder, dtype, spaces, complete=not state.count())
        make(self._connection, [vectors_collection(self._connection, space)])
        write_catalogue(self._connection, spaces=[*spaces, space])
        return space

    def drop_space(self, space: Space) -> None:
        """Remove a space with its vectors."""
        state, _ = self._begin()
        left = [other for other in state.spaces() if other.id != space.id]
        write_catalogue(self._connection, spaces=left)
        self._connection.call("drop_collection", vectors_of(self._connection, space))

    def put_vectors(self, space: Space, chunk_ids: Sequence[int], vectors: Matrix) -> None:
        """Add the vectors of passages that lacked them."""
        if not chunk_ids:
            return
        state, content = self._begin()
        first = content.row + 1
        content = self._reserve(content._replace(row=content.row + len(chunk_ids)))
        owners = state.reader.chunk_owners(chunk_ids)
        rows = [
            {
                "row": first + place,
                "chunk": chunk,
                "document": owners[chunk]["document"],
                "version": owners[chunk]["version"],
                "fields": owners[chunk]["fields"],
                "vector": vector,
            }
            for place, (chunk, vector) in enumerate(
                zip(chunk_ids, rounded(space, vectors), strict=True)
            )
        ]
        self._connection.upsert(vectors_of(self._connection, space), rows)
        self._commit(content)

    def mark_complete(self, space: Space) -> None:
        """Let a space be searched: each passage has its vector."""
        state, _ = self._begin()
        self._write_spaces(state, {space.id: True})

    def choose_index_type(self, wanted: IndexType) -> None:
        """Ask for a kind of vector index, which `optimise` will build."""
        if wanted.kind not in ("auto", "flat"):
            raise UnsupportedByStoreError(f"on Milvus, an index is flat or auto, not {wanted.kind}")
        if wanted.recall != IndexType().recall:
            raise UnsupportedByStoreError("on Milvus, the recall cannot be chosen")
        _, content = self._begin()
        write_catalogue(self._connection, content=content._replace(index_type=wanted.kind))

    def index_field(self, name: str) -> NoReturn:
        """Refused: Milvus tests the terms of all documents."""
        raise UnsupportedByStoreError(
            "an index on Milvus has no indexes of fields; filters work without"
        )

    def set_language(self, language: Language) -> None:
        """Let BM25 stem words, and leave out stop words, as a language does."""
        _, content = self._begin()
        if not self._connection.has_sparse_vectors:
            raise UnsupportedByStoreError(
                f"Milvus {self._connection.version} has no BM25, and so no language"
            )
        content = content.with_language(language)._replace(bm25=Bm25.BUILDING.value)
        self._commit(self._with_words(self._reserve(content)))

    def optimise(self, *, thoroughly: bool = False) -> None:
        """Build another kind of vector index where one is asked for or the vectors are many."""
        state, content = self._begin()
        count = self._connection.count(passages_of(self._connection), "", content.written)
        widest = max((space.dimension for space in state.spaces()), default=0)
        is_graph = content.index_type == "auto" and count * widest > FLAT_NUMBERS
        kind = "HNSW" if is_graph else "FLAT"
        for space in state.spaces():
            collection = vectors_of(self._connection, space)
            found = self._connection.call("describe_index", collection, "vector")
            if found["index_type"] != kind:
                self._connection.call("release_collection", collection)
                self._connection.call("drop_index", collection, "vector")
                build_index(self._connection, collection, kind, metric_of(space))
        if content.is_graph != is_graph:
            write_catalogue(self._connection, content=content._replace(is_graph=is_graph))
        if self._connection.target.is_file and state.has_words:
            # What is only in its journal, milvus-lite indexes anew for each query.
            self._connection.call("flush", vectors_of(self._connection, WORDS))

    def compact(self) -> NoReturn:
        """Refused: Milvus does it by itself, when it chooses to."""
        raise UnsupportedByStoreError(
            "an index on Milvus is not compacted by semsearch: Milvus drops deleted rows from its "
            "files by itself, some time after they were deleted"
        )

    def verify(self) -> list[Fault]:
        """All that is wrong with the store."""
        with self.state() as state:
            return find_faults(self._connection, state)

    def repair(self) -> None:
        """Delete what no document names, damaged vectors, and documents that lack passages."""
        state, content = self._begin()
        self._restore(content, thoroughly=True)
        state = self._read()
        self._write_spaces(state, {space.id: False for space in state.spaces()})

    @property
    def _connection(self) -> Connection:
        if self._opened is None:
            raise IndexClosedError("the writer is closed: its `with` block has ended")
        return self._opened

    def _begin(self) -> tuple[MilvusState, Content]:
        """The present state, if nobody else has begun to write since.

        Raises:
            IndexBusyError: somebody has, on another machine or as another user.
        """
        catalogue = read_catalogue(self._connection)
        held = catalogue.writer
        if held.get("token") != self._lease["token"]:
            by = (
                f"is being written by process {held['process']} on {held['host']} since "
                f"{held['since']}, too"
                if held
                else "was written by another process meanwhile"
            )
            raise IndexBusyError(
                f"{self._connection.target.address} {by}; what was committed stays"
            )
        return self._read(), catalogue.content

    def _reserve(self, content: Content) -> Content:
        """Reserve numbers, and record that a commit is under way."""
        content = content._replace(clean=False)
        now = time.time()
        if now - self._lease["seen"] > RENEWAL_SECONDS:
            self._lease["seen"] = now
        write_catalogue(self._connection, content=content, writer=self._lease)
        return content

    def _commit(self, content: Content) -> None:
        """Record that a commit has ended: readers from now on wait for what it wrote."""
        written = self._connection.now()
        content = content._replace(written=written, clean=True)
        write_catalogue(self._connection, content=content)

    def _restore(self, content: Content, *, thoroughly: bool = False) -> None:
        state = self._read()
        sweep(self._connection, state, thoroughly=thoroughly)
        content = content._replace(written=self._connection.now())
        write_catalogue(self._connection, content=content)
        fields = recount(self._read())
        self._commit(self._with_words(content)._replace(fields=fields))

    def _count_words(self, content: Content, change: WordChange) -> Content:
        if content.bm25 != Bm25.READY.value:
            return content
        change_terms(self._connection, change.terms, content.written)
        return content.with_totals(change.totals)

    def _with_words(self, content: Content) -> Content:
        """The content after BM25, if the index has it, was rebuilt."""
        if content.bm25 == Bm25.NONE.value:
            return content
        content = content._replace(bm25=Bm25.BUILDING.value, clean=False)
        write_catalogue(self._connection, content=content)
        totals = build_words(self._connection, self._read())
        return content.with_totals(totals)._replace(bm25=Bm25.READY.value)

    def _write_spaces(self, state: MilvusState, complete: Mapping[int, bool]) -> None:
        spaces = [
            space._replace(complete=complete.get(space.id, space.complete))
            for space in state.spaces()
        ]
        write_catalogue(self._connection, spaces=spaces)

    def _delete_rows(
        self,
        state: MilvusState,
        old: Sequence[Row],
        spaces: Sequence[Space],
        new: Sequence[Row] = (),
    ) -> list[str]:
        """Delete the passages and vectors of documents' former rows; passages only if replaced.

        Returns:
            The texts of these passages, where there is BM25.
        """
        texts = {row["document"]: row["text_version"] for row in new}
        changed = [row for row in old if texts.get(row["document"]) != row["text_version"]]
        passages = state.reader.live_passages(changed, ["text"] if state.has_words else [])
        chunks = [row["chunk"] for row in passages]
        self._connection.delete(passages_of(self._connection), chunks)
        for space in spaces:
            rows = [row["row"] for row in state.reader.live_vectors(space, old, [])]
            self._connection.delete(vectors_of(self._connection, space), rows)
        return [row["text"] for row in passages] if state.has_words else []
