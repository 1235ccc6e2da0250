"""The adapters for LangChain: its standard tests, and tests of our own."""

from __future__ import annotations

import numpy
import pytest
from frameworks import needs

from semsearch import Document, Index
from semsearch.errors import ArgumentError, BadRowError, FilterError, SpaceError

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

    def test_a_document_is_found_once(self, index):
        store = SemsearchVectorStore(index)
        long = " ".join(f"The cat number {number} sleeps." for number in range(300))
        store.add_texts([long, "a dog"], ids=["long", "short"])
        found = store.similarity_search_with_score("cat", k=3, per_document=3)
        scores = [hit.score for hit in index.search("cat", k=3, per_document=3)]
        assert len(scores) == 3
        assert [(one.id, score) for one, score in found] == [("long", scores[0])]

    def test_relevance_is_from_0_to_1(self, pets):
        store = SemsearchVectorStore(pets)
        relevant = store.similarity_search_with_relevance_scores("The owl hoots", k=4)
        assert all(0 <= score <= 1 for _, score in relevant)
        strict = store.similarity_search_with_relevance_scores("The owl hoots", score_threshold=0.9)
        assert [document.id for document, _ in strict] == ["owl"]

    @pytest.mark.parametrize(
        ("options", "expected"),
        [
            ({"filter": {"legs": 2}}, {"hen", "owl"}),
            ({"filter": {"legs": 4, "score": "high"}}, {"cat"}),
            ({"filter": {"score": None, "legs": numpy.int64(4)}}, {"dog"}),
            ({"filter": "legs > 2"}, {"cat", "dog"}),
            ({"filter": {}}, {"cat", "dog", "hen", "owl"}),
            ({"mode": "bm25"}, {"cat"}),
            ({"where": "id = 'owl'"}, {"owl"}),
            (
                {"where": "legs = 2 or id = 'cat'", "filter": "id = 'owl' or legs = 4"},
                {"owl", "cat"},
            ),
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
        with pytest.raises(SpaceError):
            store.similarity_search("a", space="glove")
        assert len(pets) == len(PETS)


class TestRetriever:
    def test_returns_passages_with_their_place(self, pets):
        retriever = SemsearchRetriever(index=pets, k=1, options={"where": "legs = 2"})
        [found] = retriever.invoke("lays eggs")
        [hit] = pets.search("lays eggs", k=1)
        assert found.id == "hen"
        assert found.page_content == hit.text
        assert len(found.page_content) < len(PETS[2].text)
        assert found.metadata == {
            "score": round(hit.score, 6),
            "start": hit.passage.start,
            "end": hit.passage.end,
            "legs": 2,
        }

    def test_a_filter_per_call_is_required_beside_that_of_the_options(self, pets):
        retriever = SemsearchRetriever(index=pets, options={"where": "legs = 2"})
        assert {found.id for found in retriever.invoke("cat")} == {"hen", "owl"}
        assert [found.id for found in retriever.invoke("cat", where="id = 'owl'")] == ["owl"]
        assert retriever.invoke("cat", where="id = 'cat' or legs = 4") == []
