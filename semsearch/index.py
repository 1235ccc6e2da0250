"""The index: a directory of documents, passages and vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Self, Unpack

from semsearch.encoders import load_encoder
from semsearch.errors import (
    ArgumentError,
    BadRowError,
    IndexStoreError,
    check_number,
    check_text,
    raise_error,
)
from semsearch.indexing.creation import check_encoders, create_index, listed_encoders
from semsearch.protocols import Encoder
from semsearch.records import Document, Hits, Where
from semsearch.search import search
from semsearch.search.options import Examples, Options, SearchOptions
from semsearch.search.queries import Query, parse_queries
from semsearch.storage import open_store
from semsearch.storage.address import place
from semsearch.storage.interface import (
    IndexInfo,
    Passages,
    Reader,
    Selection,
    Store,
    parse_filter,
    warn_if_none_match,
)
from semsearch.storage.spaces import Space, find_space

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from semsearch.corpus.frames import Texts
    from semsearch.indexing.batch import Summary
    from semsearch.indexing.removal import Allowance
    from semsearch.indexing.writer import IndexWriter


class Index:
    """A directory of documents, their passages and their vectors.

    Open one with `Index.open` or `Index.create`; close it when done, or use it in a ``with``.

    Args:
        store: the storage.
        encoders: loaded encoders, used for the spaces with their fingerprints; other spaces load
            theirs by spec when needed.
        device: the device for encoders that are loaded; see `load_encoder`.
    """

    def __init__(
        self, store: Store, encoders: Iterable[Encoder] = (), device: str | None = None
    ) -> None:
        self._store = store
        self._device = device
        self._encoders = {encoder.fingerprint: encoder for encoder in encoders}
        self._loading = Lock()
        self._closed = False

    @classmethod
    def open(
        cls,
        path: str | Path,
        encoders: Encoder | SentenceTransformer | Iterable[Encoder] = (),
        *,
        device: str | None = None,
    ) -> Self:
        """Open an index.

        Args:
            path: its directory or address.
            encoders: one or more loaded encoders (or a SentenceTransformer), used instead of
                loading them again.
            device: a torch device (``cpu``, ``cuda``) for encoders that are loaded; see
                `load_encoder`.

        Raises:
            IndexNotFoundError: there is no index.
            IndexFormatError: the directory is not an index, or has another format.
        """
        location = place(path)
        at_hand = listed_encoders(encoders)
        check_encoders(at_hand)
        return cls(open_store(location), at_hand, device)

    @classmethod
    def create(
        cls,
        path: str | Path,
        encoders: str | Encoder | SentenceTransformer | Iterable[str | Encoder] | None = None,
        *,
        precision: str | None = None,
        device: str | None = None,
    ) -> Self:
        """Open the index in a directory, or create it.

        Args:
            path: an index, an empty directory, or a path that does not exist yet.
            encoders: a spec, an encoder (`load_encoder`, `encoder_from`) or a SentenceTransformer,
                or several, one for each embedding space; None takes those of the index, or
                ``minilm`` for a new one. The first encoder's maximum length limits the passages
                into which texts are cut.
            precision: the precision of encoders named by a spec: ``auto`` (the default of a new
                index), ``fp32``, ``bf16`` or ``int8``.
            device: the device of encoders; see `open`.

        Raises:
            IndexFormatError: the directory holds other files.
            SpaceError: the index exists and has other spaces, or another precision.
        """
        location = place(path)
        store, loaded = create_index(location, encoders, precision, device)
        return cls(store, loaded, device)

    @property
    def path(self) -> Path:
        """Its directory, as an absolute path, or its address."""
        return self._store.path

    def __len__(self) -> int:
        return self.count()

    def __contains__(self, name: object) -> bool:
        """Whether the index has a document with this id."""
        if not isinstance(name, str):
            return False
        with self.read() as state:
            return name in state.stored_documents([name])

    def get(self, name: str) -> Document | None:
        """The document with this id, as it was added; None if there is none."""
        check_text("the id", name)
        with self.read() as state:
            return state.documents([name]).get(name)

    def __iter__(self) -> Iterator[Document]:
        """All documents as they were added, in the order of addition, a batch in memory at a time.

        They are read from one committed state, even if the index is written meanwhile.
        """
        with self.read() as state:
            for documents in state.scan():
                yield from documents

    def count(self, where: Where | None = None) -> int:
        """The number of documents, or of those that match a filter."""
        with self.read() as state:
            if where is None:
                return state.count()
            condition = parse_filter(state, where)
            return state.count(Selection(condition=condition))

    def __repr__(self) -> str:
        return f"<Index {str(self.path)!r}{', closed' if self._closed else ''}>"

    def __enter__(self) -> Self:
        self._check_open()
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close its files. Closing it again does nothing."""
        self._closed = True
        self._store.close()

    def read(self) -> AbstractContextManager[Reader]:
        """One committed state, unchanged until the block ends."""
        self._check_open()
        return self._store.read()

    @contextmanager
    def writer(
        self,
        *,
        on_bad_row: Callable[[BadRowError], None] = raise_error,
        on_batch: Callable[[Summary], None] = lambda summary: None,
        wait: float = 0,
        ray: str | None = None,
    ) -> Iterator[IndexWriter]:
        """A writer of the index, for one thread of one process at a time.

        The threads of a process queue for it; a thread that holds it must not wait for another
        one that writes the index.

        Args:
            wait: how many seconds to wait for another process that is writing; `math.inf` waits
                without limit.
            ray: the Ray cluster on which passages are encoded: ``ray://HOST[:PORT]``, or ``auto``
                for that of this machine (or a local Ray if there is none); None for this process.
            on_bad_row: called with the error of each document that cannot be indexed; the default
                raises it.
            on_batch: called after each commit with a summary of the run so far.

        Raises:
            IndexBusyError: another process is still writing, or this thread has a writer already.
            ClusterError: no cluster responds at `ray`, or none of its nodes can encode.
        """
        from semsearch.indexing.files import FileMemory
        from semsearch.indexing.ray import pool_on
        from semsearch.indexing.writer import IndexWriter

        self._check_open()
        pool_for = pool_on(None if ray is None else check_text("ray", ray))
        memory = FileMemory(self.path, self._store.read)
        with self._store.writer(wait=check_number("wait", wait, 0)) as writer:
            yield IndexWriter(
                writer, self.encoder, memory, pool_for, on_bad_row=on_bad_row, on_batch=on_batch
            )

    def add(
        self,
        corpus: Texts,
        *,
        id_column: str | int | None = None,
        title_column: str | int | None = None,
        text_columns: str | int | Sequence[str | int] | None = None,
        on_batch: Callable[[Summary], None] = lambda summary: None,
        wait: float = 0,
    ) -> Summary:
        """Add texts; documents that the index has are updated.

        >>> from semsearch import Index
        >>> index = Index.create("films", "hashing")
        >>> index.add({"id": "a", "text": "A heist goes wrong.", "year": 1995}).added
        1
        >>> index.add(["A whale is hunted.", "A wedding is called off."]).added
        2

        Args:
            corpus: a text, a dict or a `Document`, an iterable of these, or a data frame. A dict
                has a ``text``, perhaps an ``id`` and a ``title``; all else is metadata. Ids that
                are missing are derived from the texts.
            id_column: the column of a data frame, or the key of dicts, that holds the ids; for a
                data frame, this and the others are guessed.
            title_column: the column or key that holds the titles.
            text_columns: the columns or keys, one or several, that hold the texts.
            on_batch: called after each commit with a summary of the run so far.
            wait: how many seconds to wait for another process that is writing; see `writer`.

        Raises:
            ArgumentError: an item is something else.
            BadRowError: a document cannot be indexed; earlier batches remain.
            IndexBusyError: another process is still writing.
        """
        from semsearch.corpus.frames import documents_of

        columns = {
            "id_column": id_column,
            "title_column": title_column,
            "text_columns": text_columns,
        }
        with self.writer(on_batch=on_batch, wait=wait) as writer:
            return writer.upsert(documents_of(corpus, columns))

    async def aadd(self, corpus: Texts, **options: Any) -> Summary:
        """`add`, in a thread, for asyncio."""
        import asyncio

        return await asyncio.to_thread(self.add, corpus, **options)

    def delete(
        self,
        ids: Sequence[str] | None = None,
        where: Where | None = None,
        *,
        allow_removals: Allowance = True,
        wait: float = 0,
    ) -> int:
        """Remove documents by id or filter; returns how many.

        See `IndexWriter.delete`, and `writer` for `wait`.
        """
        with self.writer(wait=wait) as writer:
            return writer.delete(ids, where, allow_removals=allow_removals)

    def fields(self) -> list[str]:
        """The names of all metadata fields, sorted."""
        with self.read() as state:
            return sorted(name for name, kinds in state.fields().items() if kinds)

    def spaces(self) -> list[Space]:
        """The embedding spaces, oldest first."""
        with self.read() as state:
            return state.spaces()

    def space(self, name: str | None = None, *, complete: bool = False) -> Space:
        """The space with this name; without a name, the first.

        Raises:
            SpaceError: there is none, or `complete` is required and passages lack vectors.
        """
        space = find_space(self.spaces(), name)
        if complete:
            space.check_complete(self.path)
        return space

    def search(
        self,
        query: Query,
        k: int = 10,
        *,
        space: str | None = None,
        **options: Unpack[SearchOptions],
    ) -> Hits:
        """The best documents for a query, each by its best passage, best first.

        >>> from semsearch import Document, Index
        >>> index = Index.create("pets", "hashing")
        >>> _ = index.add([Document("a", "a cat sleeps"), Document("b", "a dog barks")])
        >>> index.search("cat", k=1)[0].document_id
        'a'

        Args:
            query: a text; several texts, whose vectors are added; or, for semantic search, a
                vector of the space's dimension, which is normalised.
            k: the number of hits; fewer are returned only if fewer match.
            space: the name of the embedding space; None takes the first.
            options: see `SearchOptions`: filters, hybrid search, reranking, diversity.

        Raises:
            ArgumentError: the query is empty, `k` is below 1, or an argument has the wrong type.
            FilterError: the filter cannot be parsed, names an unknown field, or compares a field
                with a value of a type that it never holds.
            SpaceError: there is no such space, or it is not complete yet.
        """
        return self._search(space, [query], Options(k, **options))[0]

    async def asearch(self, query: Query, k: int = 10, **options: Any) -> Hits:
        """`search`, in a thread, for asyncio."""
        import asyncio

        return await asyncio.to_thread(self.search, query, k, **options)

    def search_many(
        self,
        queries: Iterable[Query],
        k: int = 10,
        *,
        space: str | None = None,
        **options: Unpack[SearchOptions],
    ) -> list[Hits]:
        """The hits of several queries, in their order, encoded together. See `search`."""
        return self._search(space, queries, Options(k, **options))

    def more_like(
        self,
        examples: Examples,
        k: int = 10,
        *,
        space: str | None = None,
        **options: Unpack[SearchOptions],
    ) -> Hits:
        """The documents nearest to examples, one id or several, which are left out themselves.

        The query is the sum of the examples' vectors (Rocchio 1971), less half those of `unlike`;
        the vector of a document is the normalised mean of its passages' vectors. Other arguments
        are those of `search`.

        Raises:
            ArgumentError: there is no example, the index has no document with such an id, or the
                examples cancel each other out.
        """
        checked = Options(k, **(options | {"like": examples}))
        if not checked.examples:
            raise ArgumentError("more_like needs at least one document id")
        return self._search(space, [[]], checked)[0]

    def _search(self, space: str | None, queries: Iterable[Query], options: Options) -> list[Hits]:
        """The hits of queries in a space, all from one committed state."""
        with self.read() as reader:
            found = find_space(reader.spaces(), space)
            found.check_complete(self.path)
            parsed = parse_queries(queries, found, options)
            condition = None if options.where is None else parse_filter(reader, options.where)
            hits = search(reader, found, self.encoder, parsed, condition, options)
            if condition is not None and not any(hits):
                warn_if_none_match(reader, condition)
            return hits

    def passages(self, space: str | None = None, where: Where | None = None) -> Passages:
        """All passages with their vectors in a space, or those whose documents match a filter.

        Raises:
            SpaceError: there is no such space, or it is not complete yet.
            FilterError: the filter is invalid.
        """
        found = self.space(space, complete=True)
        with self.read() as state:
            condition = None if where is None else parse_filter(state, where)
            passages = state.passages(found, condition)
            if condition is not None and not passages.texts:
                warn_if_none_match(state, condition)
            return passages

    def encoder(self, space: Space) -> Encoder:
        """The encoder of a space.

        Raises:
            EncoderError: it cannot be loaded.
            SpaceError: its spec now names another model.
        """
        self._check_open()
        with self._loading:
            encoder = self._encoders.get(space.fingerprint)
            if encoder is None:
                encoder = load_encoder(
                    space.spec, self._device, space.precision, local_files_only=True
                )
                space.check(encoder, self.path)
                self._encoders[space.fingerprint] = encoder
        return encoder

    def info(self) -> IndexInfo:
        """The contents of the index."""
        with self.read() as state:
            return state.info()

    def _check_open(self) -> None:
        if self._closed:
            raise IndexStoreError(f"the index {self.path} is closed; open it again: Index.open(…)")
