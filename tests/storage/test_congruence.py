"""The behaviour required of every store, tested through the index and the retriever."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest
from conditions_model import ODD, PATTERNS, TESTS, VALUES, holds

from semsearch import Document, Index, load_encoder
from semsearch.errors import ArgumentError, FilterError, SpaceError
from semsearch.filters.parsing import parse
from semsearch.records import metadata_field
from semsearch.storage import create_store
from semsearch.storage.address import place
from semsearch.storage.interface import text_hash

STORES = ["local", "milvus-lite", pytest.param("milvus", marks=pytest.mark.nightly)]

# What differs on Milvus; docs/milvus.md has the same table.
without_states = pytest.mark.differs("milvus-lite", "milvus", reason="it keeps no older states")
without_words = pytest.mark.differs("milvus", reason="BM25 takes a server of version 2.5")

without_matches = pytest.mark.differs("milvus-lite", "milvus", reason="it tells no matched words")
without_like = pytest.mark.differs("milvus-lite", "milvus", reason="it has no `like`")

MODES = ["semantic", "bm25", "hybrid"]
FILMS = [
    Document("a", "amber birch", "First", {"year": 1990, "genres": ["Drama", "Crime"]}),
    Document("b", "birch cedar delta", None, {"year": 2001, "genres": ["Horror"]}),
    Document("c", "cedar", None, {"year": 2001, "seen": True, "day": "2001-05-06"}),
    Document("d", "fjord grove", None, {"year": None, "id": "z"}),
]


@pytest.fixture(scope="module")
def encoder():
    return load_encoder("hashing:64")


@pytest.fixture(scope="module")
def other():
    return load_encoder("hashing:32")


@pytest.fixture(params=STORES)
def index(request, tmp_path, encoder, other):
    """A new index, empty, in one of the stores."""
    for mark in request.node.iter_markers("differs"):
        if request.param in mark.args:
            pytest.skip(mark.kwargs["reason"])
    address = {
        "local": lambda: tmp_path / "index",
        "milvus-lite": lambda: request.getfixturevalue("lite"),
        "milvus": lambda: request.getfixturevalue("server").address(),
    }[request.param]()
    with Index(create_store(place(str(address)), 128, [encoder]), [encoder, other]) as index:
        yield index


def modes(index) -> list[str]:
    return MODES if index.info().has_words else MODES[:1]


@pytest.fixture
def films(index):
    index.add(FILMS)
    return index


def ids(hits) -> list[str]:
    return [hit.document_id for hit in hits]


class TestDocuments:
    def test_they_are_returned_as_they_were_added(self, index):
        long = "\t" + "Amber, birch.  Cedar?\n\n\n" * 100 + "\u2003 "
        documents = [*FILMS, Document("long", long), Document("blank", " \n x\t")]
        index.add(documents)
        assert index.info().passages > len(documents)
        assert [index.get(str(one.id)) for one in documents] == documents
        assert list(index) == documents
        index.add([Document("long", long, "Title")])
        index.add([Document("blank", "other ")])
        assert index.get("long") == Document("long", long, "Title")
        assert index.get("blank") == Document("blank", "other ")
        assert index.get("none") is None

    def test_their_passages_are_slices_of_their_text_in_order(self, films):
        long = "Amber, birch.  Cedar?\n" * 100
        films.add([Document("long", long)])
        with films.read() as state:
            found = state.passages_of(["long", "c", "none"])
        assert found.keys() == {"long", "c"}
        assert found["c"] == [(0, 5, "cedar", text_hash("cedar"))]
        assert len(found["long"]) > 1
        assert all(one.text == long[one.start : one.end] for one in found["long"])
        assert [one.start for one in found["long"]] == sorted(one.start for one in found["long"])

    def test_they_are_deleted_by_id_and_filter(self, films):
        assert films.delete(["a"]) == 1
        assert films.delete(where="year = 2001") == 2
        assert films.delete(["d"], "year = 2001") == 0
        with films.read() as state:
            assert state.ids() == ["d"]
        with pytest.raises(ArgumentError, match="'a'"):
            films.delete(["a", "d", "x"])


class TestStates:
    @without_states
    def test_a_state_does_not_change(self, films):
        with films.read() as state:
            before = state.count()
            films.add([Document("e", "new")])
            assert state.count() == before
        assert len(films) == before + 1


class TestSearch:
    def test_scores_are_cosines(self, films, encoder):
        vectors = encoder.encode_documents([film.text for film in FILMS])
        for text in ("amber", "cedar delta", "grove fjord birch"):
            cosines = dict(zip("abcd", vectors @ encoder.encode_queries([text])[0], strict=True))
            hits = films.search(text)
            assert {hit.document_id: hit.score for hit in hits} == pytest.approx(cosines, abs=1e-5)
            assert [hit.rank for hit in hits] == [1, 2, 3, 4]
            assert all(left.score >= right.score for left, right in itertools.pairwise(hits))

    def test_a_document_counts_once_by_its_best_passage(self, index):
        index.add([Document("long", "amber. " * 200 + "birch. " * 200), Document("b", "birch")])
        hits = index.search("amber", k=2)
        assert ids(hits) == ["long", "b"]
        assert set(hits[0].text.replace(".", "").split()) == {"amber"}

    def test_ties_are_ordered_by_passage(self, index):
        index.add(Document(name, "amber birch") for name in "cabd")
        for mode in modes(index)[:2]:
            assert ids(index.search("amber", mode=mode)) == list("cabd")

    @pytest.mark.parametrize("k", [1, 40, 500])
    def test_exactly_k_hits_under_a_filter_with_ties(self, index, k):
        index.add(Document(f"d{n}", "amber birch", None, {"n": n}) for n in range(300))
        matching = [f"d{n}" for n in range(300) if n % 2 or n > 250]
        where = f"n > 250 or n in ({', '.join(map(str, range(1, 300, 2)))})"
        for mode in modes(index)[:2]:
            assert ids(index.search("amber", k, where=where, mode=mode)) == matching[:k]
        [hits, _] = index.search_many(["amber", "cedar"], k)
        assert ids(hits) == [f"d{n}" for n in range(300)][:k]

    @without_words
    def test_bm25(self, films):
        hits = films.search("cedar", mode="bm25")
        assert ids(hits) == ["c", "b"]  # the shorter one first
        assert hits[0].score > hits[1].score > 0
        for text in ("unknown", "?!"):
            assert ids(films.search(text, mode="bm25")) == []

    def test_several_passages_of_a_document(self, index):
        index.add([Document("long", "amber birch. " * 100), Document("b", "amber.")])
        passages = index.info().passages
        for mode, allowed in itertools.product(modes(index), (1, 2, 100)):
            hits = index.search("amber", 50, mode=mode, per_document=allowed)
            assert Counter(ids(hits)) == {"b": 1, "long": min(allowed, passages - 1)}
            assert len({hit.passage.id for hit in hits}) == len(hits)

    @without_matches
    def test_matched_words(self, films):
        hits = films.search("birch cedar", mode="hybrid", explain=True)
        found = {hit.document_id: hit.explanation.words for hit in hits}
        assert {name: set(words) for name, words in found.items() if words} == {
            "a": {"birch"},
            "b": {"birch", "cedar"},
            "c": {"cedar"},
        }


def row_of(document: Document) -> dict:
    """The fields of a document, as conditions name them."""
    fields = {metadata_field(name): value for name, value in document.metadata.items()}
    return fields | {"id": document.id, "title": document.title}


def check_filters(index, tests):
    documents = [
        Document(f"v{number}", "amber", f"Title {number % 10}", {"a": value})
        for number, value in enumerate(VALUES)
    ]
    documents.append(Document("odd", "amber", None, ODD))
    index.add(documents)
    for where in tests:
        matching = [one.id for one in documents if holds(parse(where), row_of(one))]
        assert ids(index.search("amber", 100, where=where)) == matching, where


class TestFilters:
    def test_every_operator(self, index):
        check_filters(index, TESTS)

    @without_like
    def test_like(self, index):
        check_filters(
            index, [*(f"a like '{pattern}'" for pattern in ["Á", *PATTERNS]), "title like 'T% _'"]
        )

    @pytest.mark.parametrize("where", ["yaer = 1990", "year = 'old'"])
    def test_invalid_ones_are_refused(self, films, where):
        with pytest.raises(FilterError):
            films.search("amber", where=where)

    def test_a_filter_that_matches_nothing_is_explained(self, films, caplog):
        assert films.search("amber", where="genres = 'horror'") == []
        assert caplog.messages == ["no document matches the filter"]

    def test_fields_and_their_kinds(self, films):
        kinds = {field.name: field.kinds for field in films.info().fields}
        assert kinds["year"]["number"] == 3
        assert kinds["day"] == {"date": 1}
        assert kinds["seen"] == {"boolean": 1}
        assert films.fields() == ["day", "genres", "id", "seen", "year"]
        films.delete(["b", "c"])
        assert {name for name, kinds, _ in films.info().fields if kinds} == {"genres", "id", "year"}


class TestSpaces:
    def test_a_second_space(self, index, other):
        with index.writer() as writer:
            space = writer.add_space(other)
        assert space.complete
        assert [each.fingerprint for each in index.spaces()][1] == other.fingerprint
        index.add([*FILMS, Document("e", "novel")])
        hits = index.search("novel", space=space.name)
        assert (hits[0].document_id, hits[0].score) == ("e", pytest.approx(1, abs=1e-5))
        assert index.passages(space.name).vectors.shape == (5, 32)

    def test_a_dropped_space_is_refused(self, index, other):
        with index.writer() as writer:
            space = writer.add_space(other)
        index.add(FILMS)
        index.search("amber", space=space.name)
        with index.writer() as writer:
            writer.drop_space(space.name)
        with pytest.raises(SpaceError):
            index.search("amber", space=space.name)
        with index.writer() as writer, pytest.raises(SpaceError):
            writer.drop_space(index.space().name)

    @pytest.mark.parametrize("maintain", ["repair", "compact"])
    def test_maintenance_keeps_the_results(self, films, maintain):
        before = films.search("cedar birch")
        with films.writer() as writer:
            getattr(writer, maintain)()
            assert writer.verify() == []
        assert films.search("cedar birch") == before


def test_a_sequence_of_changes(index, encoder, other):
    """After each change, the index has the documents, their cosines and no faults."""
    texts = ["amber birch", "cedar", "delta grove", "fjord", "birch", "Ünï 東京", "amber"]
    documents = {f"d{n}": Document(f"d{n}", texts[n % 7], None, {"n": n}) for n in range(40)}

    def check(change):
        with index.writer() as writer:
            summary = change(writer)
            assert writer.verify() == []
        assert list(index) == list(documents.values())
        text = "amber birch"
        cosines = [
            encoder.encode_documents([one.text])[0] @ encoder.encode_queries([text])[0]
            for one in documents.values()
        ]
        scores = {hit.document_id: hit.score for hit in index.search(text, 100)}
        assert scores == pytest.approx(dict(zip(documents, cosines, strict=True)), abs=1e-5)
        return summary

    def put(*changed):
        documents.update({one.id: one for one in changed})
        return check(lambda writer: writer.upsert(changed))

    with index.writer() as writer:
        writer.add_space(other)
    assert put(*documents.values()).added == 40
    assert put(*documents.values()).unchanged == 40
    retitled = put(*(Document(f"d{n}", texts[n], "T", {"n": -1}) for n in range(5)))
    assert (retitled.metadata_changed, retitled.encoded) == (5, 0)
    assert len(index.search("amber", 50, where="n = -1 and title = 'T'")) == 5
    assert put(Document("d7", "grove", None, {"n": 7}), Document("new", "fjord")).changed == 1
    for name in [name for name, one in documents.items() if one.metadata.get("n", 0) > 30]:
        del documents[name]
    assert check(lambda writer: writer.delete(where="n > 30")) == 9
    kept = [documents[f"d{n}"] for n in range(20, 31)]
    documents = {one.id: one for one in [*kept, Document("later", "delta")]}
    assert check(lambda writer: writer.sync(documents.values(), allow_removals=True)).removed == 21
    put(Document("last", "東京 amber"))
    assert index.search("東京 amber", 1, space="hashing-32")[0].document_id == "last"
    check(lambda writer: writer.drop_space("hashing-32"))
    documents = {}
    assert check(lambda writer: writer.sync([], allow_removals=True)).removed == 13
