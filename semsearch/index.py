"""The index: a directory of documents, passages and vectors."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, NoReturn, Self, Unpack, cast

from semsearch.arguments import (
    check_callable,
    check_choice,
    check_number,
    check_path,
    check_text,
)
from semsearch.encoders import DEFAULT_ENCODER, load_encoder
from semsearch.encoders.specs import Precision
from semsearch.errors import (
    ArgumentError,
    BadRowError,
    CombinationError,
    IndexChangedError,
    IndexClosedError,
    IndexNotFoundError,
    SpaceError,
    quoted,
    refuse,
)
from semsearch.indexing.creation import (
    check_encoders,
    check_spaces,
    listed_encoders,
    open_or_create,
    other_precisions,
    stored_specs,
)
from semsearch.protocols import Encoder
from semsearch.records import Document, Hits
from semsearch.search import search
from semsearch.search.options import Examples, Options, SearchOptions
from semsearch.search.queries import Query, parse_queries
from semsearch.storage import open_store
from semsearch.storage.interface import (
    IndexInfo,
    Passages,
    Reader,
    Selection,
    Store,
    closed_on_error,
)
from semsearch.storage.spaces import Space, check_stored_type, find_space

if TYPE_CHECKING:
    import pandas

    from semsearch.corpus.files import FileState
    from semsearch.filters import Condition
    from semsearch.indexing.removal import Allowance
    from semsearch.indexing.summary import Summary
    from semsearch.indexing.writer import IndexWriter

logger = logging.getLogger(__name__)


#: Messages remembered, so that they are logged once.
WARNINGS_KEPT = 1000


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
        self._warned: set[str] = set()

    @classmethod
    def open(
        cls,
        path: str | Path,
        encoders: Encoder | Iterable[Encoder] = (),
        *,
        device: str | None = None,
    ) -> Self:
        """Open the index in a directory.

        Args:
            path: the index.
            encoders: one or more loaded encoders, used instead of loading them again.
            device: a torch device (``cpu``, ``cuda``) for encoders that are loaded; see
                `load_encoder`.

        Raises:
            ArgumentError: an argument has the wrong type.
            IndexNotFoundError: there is no index.
            IndexFormatError: the directory is not an index, or has another format.
        """
        place = check_path("path", path)
        at_hand = listed_encoders(encoders)
        check_encoders(at_hand)
        return cls(open_store(place), at_hand, device)

    @classmethod
    def create(
        cls,
        path: str | Path,
        encoders: str | Encoder | Iterable[str | Encoder] | None = None,
        *,
        dtype: str | None = None,
        precision: str | None = None,
        device: str | None = None,
    ) -> Self:
        """Open the index in a directory, or create it.

        Args:
            path: an index, an empty directory, or a path that does not exist yet.
            encoders: a spec or an encoder, or several, one for each embedding space; None takes
                those of the index, or ``minilm`` for a new one. The first encoder's maximum
                length limits the passages into which texts are cut.
            dtype: how vectors are stored: ``float32``, or ``float16`` in half the space; None is
                ``float32`` for a new index, and the stored type for an existing one.
            precision: the precision of encoders named by a spec: ``auto``, ``fp32``, ``bf16`` or
                ``int8``; None is ``auto`` for a new index, and the index's own for an existing
                one.
            device: the device of encoders; see `open`.

        Raises:
            ArgumentError: an argument is invalid, or an encoder is given twice.
            IndexFormatError: the directory holds other files.
            SpaceError: the index exists and has other spaces, or stores their vectors in another
                type or precision.
        """
        place = check_path("path", path)
        check_stored_type(dtype)
        if precision is not None:
            precision = check_choice("precision", Precision, precision).value
        if encoders is None and precision is None:
            with suppress(IndexNotFoundError):
                index = cls.open(place, device=device)
                with closed_on_error(index):
                    for space in index.spaces():
                        space.check_dtype(dtype)
                return index
        own = stored_specs(place) if encoders is None else []
        given = own or listed_encoders(DEFAULT_ENCODER if encoders is None else encoders)
        if not given:
            raise CombinationError("an index needs at least one encoder")
        loaded = [
            load_encoder(item, device, precision or "auto", local_files_only=bool(own))
            if isinstance(item, str)
            else item
            for item in given
        ]
        check_encoders(loaded)
        by_spec = [
            encoder for encoder, item in zip(loaded, given, strict=True) if isinstance(item, str)
        ]
        index = cls(open_or_create(place, loaded, dtype), loaded, device)
        with closed_on_error(index):
            spaces = index.spaces()
            check_spaces(index.path, spaces, loaded, dtype)
            for encoder in other_precisions(spaces, by_spec, precision):
                del index._encoders[encoder.fingerprint]  # `encoder` loads the right one
        return index

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
        r"""The document with this id, as it was added; None if there is none.

        >>> from semsearch import Document, Index
        >>> index = Index.create("notes", "hashing")
        >>> _ = index.add([Document("a", "Buy milk.\n", metadata={"done": False})])
        >>> index.get("a")
        Document(id='a', text='Buy milk.\n', title=None, metadata={'done': False}, source='')
        """
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

    def count(self, where: str | None = None) -> int:
        """The number of documents, or of those that match a filter.

        Raises:
            FilterError: the filter is invalid.
        """
        with self.read() as state:
            if where is None:
                return state.count()
            condition = self.filter(state, check_text("where", where))
            return state.count(Selection(condition=condition))

    @property
    def closed(self) -> bool:
        """Whether `close` was called; reading and writing then raise."""
        return self._closed

    def __repr__(self) -> str:
        return f"<Index {str(self.path)!r}{', closed' if self.closed else ''}>"

    def __reduce__(self) -> NoReturn:
        raise ArgumentError(
            f"an index cannot be pickled or copied; open it where it is needed: "
            f"Index.open({str(self.path)!r})"
        )

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
        """One committed state, unchanged until the block ends.

        Raises:
            IndexClosedError: the index was closed.
        """
        self._check_open()
        return self._store.read()

    @contextmanager
    def writer(
        self,
        *,
        on_bad_row: Callable[[BadRowError], None] = refuse,
        on_batch: Callable[[Summary], None] = lambda summary: None,
        wait: float = 0,
        on: str | None = None,
    ) -> Iterator[IndexWriter]:
        """A writer of the index, for one thread of one process at a time.

        The threads of a process queue for it; a thread that holds it must not wait for another
        one that writes the index.

        Args:
            wait: how many seconds to wait for another process that is writing; `math.inf` waits
                without limit.
            on: where passages are encoded: ``ray`` for the Ray cluster of this machine (or a local
                Ray if there is none), ``ray://HOST[:PORT]`` for another cluster, None for this
                process.
            on_bad_row: called with the error of each document that cannot be indexed; the default
                raises it.
            on_batch: called after each commit with a summary of the run so far.

        Raises:
            ArgumentError: an argument has the wrong type.
            IndexBusyError: another process is still writing, or this thread has a writer already.
            IndexClosedError: the index was closed.
            ClusterError: no cluster responds at `on`, or none of its nodes can encode.
            MissingExtraError: `on` is given, and the extra ``ray`` is not installed.
        """
        self._check_open()
        check_callable("on_bad_row", on_bad_row)
        check_callable("on_batch", on_batch)
        wait = check_number("wait", wait, 0)
        from semsearch.indexing.files import FileMemory
        from semsearch.indexing.ray import pool_on
        from semsearch.indexing.writer import IndexWriter

        pool_for = pool_on(None if on is None else check_text("on", on))
        with self._store.writer(wait=wait) as store:
            memory = FileMemory(self.path, self.read)
            yield IndexWriter(
                store,
                self.encoder,
                memory=memory,
                pool_for=pool_for,
                on_bad_row=on_bad_row,
                on_batch=on_batch,
            )

    def known_file(self, name: str) -> FileState | None:
        """The state of a folder's file when the index read it; None if unknown.

        Args:
            name: the path of the file inside its folder.
        """
        from semsearch.indexing.files import FileMemory

        return FileMemory(self.path, self.read).known(name)

    def add(
        self,
        corpus: Iterable[Document] | pandas.DataFrame,
        *,
        id_column: str | int | None = None,
        title_column: str | int | None = None,
        text_columns: str | int | Sequence[str | int] | None = None,
        on_batch: Callable[[Summary], None] = lambda summary: None,
        wait: float = 0,
    ) -> Summary:
        """Add documents, or the rows of a data frame; documents that the index has are updated.

        >>> from semsearch import Document, Index
        >>> index = Index.create("films", "hashing")
        >>> index.add([Document("a", "A heist goes wrong.", metadata={"year": 1995})]).added
        1
        >>> import pandas
        >>> frame = pandas.DataFrame({"id": ["b"], "plot": ["Two friends"], "year": [2001]})
        >>> index.add(frame, text_columns="plot").added
        1
        >>> index.count("year > 2000")
        1

        Args:
            corpus: documents, or a data frame.
            id_column: the column of a data frame that holds the ids; guessed from its name.
            title_column: the column that holds the titles; guessed from its name.
            text_columns: the column or columns that hold the texts; guessed if unambiguous.
            on_batch: called after each commit with a summary of the run so far.
            wait: how many seconds to wait for another process that is writing; see `writer`.

        Raises:
            ArgumentError: the corpus contains other items than documents, or columns are named
                without a data frame.
            BadRowError: a document cannot be indexed; earlier batches remain.
            IndexBusyError: another process is still writing.
        """
        columns = {
            "id_column": id_column,
            "title_column": title_column,
            "text_columns": text_columns,
        }
        columns = {name: column for name, column in columns.items() if column is not None}
        with self.writer(on_batch=on_batch, wait=wait) as writer:
            return writer.upsert(_documents(corpus, columns))

    def delete(
        self,
        ids: Sequence[str] | None = None,
        where: str | None = None,
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

    def systems(self) -> list[str]:
        """The names of its search systems: complete spaces and, if available, ``bm25``."""
        info = self.info()
        complete = [space.name for space in info.spaces if space.complete]
        return [*complete, *(["bm25"] if info.has_words else [])]

    def spaces(self) -> list[Space]:
        """The embedding spaces, oldest first."""
        with self.read() as state:
            return state.spaces()

    def space(self, name: str | None = None) -> Space:
        """The space with this name; without a name, the first.

        Raises:
            SpaceError: there is no space with this name.
        """
        return find_space(self.spaces(), name)

    def complete_space(self, name: str | None = None) -> Space:
        """The space with this name, with a vector for every passage; without a name, the first.

        Raises:
            SpaceError: there is no space with this name, or it is not complete yet.
        """
        return self._complete(self.space(name))

    def _complete(self, space: Space) -> Space:
        if not space.complete:
            raise SpaceError(
                f"space '{space.name}' still lacks vectors; finish it with: "
                f"semsearch index --add-space {quoted(space.spec)} --index {quoted(str(self.path))}"
            )
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
        """The documents nearest to examples; the examples themselves are left out.

        The query is the weighted sum of the examples' vectors (Rocchio 1971); the vector of a
        document is the normalised mean of its passages' vectors.

        >>> from semsearch import Document, Index
        >>> index = Index.create("birds", "hashing")
        >>> texts = {"a": "red bird", "b": "red fish", "c": "blue bird"}
        >>> _ = index.add(Document(name, text) for name, text in texts.items())
        >>> index.more_like({"a": 1, "c": -0.5}, k=1)[0].document_id
        'b'

        Args:
            examples: the id of a document, several ids, or weights by id: positive weights
                attract, negative ones repel.
            k: the number of hits.
            space: the name of the embedding space; None takes the first.
            options: see `SearchOptions`.

        Raises:
            ArgumentError: there is no example, the index has no document with such an id, the
                weights are not numbers, or the examples cancel each other out.
            FilterError: the filter is invalid.
            SpaceError: there is no such space, or it is not complete yet.
        """
        if "like" in options:
            raise CombinationError("more_like takes examples, not like")
        checked = Options(k, **(options | {"like": examples}))
        if not checked.examples:
            raise CombinationError("more_like needs at least one document id")
        return self._search(space, [[]], checked)[0]

    def _search(self, space: str | None, queries: Iterable[Query], options: Options) -> list[Hits]:
        """The hits of queries in a space, all from one committed state."""
        if isinstance(queries, Iterator):  # they may be searched twice
            queries = list(queries)
        try:
            return self._search_state(space, queries, options)
        except IndexChangedError:  # the state is no longer available: search the next one
            return self._search_state(space, queries, options)

    def _search_state(
        self, space: str | None, queries: Iterable[Query], options: Options
    ) -> list[Hits]:
        with self.read() as reader:
            found = self._complete(find_space(reader.spaces(), space))
            parsed = parse_queries(queries, found, options)
            condition = None if options.where is None else self.filter(reader, options.where)
            hits = search(reader, found, self.encoder, parsed, condition, options)
            if condition is not None and not any(hits):
                self.explain_no_match(reader, condition)
            return hits

    def passages(self, space: str | None = None, where: str | None = None) -> Passages:
        """All passages with their vectors, or those whose documents match a filter.

        Args:
            space: the name of the embedding space; None takes the first.
            where: a filter over metadata.

        Raises:
            SpaceError: there is no such space, or it is not complete yet.
            FilterError: the filter cannot be parsed, names an unknown field, or compares a field
                with a value of a type that it never holds.
        """
        found = self.complete_space(space)
        with self.read() as state:
            condition = None if where is None else self.filter(state, where)
            passages = state.passages(found, condition)
            if condition is not None and not passages.texts:
                self.explain_no_match(state, condition)
            return passages

    def filter(self, state: Reader, where: str) -> Condition:
        """Parse a filter and check it against one state of the index.

        Raises:
            FilterError: the filter cannot be parsed, names an unknown field, or compares a field
                with a value of a type that it never holds.
        """
        from semsearch.filters.checking import check
        from semsearch.filters.parsing import parse

        return check(parse(where), state.fields())

    def explain_no_match(self, state: Reader, condition: Condition) -> None:
        """Log a warning, once, if a filter matches no document."""
        if not state.ids(Selection(condition=condition), limit=1):
            self._warn_once("where: no document matches")

    def repeat_warnings(self) -> None:
        """Log all warnings again, including those already logged, like a newly opened index."""
        self._warned.clear()

    def _warn_once(self, message: str) -> None:
        if message not in self._warned:
            if len(self._warned) == WARNINGS_KEPT:
                self._warned.clear()
            self._warned.add(message)
            logger.warning("%s", message)

    def has_loaded(self, space: Space) -> bool:
        """Whether the encoder of a space is loaded."""
        return space.fingerprint in self._encoders

    def encoder(self, space: Space) -> Encoder:
        """The encoder of a space.

        Raises:
            EncoderError: it cannot be loaded.
            SpaceError: its spec now names another model.
        """
        self._check_open()
        if not self.has_loaded(space):
            with self._loading:
                if not self.has_loaded(space):  # by another thread
                    self._encoders[space.fingerprint] = self._loaded(space)
        return self._encoders[space.fingerprint]

    def _loaded(self, space: Space) -> Encoder:
        encoder = load_encoder(space.spec, self._device, space.precision, local_files_only=True)
        space.check(encoder, self.path)
        return encoder

    def info(self) -> IndexInfo:
        """The contents of the index."""
        with self.read() as state:
            return state.info()

    def _check_open(self) -> None:
        if self._closed:
            raise IndexClosedError(f"the index {self.path} is closed; open it again: Index.open(…)")


#: Another name of `Index`, for programs that only search.
Retriever = Index


def _documents(
    corpus: Iterable[Document] | pandas.DataFrame, columns: dict[str, Any]
) -> Iterable[Document]:
    packages = {kind.__module__.partition(".")[0] for kind in type(corpus).__mro__}
    if "pandas" in packages and hasattr(corpus, "columns"):
        from semsearch.corpus import frame_documents

        return frame_documents(cast("pandas.DataFrame", corpus), **columns)
    if columns:
        raise CombinationError("id_column, title_column and text_columns need a data frame")
    return cast("Iterable[Document]", corpus)
