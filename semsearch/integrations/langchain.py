"""An index as a LangChain vector store and retriever; an encoder as its embeddings."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, Self
from uuid import uuid4

from semsearch.encoders import load_encoder
from semsearch.errors import ArgumentError, MissingExtraError, shown
from semsearch.index import Index
from semsearch.integrations.passages import conjunction, delete, hit_metadata, index_at
from semsearch.protocols import Encoder
from semsearch.records import Document, metadata_field

try:
    from langchain_core.documents import Document as LangChainDocument
    from langchain_core.embeddings import Embeddings
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.vectorstores import VectorStore
    from pydantic import BeforeValidator, ConfigDict, Field
except ImportError as error:
    raise MissingExtraError("langchain-core", "langchain", __name__) from error


class SemsearchEmbeddings(Embeddings):
    """An encoder, or that of a spec such as ``minilm``, as LangChain embeddings."""

    def __init__(self, encoder: str | Encoder = "minilm") -> None:
        self.encoder = load_encoder(encoder) if isinstance(encoder, str) else encoder

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """The vectors of passages."""
        return [vector.tolist() for vector in self.encoder.encode_documents(texts)]

    def embed_query(self, text: str) -> list[float]:
        """The vector of a query."""
        return list(map(float, self.encoder.encode_queries([text])[0]))


class SemsearchVectorStore(VectorStore):
    """An index as a vector store, with the encoders of the index.

    A document is found by its best passage and returned with its whole text and its metadata;
    LangChain's documents have no titles. All searches accept the options of `SearchOptions`, such
    as ``mode="hybrid"``, and ``filter``: a `where` expression, or a mapping of metadata fields to
    required values; with ``where``, both are required. Scores are cosines in the default mode.

    Args:
        index: an index, or its path.
    """

    def __init__(self, index: Index | str | Path) -> None:
        self.index = index_at(index)

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        embedding: Embeddings,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        path: str = "indexes/langchain",
        **_: Any,
    ) -> Self:
        """Create a vector store from texts in the index at `path`, which is created if missing.

        Raises:
            ArgumentError: the embeddings are not `SemsearchEmbeddings`: an index encodes itself.
        """
        if not isinstance(embedding, SemsearchEmbeddings):
            raise ArgumentError(f"embedding must be SemsearchEmbeddings, not {shown(embedding)}")
        store = cls(Index.create(path, embedding.encoder))
        store.add_texts(texts, metadatas, ids=ids)
        return store

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        **_: Any,
    ) -> list[str]:
        """Add texts, or replace those with the same ids; returns the ids.

        Of a repeated id, the last text is kept. Waits for other writers of the index.

        Raises:
            BadRowError: a text is blank, or metadata cannot be stored as JSON.
            ValueError: the number of ids or mappings differs from that of texts.
        """
        texts = list(texts)
        metadatas = metadatas or [{} for _ in texts]
        ids = [name or str(uuid4()) for name in ids or [""] * len(texts)]
        rows = zip(ids, texts, metadatas, strict=True)
        documents = {row[0]: Document(row[0], row[1], None, row[2]) for row in rows}
        self.index.add(documents.values(), wait=math.inf)
        return ids

    def delete(self, ids: list[str] | None = None, **_: Any) -> bool:
        """Delete documents by id, or all of them; unknown ids are ignored. Returns True."""
        delete(self.index, ids)
        return True

    def get_by_ids(self, ids: Sequence[str], /) -> list[LangChainDocument]:
        """The documents with these ids, in order; unknown ids are ignored."""
        with self.index.read() as state:
            found = state.documents(ids)
        return [
            LangChainDocument(id=one.id, page_content=one.text, metadata=dict(one.metadata))
            for one in filter(None, map(found.get, ids))
        ]

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[LangChainDocument]:
        """The documents nearest to a query, best first."""
        return [document for document, _ in self.similarity_search_with_score(query, k, **kwargs)]

    def similarity_search_with_score(
        self,
        query: str,
        k: int = 4,
        filter: str | dict[str, Any] | None = None,  # noqa: A002 - LangChain's name
        **kwargs: Any,
    ) -> list[tuple[LangChainDocument, float]]:
        """The documents nearest to a query with their scores; higher is better."""
        required = _where(filter) if isinstance(filter, dict) else filter
        kwargs["where"] = conjunction(self.index, kwargs.get("where"), required)
        hits = self.index.search(query, k, **kwargs)
        scores: dict[str, float] = {}
        for hit in hits:
            scores.setdefault(hit.document_id, hit.score)  # of its best passage
        return [(document, scores[str(document.id)]) for document in self.get_by_ids([*scores])]

    def max_marginal_relevance_search(
        self, query: str, k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **kwargs: Any
    ) -> list[LangChainDocument]:
        """Documents that are relevant to a query and different from each other.

        The candidates are the first 100 documents, whatever `fetch_k`.
        """
        del fetch_k
        return self.similarity_search(query, k, mmr=lambda_mult, **kwargs)

    def _select_relevance_score_fn(self) -> Callable[[float], float]:
        """For LangChain's search with relevance scores, from 0 to 1: cosines, if positive."""
        return lambda score: max(score, 0.0)


class SemsearchRetriever(BaseRetriever):
    """A retriever of passages.

    Each `Document` is the best passage of one document, with its id; score, title and position of
    the passage are added to the metadata of the document.

    >>> from semsearch import Index
    >>> with Index.create("films", "hashing") as index:
    ...     _ = index.add(["A heist goes wrong.", "A cat dozes."])
    ...     SemsearchRetriever(index, k=1).invoke("a heist")[0].page_content
    'A heist goes wrong.'

    Args:
        index: an index, or its path.
        k: the number of passages.
        options: of `SearchOptions`, such as ``{"mode": "hybrid"}``; those of `invoke` replace them,
            but ``where`` is required beside that of `invoke`.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    index: Annotated[Index, BeforeValidator(index_at)]
    k: int = 4
    options: dict[str, Any] = Field(default_factory=dict)

    def __init__(self, index: Index | str | Path, **settings: Any) -> None:
        super().__init__(index=index, **settings)

    def _get_relevant_documents(
        self, query: str, *, run_manager: Any, k: int | None = None, **options: Any
    ) -> list[LangChainDocument]:
        del run_manager
        where = conjunction(self.index, self.options.get("where"), options.pop("where", None))
        joined = {**self.options, **options, "where": where}
        hits = self.index.search(query, self.k if k is None else k, **joined)
        return [
            LangChainDocument(id=hit.document_id, page_content=hit.text, metadata=hit_metadata(hit))
            for hit in hits
        ]


def _where(values: dict[str, Any]) -> dict[str, Any] | None:
    """A filter that requires all of these values of metadata fields."""
    return {metadata_field(name): value for name, value in values.items()} or None
