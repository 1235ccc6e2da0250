"""Searching an index: a query in, hits out."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn, Self, Unpack

from semsearch.arguments import shown
from semsearch.errors import ArgumentError, IndexClosedError
from semsearch.index import Index
from semsearch.protocols import Encoder
from semsearch.records import Hits
from semsearch.search import rank
from semsearch.search.queries import Options, Query, SearchOptions
from semsearch.stores.protocol import closed_on_error


class Retriever:
    """Searches one embedding space of an index. The model is loaded at the first semantic query.

    Several threads may search with one retriever; each search sees one committed state.

    >>> from semsearch import Document, Index, Retriever
    >>> with Index.create("letters", "hashing") as index:
    ...     _ = index.add([Document("a", "a letter from Rome"), Document("b", "two stamps")])
    >>> with Retriever.open("letters") as retriever:
    ...     [hit] = retriever.search("Rome", k=1)
    >>> hit.document_id, round(hit.score, 2)
    ('a', 0.5)

    Closing it closes the index only if `Retriever.open` opened the index.

    Args:
        index: the index to search; the caller closes it.
        space: the name of the embedding space; None takes the first.

    Raises:
        ArgumentError: `index` is not an Index.
        SpaceError: there is no such space, or it is not complete yet.
    """

    def __init__(self, index: Index, space: str | None = None) -> None:
        if not isinstance(index, Index):
            raise ArgumentError(
                f"a retriever takes an Index, not {shown(index)}; for a path: Retriever.open(path)"
            )
        self.index = index
        self.space = index.complete_space(space)
        self._owns_index = False
        self._closed = False

    @classmethod
    def open(
        cls,
        path: str | Path,
        space: str | None = None,
        encoders: Encoder | Iterable[Encoder] = (),
        *,
        device: str | None = None,
    ) -> Self:
        """Open the index in a directory and a retriever on it; closing the retriever closes both.

        Args:
            path: the index.
            space: the name of the embedding space; None takes the first.
            encoders: one or more loaded encoders, used instead of loading them again.
            device: the device for encoders that are loaded; see `Index.open`.

        Raises:
            ArgumentError: an argument has the wrong type.
            IndexNotFoundError: there is no index.
            SpaceError: the index has no such space.
        """
        index = Index.open(path, encoders, device=device)
        with closed_on_error(index):
            retriever = cls(index, space)
        retriever._owns_index = True
        return retriever

    @property
    def closed(self) -> bool:
        """Whether the retriever or its index was closed; then searching raises."""
        return self._closed or self.index.closed

    def __repr__(self) -> str:
        closed = ", closed" if self.closed else ""
        return f"<Retriever {str(self.index.path)!r}, space {self.space.name!r}{closed}>"

    def __reduce__(self) -> NoReturn:
        raise ArgumentError(
            "a retriever cannot be pickled or copied; open it where it is needed: "
            f"Retriever.open({str(self.index.path)!r})"
        )

    def __enter__(self) -> Self:
        self._check_open()
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the retriever, and the index if `Retriever.open` opened it."""
        self._closed = True
        if self._owns_index:
            self.index.close()

    def search(self, query: Query, k: int = 10, **options: Unpack[SearchOptions]) -> Hits:
        """The best documents for a query, each by its best passage, best first.

        Args:
            query: a text; several texts, whose vectors are added; or, for semantic search, a
                vector of the space's dimension, which is normalised.
            k: the number of hits; fewer are returned only if fewer match.
            options: see `SearchOptions`: filters, hybrid search, reranking, diversity.

        Raises:
            ArgumentError: the query is empty, `k` is below 1, or an argument has the wrong type.
            FilterError: the filter cannot be parsed, names an unknown field, or compares a field
                with a value of a type that it never holds.
            SpaceError: the space was dropped.
            IndexClosedError: the retriever or its index was closed.
        """
        checked = Options(k, **options)
        self._check_open()
        return rank(self.index, self.space, [query], checked)[0]

    def search_many(
        self, queries: Iterable[Query], k: int = 10, **options: Unpack[SearchOptions]
    ) -> list[Hits]:
        """The hits of several queries, in their order, encoded together. See `search`."""
        self._check_open()
        return rank(self.index, self.space, queries, Options(k, **options))

    def _check_open(self) -> None:
        if self.closed:
            raise IndexClosedError(
                f"the retriever of {self.index.path} is closed; open it again: Retriever.open(…)"
            )
