"""The adapters for Haystack: its standard tests, and tests of our own."""

from __future__ import annotations

from dataclasses import replace

import pytest
from frameworks import needs

from semsearch.errors import ArgumentError, BadRowError
from semsearch.errors import FilterError as InvalidFilterError

needs("haystack")

from haystack import Document, Pipeline  # noqa: E402
from haystack.document_stores.errors import DuplicateDocumentError  # noqa: E402
from haystack.document_stores.types import DuplicatePolicy  # noqa: E402
from haystack.errors import FilterError  # noqa: E402
from haystack.testing.document_store import DocumentStoreBaseTests  # noqa: E402

from semsearch.integrations.haystack import SemsearchDocumentStore, SemsearchRetriever, where_of  # noqa: E402

PETS = [
    Document(id="cat", content="The cat sleeps.", meta={"legs": 4, "born": "2020-05-01"}),
    Document(id="dog", content="The dog barks.", meta={"legs": 4, "born": "2019-01-31"}),
    Document(id="hen", content="The hen lays eggs. " * 100, meta={"legs": 2}),
]


@pytest.fixture
def empty(tmp_path):
    store = SemsearchDocumentStore(str(tmp_path / "index"), "hashing")
    yield store
    store.index.close()


@pytest.fixture
def pets(empty):
    empty.write_documents(PETS)
    return empty


class TestDocumentStoreStandard(DocumentStoreBaseTests):
    @pytest.fixture
    def document_store(self, empty):
        return empty

    def test_write_documents(self, document_store):
        """Without a policy, the same as FAIL."""
        document = Document(content="test doc")
        assert document_store.write_documents([document]) == 1
        with pytest.raises(DuplicateDocumentError):
            document_store.write_documents([document])

    @staticmethod
    def assert_documents_are_equal(received, expected):
        """An index stores its own vectors and no others."""
        assert received == [replace(document, embedding=None) for document in expected]


class TestDocumentStore:
    def test_duplicate_policies(self, pets):
        new = Document(id="owl", content="The owl hoots.")
        with pytest.raises(DuplicateDocumentError, match="'cat'"):
            pets.write_documents([new, PETS[0]], DuplicatePolicy.FAIL)
        assert pets.count_documents() == 3
        assert pets.write_documents([new, new, PETS[0]], DuplicatePolicy.SKIP) == 1
        changed = replace(new, content="The owl flies.")
        assert pets.write_documents([new, changed], DuplicatePolicy.OVERWRITE) == 2
        filters = {"field": "id", "operator": "==", "value": "owl"}
        assert pets.filter_documents(filters) == [changed]

    @pytest.mark.parametrize("content", [None, " "])
    def test_refuses_documents_without_text(self, empty, content):
        with pytest.raises(BadRowError, match="document 1"):
            empty.write_documents([Document(id="1", content=content)])
        assert empty.count_documents() == 0


EARLY = {"field": "year", "operator": "<", "value": "1990-01-31"}
OTHER = [
    {"field": "meta.seen", "operator": "==", "value": True},
    {"field": "meta.stars", "operator": "not in", "value": [1]},
]


class TestFilters:
    def test_any_filter_is_valid_in_an_empty_store(self, empty):
        late = {"field": "meta.year", "operator": ">", "value": 2000}
        assert empty.filter_documents(late) == []
        assert SemsearchRetriever(empty).run("cat", late) == {"documents": []}
        with pytest.raises(FilterError):
            empty.filter_documents({**late, "operator": "~"})

    @pytest.mark.parametrize(
        ("filters", "where"),
        [
            ({}, None),
            ({"field": "meta.a b", "operator": "==", "value": "it's"}, "\"a b\" = 'it''s'"),
            ({"field": "meta.id", "operator": "in", "value": [1, "x"]}, "metadata.id in (1, 'x')"),
            ({"field": "id", "operator": "!=", "value": None}, "not id is null"),
            (
                {"operator": "NOT", "conditions": [EARLY, {"operator": "OR", "conditions": OTHER}]},
                "not (year < '1990-01-31' and (seen = true or not stars in (1)))",
            ),
        ],
    )
    def test_become_expressions(self, filters, where):
        assert where_of(filters) == where


class TestRetriever:
    def test_returns_passages_with_scores(self, pets):
        [found] = SemsearchRetriever(pets, top_k=1).run("lays eggs")["documents"]
        [hit] = pets.index.search("lays eggs", k=1)
        place = {"start": hit.passage.start, "end": hit.passage.end}
        meta = {"score": round(hit.score, 6), **place, "legs": 2}
        assert found == Document(id="hen", content=hit.text, score=hit.score, meta=meta)

    def test_filters_and_options(self, pets):
        four = {"field": "meta.legs", "operator": "==", "value": 4}
        early = {"field": "meta.born", "operator": "<", "value": "2020-01-01"}
        retriever = SemsearchRetriever(pets, filters=four, options={"where": "born is not null"})

        def ids(**options):
            return {document.id for document in retriever.run("the cat", **options)["documents"]}

        assert ids() == {"cat", "dog"}
        assert ids(filters=early) == {"dog"}
        assert ids(top_k=1) == {"cat"}
        with pytest.raises(ArgumentError):
            ids(top_k=0)
        undone = SemsearchRetriever(pets, filters=four, options={"where": "legs = 2) or (legs = 2"})
        with pytest.raises(InvalidFilterError):
            undone.run("the cat")

    def test_of_an_index_at_a_path(self, pets):
        retriever = SemsearchRetriever(pets.path, options={"mode": "hybrid", "where": {"legs": 2}})
        [found] = retriever.run("lays eggs")["documents"]
        assert (found.id, found.score) == ("hen", 1.0)
        retriever.document_store.index.close()

    def test_in_a_pipeline_that_is_saved_and_loaded(self, pets):
        pipeline = Pipeline()
        pipeline.add_component("retriever", SemsearchRetriever(pets, top_k=2))
        loaded = Pipeline.loads(pipeline.dumps(), allowed_modules=["semsearch.*"])
        first, again = (one.run({"query": "dog"})["retriever"] for one in (pipeline, loaded))
        assert first == again
        assert first["documents"][0].id == "dog"
        store = loaded.get_component("retriever").document_store
        assert (store.path, store.encoder) == (pets.path, "hashing")
        store.index.close()
