"""An index as a LangChain vector store and retriever; an encoder as its embeddings."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Self
from uuid import uuid4

from semsearch.arguments import check_choice, check_texts, shown
from semsearch.encoders import load_encoder
from semsearch.errors import ArgumentError, BadRowError, MissingExtraError
from semsearch.filters import Comparison, Condition, IsNull, Operator
from semsearch.index import Index
from semsearch.integrations.passages import conjunction, hit_metadata
from semsearch.protocols import Encoder
from semsearch.records import Document, Hits, SearchMode, metadata_field
from semsearch.search.queries import Query

try:
    from langchain_core.documents import Document as LangChainDocument
    from langchain_core.embeddings import Embeddings
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.runnables import run_in_executor
    from langchain_core.vectorstores import VectorStore
    from pydantic import ConfigDict, Field
except ImportError as error:
    raise MissingExtraError("langchain-core", "langchain", __name__) from error


class SemsearchEmbeddings(Embeddings):
    """An encoder as LangChain embeddings.

    Args:
        encoder: a spec such as ``minilm``, or an encoder.

    Raises:
        EncoderError: the encoder cannot be loaded.
    """

    def __init__(self, encoder: str | Encoder = "minilm") -> None:
        self.encoder = load_encoder(encoder) if isinstance(encoder, str) else encoder

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """The vectors of passages."""
        vectors: list[list[float]] = self.encoder.encode_documents(texts).tolist()
        return vectors

    def embed_query(self, text: str) -> list[float]:
        """The vector of a query."""
        vector: list[float] = self.encoder.encode_queries([text])[0].tolist()
        return vector


class SemsearchVectorStore(VectorStore):
    """An index as a vector store, with the encoders of the index.

    A document is found by its best passage and returned with its whole text and its metadata. Its
    title, which LangChain's documents lack, is kept when it is written again. All searches accept
    the options of `SearchOptions`, such as ``mode="hybrid"``, and ``filter``: a `where` expression,
    or a mapping of metadata fields to required values; with ``where``, both are required. Scores
    are cosines in the default mode.

    Args:
        index: the index; the caller closes it.
        space: the name of the embedding space; None for the first.

    Raises:
        SpaceError: the space does not exist, or is not complete yet.
    """

    def __init__(self, index: Index, space: str | None = None) -> None:
        self.index = index
        self._space = index.space(space, complete=True)

    @property
    def embeddings(self) -> SemsearchEmbeddings:
        """The encoder of the space."""
        return SemsearchEmbeddings(self.index.encoder(self._space))

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        embedding: Embeddings,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        path: str = "indexes/langchain",
        **kwargs: Any,
    ) -> Self:
        """Create a vector store from texts.

        Args:
            texts: the texts.
            embedding: `SemsearchEmbeddings`, since an index encodes texts itself.
            metadatas: the metadata of each text.
            ids: the id of each text; random by default.
            path: the directory of the index, created if it does not exist.
            kwargs: ignored.

        Raises:
            ArgumentError: the embeddings are of another class.
        """
        del kwargs
        if not isinstance(embedding, SemsearchEmbeddings):
            raise ArgumentError(
                "an index encodes texts itself: embedding must be SemsearchEmbeddings(SPEC), not "
                f"{shown(embedding)}"
            )
        store = cls(Index.create(path, embedding.encoder))
        store.add_texts(texts, metadatas, ids=ids)
        return store

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Add texts, or replace those with the same ids; returns the ids.

        It waits while another process or thread writes the index.

        Raises:
            ArgumentError: the number of ids or mappings differs from that of texts.
            BadRowError: a text is blank, or metadata cannot be stored as JSON.
        """
        del kwargs
        texts = check_texts("texts", texts)
        metadatas = metadatas or [{} for _ in texts]
        ids = [name or str(uuid4()) for name in ids or [""] * len(texts)]
        for what, values in (("metadatas", metadatas), ("ids", ids)):
            if len(values) != len(texts):
                raise ArgumentError(f"{len(values)} {what} for {len(texts)} texts")
        rows = zip(ids, texts, metadatas, strict=True)
        # If an id is repeated, its last text is kept.
        documents = {name: Document(name, text, None, fields) for name, text, fields in rows}
        with self.index.writer(wait=math.inf) as writer:
            with self.index.read() as state:
                known = state.stored_documents(list(documents))
            documents |= {
                name: replace(documents[name], title=stored.title) for name, stored in known.items()
            }
            writer.upsert(documents.values())
        return ids

    def delete(self, ids: list[str] | None = None, **kwargs: Any) -> bool:
        """Delete documents by id, or all of them; unknown ids are ignored. Returns True.

        It waits while another process or thread writes the index.

        Raises:
            ArgumentError: `ids` is not a list of strings.
        """
        del kwargs
        if ids is not None:
            ids = check_texts("ids", ids)
        with self.index.writer(wait=math.inf) as writer:
            with self.index.read() as state:
                present = state.ids() if ids is None else list(state.stored_documents(ids))
            if present:
                writer.delete(present)
        return True

    def get_by_ids(self, ids: Sequence[str], /) -> list[LangChainDocument]:
        """The documents with these ids, in order; unknown ids are ignored.

        Raises:
            ArgumentError: `ids` is not a list of strings.
        """
        with self.index.read() as state:
            found = state.documents(check_texts("ids", ids))
        return [_whole(found[name]) for name in ids if name in found]

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[LangChainDocument]:
        """The documents nearest to a query, best first."""
        return [document for document, _ in self.similarity_search_with_score(query, k, **kwargs)]

    def similarity_search_with_score(
        self, query: str, k: int = 4, **kwargs: Any
    ) -> list[tuple[LangChainDocument, float]]:
        """The documents nearest to a query with their scores; higher is better."""
        return self._found(query, k, **kwargs)

    def similarity_search_by_vector(
        self, embedding: list[float], k: int = 4, **kwargs: Any
    ) -> list[LangChainDocument]:
        """The documents nearest to a vector, best first."""
        import numpy

        vector = numpy.array(embedding, object)  # the search checks that it holds numbers
        return [document for document, _ in self._found(vector, k, **kwargs)]

    def max_marginal_relevance_search(
        self,
        query: str,
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        **kwargs: Any,
    ) -> list[LangChainDocument]:
        """Documents that are relevant to a query and different from each other.

        Args:
            query: the query.
            k: the number of documents.
            fetch_k: ignored; candidates are the first 100 documents.
            lambda_mult: the weight of relevance, from 0 to 1.
            kwargs: see the class.
        """
        del fetch_k
        return self.similarity_search(query, k, mmr=lambda_mult, **kwargs)

    def max_marginal_relevance_search_by_vector(
        self,
        embedding: list[float],
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        **kwargs: Any,
    ) -> list[LangChainDocument]:
        """Like `max_marginal_relevance_search`, for a vector."""
        del fetch_k
        return self.similarity_search_by_vector(embedding, k, mmr=lambda_mult, **kwargs)

    def _similarity_search_with_relevance_scores(
        self, query: str, k: int = 4, **kwargs: Any
    ) -> list[tuple[LangChainDocument, float]]:
        """Documents with scores from 0 to 1: the cosines, with negative ones set to 0.

        Raises:
            ArgumentError: scores are not cosines in another mode, or with a reranker.
        """
        mode = check_choice("mode", SearchMode, kwargs.get("mode", SearchMode.SEMANTIC))
        if mode is not SearchMode.SEMANTIC or kwargs.get("rerank") is not None:
            raise ArgumentError(
                "relevance scores are cosines: mode must be 'semantic', and rerank None"
            )
        scored = self.similarity_search_with_score(query, k, **kwargs)
        return [(document, min(max(score, 0.0), 1.0)) for document, score in scored]

    async def _asimilarity_search_with_relevance_scores(
        self, query: str, k: int = 4, **kwargs: Any
    ) -> list[tuple[LangChainDocument, float]]:
        """Like `_similarity_search_with_relevance_scores`, in a thread."""
        found: list[tuple[LangChainDocument, float]] = await run_in_executor(
            None, self._similarity_search_with_relevance_scores, query, k, **kwargs
        )
        return found

    def _found(
        self,
        query: Query,
        k: int,
        *,
        filter: str | dict[str, Any] | None = None,  # noqa: A002 - LangChain's name
        **options: Any,
    ) -> list[tuple[LangChainDocument, float]]:
        if isinstance(filter, dict):
            filter = _where(filter)  # noqa: A001
        options["where"] = conjunction(options.get("where"), filter)
        with self.index.read() as state:
            if not state.ids(limit=1):
                del options["where"]  # an empty index accepts any filter
        hits = self.index.search(query, k, space=self._space.name, **options)
        with self.index.read() as state:
            found = state.documents([hit.document_id for hit in hits])
        scores: dict[str, float] = {}
        for hit in hits:
            scores.setdefault(hit.document_id, hit.score)  # of its best passage
        return [(_whole(found[name]), score) for name, score in scores.items() if name in found]


