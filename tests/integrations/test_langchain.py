"""The adapters for LangChain: its standard tests, and tests of our own."""

from __future__ import annotations

import numpy
import pytest
from frameworks import needs

from semsearch import Document, Index
from semsearch.errors import ArgumentError, BadRowError, FilterError

needs("langchain_tests")

from langchain_core.documents import Document as LangChainDocument  # noqa: E402
from langchain_core.embeddings import DeterministicFakeEmbedding  # noqa: E402
from langchain_tests.integration_tests import (  # noqa: E402
    EmbeddingsIntegrationTests,
    RetrieversIntegrationTests,
    VectorStoreIntegrationTests,
)

from semsearch.integrations.langchain import (  # noqa: E402
    SemsearchEmbeddings,
    SemsearchRetriever,
    SemsearchVectorStore,
)

PETS = [
    Document("cat", "The cat sleeps.", "Cats", {"legs": 4, "score": "high"}),
    Document("dog", "The dog barks.", None, {"legs": 4}),
    Document("hen", "The hen lays eggs. " * 100, None, {"legs": 2}),
    Document("owl", "The owl hoots.", None, {"legs": 2}),
]


@pytest.fixture
def pets(index):
    index.add(PETS)
    return index


class TestVectorStoreStandard(VectorStoreIntegrationTests):
    @pytest.fixture
    def vectorstore(self, index):
        return SemsearchVectorStore(index)


class TestEmbeddingsStandard(EmbeddingsIntegrationTests):
    @property
    def embeddings_class(self):
        return SemsearchEmbeddings

    @property
    def embedding_model_params(self):
        return {"encoder": "hashing"}


class TestRetrieverStandard(RetrieversIntegrationTests):
    @pytest.fixture(autouse=True)
    def _pets(self, pets):
        self._index = pets

    @property
    def retriever_constructor(self):
        return SemsearchRetriever

    @property
    def retriever_constructor_params(self):
        return {"index": self._index}

    @property
    def retriever_query_example(self):
        return "the animal sleeps"


class TestVectorStore:
    def test_whole_documents_with_the_scores_of_the_index(self, pets):
        store = SemsearchVectorStore(pets)
        hits = pets.search("lays eggs", k=4)
        found = store.similarity_search_with_score("lays eggs", k=4)
        assert [(one.id, score) for one, score in found] == [
            (hit.document_id, hit.score) for hit in hits
        ]
        assert found[0][0].page_content == PETS[2].text
        assert store.similarity_search("lays eggs") == [document for document, _ in found]
        # Each document once, with the score of its best passage.
        again = store.similarity_search_with_score("lays eggs", k=3, per_document=3)
        assert len({hit.document_id for hit in pets.search("lays eggs", k=3, per_document=3)}) == 1
        assert again == found[:1]
        relevant = store.similarity_search_with_relevance_scores("The owl hoots", k=4)
        assert all(0 <= score <= 1 for _, score in relevant)
        assert [document.id for document, score in relevant if score > 0.9] == ["owl"]

    @pytest.mark.parametrize(
        ("options", "expected"),
        [
            ({"filter": {"legs": 2}}, {"hen", "owl"}),
            ({"filter": {"legs": 4, "score": "high"}}, {"cat"}),
            ({"filter": {"score": None, "legs": numpy.int64(4)}}, {"dog"}),
            ({"filter": "legs > 2"}, {"cat", "dog"}),
            ({"filter": {}}, {"cat", "dog", "hen", "owl"}),
            ({"mode": "bm25"}, {"cat"}),
            ({"where": "legs = 2", "filter": "id = 'hen' or legs = 4"}, {"hen"}),
            ({"where": "id = 'dog' or legs = 2", "filter": {"legs": 4}}, {"dog"}),
        ],
    )
    def test_filters_and_options(self, pets, options, expected):
        found = SemsearchVectorStore(pets).similarity_search("cat sleeps", k=9, **options)
        assert {document.id for document in found} == expected

    def test_marginal_relevance_diversifies(self, index):
        texts = ["red bird red", "red bird", "red bird", "red fish"]
        index.add(Document(str(number), text) for number, text in enumerate(texts))
        store = SemsearchVectorStore(index)
        plain = store.similarity_search("red bird", k=2)
        diverse = store.max_marginal_relevance_search("red bird", k=2, lambda_mult=0.3)
        assert {document.id for document in plain} == {"1", "2"}
        assert diverse[1].id == "3"

    def test_from_documents_and_add_texts(self, tmp_path):
        embeddings = SemsearchEmbeddings("hashing:64")
        documents = [LangChainDocument(page_content="a red bird", metadata={"n": 1})]
        path = str(tmp_path / "made")
        store = SemsearchVectorStore.from_documents(documents, embeddings, path=path)
        store.add_texts(["a fish", "an owl"], [{"n": 2}, {"n": 3}])
        with Index.open(path) as index:
            assert sorted(document.metadata["n"] for document in index) == [1, 2, 3]
            assert index.space().spec == "hashing:64"
        (found,) = store.as_retriever(search_kwargs={"k": 1}).invoke("an owl")
        assert found.page_content == "an owl"
        assert store.delete()
        assert store.similarity_search("owl", filter={"n": 3}) == []
        store.index.close()

    def test_mistakes(self, pets):
        store = SemsearchVectorStore(pets)
        with pytest.raises(ArgumentError):
            SemsearchVectorStore.from_texts(["a"], DeterministicFakeEmbedding(size=4))
        for options in ({"ids": ["a"]}, {"metadatas": [{}]}):
            with pytest.raises(ValueError, match="argument"):
                store.add_texts(["a", "b"], **options)
        with pytest.raises(BadRowError):
            store.add_texts([" "])
        for options in (
            {"filter": {"wings": 2}},
            {"filter": ""},
            {"where": "legs = 2", "filter": "legs = 4) or (legs = 4"},
        ):
            with pytest.raises(FilterError):
                store.similarity_search("a", **options)
        assert len(pets) == len(PETS)


class TestRetriever:
    def test_returns_passages_with_their_place(self, pets):
        """A filter per call is required beside that of the options."""
        retriever = SemsearchRetriever(index=pets, k=1, options={"where": "legs = 2"})
        [found] = retriever.invoke("lays eggs")
        [hit] = pets.search("lays eggs", k=1)
        assert found.id == "hen"
        assert found.page_content == hit.text
        place = {"start": hit.passage.start, "end": hit.passage.end}
        assert found.metadata == {"score": round(hit.score, 6), **place, "legs": 2}
        assert [found.id for found in retriever.invoke("cat", where="id = 'owl'")] == ["owl"]
        at_path = SemsearchRetriever(pets.path, k=1, options={"where": {"legs": 2}})
        assert [one.id for one in at_path.invoke("cat", where={"id": "owl"})] == ["owl"]
        at_path.index.close()
        assert retriever.invoke("cat", where="id = 'cat' or legs = 4") == []