class SemsearchRetriever(BaseRetriever):
    """A retriever of passages.

    Each `Document` is the best passage of one document, with its id; score, title and position of
    the passage are added to the metadata of the document.

    >>> retriever = SemsearchRetriever(index=Index.open("indexes/films"), k=3)
    >>> retriever.invoke("a heist goes wrong")  # doctest: +SKIP

    Args:
        index: the index; the caller closes it.
        space: the name of the embedding space; None for the first.
        k: the number of passages.
        options: of `SearchOptions`, such as ``{"mode": "hybrid"}``; those of `invoke` replace them,
            but ``where`` is required beside that of `invoke`.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    index: Index
    space: str | None = None
    k: int = 4
    options: dict[str, Any] = Field(default_factory=dict)

    def _get_relevant_documents(
        self, query: str, *, run_manager: Any, k: int | None = None, **options: Any
    ) -> list[LangChainDocument]:
        del run_manager
        wanted = self.k if k is None else k
        where = conjunction(self.options.get("where"), options.pop("where", None))
        joined = {**self.options, **options, "where": where}
        hits: Hits = self.index.search(query, wanted, space=self.space, **joined)
        return [
            LangChainDocument(id=hit.document_id, page_content=hit.text, metadata=hit_metadata(hit))
            for hit in hits
        ]

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: Any, **options: Any
    ) -> list[LangChainDocument]:
        sync = run_manager.get_sync()
        found: list[LangChainDocument] = await run_in_executor(
            None, self._get_relevant_documents, query, run_manager=sync, **options
        )
        return found


def _whole(document: Document) -> LangChainDocument:
    return LangChainDocument(
        id=document.id, page_content=document.text, metadata=dict(document.metadata)
    )


def _where(values: dict[str, Any]) -> str | None:
    """A filter expression that requires all of these values.

    Raises:
        ArgumentError: a value is none that a filter compares.
    """
    return " and ".join(str(_equals(name, value)) for name, value in values.items()) or None


def _equals(name: str, value: Any) -> Condition:
    try:
        [(name, stored)] = Document(None, "-", None, {name: value}).metadata.items()
    except BadRowError as error:
        raise ArgumentError(f"filter: {error}") from error
    if stored is None:
        return IsNull(metadata_field(name))
    if isinstance(stored, (list, dict)):
        raise ArgumentError(
            f"filter: {name} must be a text, a number, a boolean, a date or None, not "
            f"{shown(value)}; other conditions are written as an expression, such as 'year > 2000'"
        )
    return Comparison(metadata_field(name), Operator.EQUAL, stored)
