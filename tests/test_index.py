"""Creating and opening indexes; adding, changing and removing documents."""

from __future__ import annotations

import asyncio
import json
import time
from concurrent.futures import ThreadPoolExecutor

import numpy
import pandas
import pytest
from sqlalchemy import text

from semsearch import Corpus, Document, Index, load_encoder
from semsearch.errors import ArgumentError, BadRowError, FilterError

PETS = [
    Document("cat", "The cat sleeps.", "Cats", {"legs": 4, "sounds": ["purr", "meow"]}),
    Document("dog", "The dog barks.", "Dogs", {"legs": 4, "sounds": ["bark"]}),
    Document("hen", "The hen lays eggs.", None, {"legs": 2}),
]


class CountingEncoder:
    """The hashing encoder; records the texts that it encodes."""

    def __init__(self):
        self._encoder = load_encoder("hashing")
        self.texts = []

    def __getattr__(self, name):
        return getattr(self._encoder, name)

    def encode_documents(self, texts):
        self.texts += texts
        return self._encoder.encode_documents(texts)


@pytest.fixture
def encoder():
    return CountingEncoder()


@pytest.fixture
def index(tmp_path, encoder):
    with Index.create(tmp_path / "pets", [encoder]) as index:
        index.add(PETS)
        encoder.texts.clear()
        yield index


def rows(index, query):
    with index.read() as state:
        return [tuple(row) for row in state.connection.execute(text(query))]


def contents(index):
    """Every document with its passages, as stored in the database."""
    return rows(
        index,
        'SELECT external_id, title, metadata, start, "end", passages.text FROM documents '
        "JOIN passages USING (document_id) ORDER BY external_id, start",
    )


def counts(index):
    tables = ["documents", "passages", "vectors", "passages_fts"]
    return [rows(index, f"SELECT count(*) FROM {name}")[0][0] for name in tables]


class TestAdding:
    def test_added_documents_are_stored_once(self, index, encoder):
        assert len(index) == 3
        assert contents(index) == [
            ("cat", "Cats", '{"legs":4,"sounds":["purr","meow"]}', 0, 15, "The cat sleeps."),
            ("dog", "Dogs", '{"legs":4,"sounds":["bark"]}', 0, 14, "The dog barks."),
            ("hen", None, '{"legs":2}', 0, 18, "The hen lays eggs."),
        ]
        assert index.fields() == ["legs", "sounds"]
        before = contents(index)
        summary = index.add(PETS)  # again
        assert (summary.unchanged, summary.documents, summary.passages) == (3, 3, 0)
        assert contents(index) == before
        assert encoder.texts == []

    def test_a_changed_text_replaces_the_old_one(self, index, encoder):
        summary = index.add([Document("dog", "The dog howls.", "Dogs", {"legs": 4})])
        assert (summary.changed, summary.encoded) == (1, 1)
        assert encoder.texts == ["The dog howls."]
        assert counts(index) == [3, 3, 3, 3]
        assert index.search("barks", mode="bm25") == []
        assert index.search("howls", mode="bm25")[0].document_id == "dog"

    def test_a_change_of_metadata_encodes_nothing(self, index, encoder):
        hen = Document("hen", "The hen lays eggs.", "Hens", {"legs": 2, "wings": 2})
        assert index.add([hen]).metadata_changed == 1
        assert encoder.texts == []
        assert contents(index)[2][1:3] == ("Hens", '{"legs":2,"wings":2}')

    def test_one_text_under_two_ids_is_encoded_once_and_kept_twice(self, index, encoder):
        summary = index.add(
            [Document("tom", "The cat sleeps."), Document("a", "New."), Document("b", "New.")]
        )
        assert (summary.added, summary.encoded) == (3, 1)
        assert encoder.texts == ["New."]
        found = index.search("The cat sleeps.", k=2)
        assert {hit.document_id for hit in found} == {"cat", "tom"}

    def test_documents_without_ids_are_named_by_their_content(self, index, monkeypatch):
        monkeypatch.setattr("semsearch.indexing.batch.BATCH_DOCUMENTS", 2)
        texts = ["One.", "Two.", "One.", "One."]
        index.add([Document(None, text) for text in texts])
        assert len(index) == 3 + 4
        again = index.add([Document(None, text) for text in reversed(texts)])
        assert again.unchanged == 4  # in any order

    def test_duplicate_id_error_names_both_sources(self, index):
        corpus = [Document("x", "One.", source="c.csv:2"), Document("x", "Two.", source="c.csv:3")]
        with pytest.raises(BadRowError, match=r"^c.csv:3: .*c.csv:2"):
            index.add(corpus)
        assert len(index) == 3

    def test_a_data_frame(self, tmp_path):
        frame = pandas.DataFrame({"id": [1, 2], "text": ["One.", "Two."], "year": [1999, None]})
        with Index.create(tmp_path / "x", ["hashing"]) as index:
            assert index.add(frame).added == 2
            assert [row[:3] for row in contents(index)] == [
                ("1", None, '{"year":1999.0}'),
                ("2", None, '{"year":null}'),
            ]
            frame = pandas.DataFrame([["z", "zebra", "striped"]], index=[7])
            assert index.add(frame, id_column=0, text_columns=[1, 2]).added == 1
            assert index.get("z").text == "zebra\nstriped"

    def test_an_edit_in_a_long_text_encodes_its_surroundings_only(self, tmp_path, encoder):
        sentences = [f"Sentence {number} of these has some words in it." for number in range(2000)]
        with Index.create(tmp_path / "x", [encoder]) as index:
            total = index.add([Document("long", " ".join(sentences))]).encoded
            sentences.insert(100, "A new sentence stands here.")
            text = " ".join(sentences)
            summary = index.add([Document("long", text)])
            for _, _, _, start, end, passage in contents(index):
                assert text[start:end] == passage
                assert passage.endswith(".")
        assert total > 60
        assert (summary.changed, summary.encoded) == (1, len(encoder.texts) - total)
        assert summary.encoded <= 6

    @pytest.mark.parametrize(
        ("given", "options", "expected"),
        [
            ("A text.", {}, [Document("3b6444e203f18aca", "A text.")]),
            ({"id": 7, "text": "x", "title": "T", "y": 2}, {}, [Document("7", "x", "T", {"y": 2})]),
            (iter(["A text.", {"text": "A text."}]), {}, 2),
            (pandas.Series(["a", "b"], index=[5, 6]), {}, 2),
            (
                [{"key": "k", "name": "N", "plot": "x", "tags": {"z"}}],
                {"id_column": "key", "title_column": "name", "text_columns": "plot"},
                [Document("k", "x", "N", {"tags": ["z"]})],
            ),
        ],
    )
    def test_texts_and_dicts(self, tmp_path, given, options, expected):
        with Index.create(tmp_path / "x", "hashing") as index:
            index.add(given, **options)
            assert len(index) == expected if isinstance(expected, int) else [*index] == expected

    @pytest.mark.parametrize(
        ("item", "place"), [({"txt": "x"}, "item 1"), ({"text": None}, "item 1"), (" ", "item 1")]
    )
    def test_an_item_without_a_text_is_named_and_can_be_skipped(self, index, item, place):
        with pytest.raises(BadRowError) as caught:
            index.add(["A text.", item])
        assert (caught.value.source, len(index)) == (place, 3)
        bad = []
        with index.writer(on_bad_row=bad.append) as writer:
            assert writer.upsert([item, "A text."]).added == 1
        assert [error.source for error in bad] == ["item 0"]


class TestDeleting:
    def test_by_id(self, index):
        assert index.delete(["cat", "hen"]) == 2
        assert counts(index) == [1, 1, 1, 1]
        assert [hit.document_id for hit in index.search("The cat sleeps.")] == ["dog"]
        assert index.search("cat", mode="bm25") == []

    def test_nothing_is_deleted_if_an_id_is_unknown_or_nothing_is_named(self, index):
        for ids in (["cat", "cow"], None):
            with pytest.raises(ArgumentError):
                index.delete(ids)
        assert index.delete([]) == 0
        assert len(index) == 3

    def test_passage_ids_are_never_reused(self, index):
        index.delete(["hen"])
        index.add([Document("owl", "The owl hoots.")])
        assert rows(index, "SELECT passage_id FROM passages ORDER BY 1") == [(1,), (2,), (4,)]


@pytest.mark.parametrize(
    "call",
    [
        lambda index: Index.create(b"x"),
        lambda index: Index.create(index.path, precision="fp16"),
        lambda index: Index.open(None),
        lambda index: index.search_many("red"),
        lambda index: index.search("red", where={}),
        lambda index: index.count({"n": 1}),
        lambda index: index.get(1),
        lambda index: index.delete("ab"),  # not the ids a and b
        lambda index: index.delete([3]),
        lambda index: index.add(b"a text"),
        lambda index: index.add(7),
        lambda index: index.add(["stranger", 7]),
        lambda index: index.add([Document("new", "text")], text_columns="text"),
        lambda index: index.add("a text", id_column="id"),
        lambda index: index.delete(where={}),
        lambda index: index.add([Document("new", "text")], wait=-1),
        lambda index: load_encoder(["minilm"]),
        lambda index: Corpus([b"c.csv"]),
        lambda index: Corpus("c.csv", text_columns=3),
    ],
)
def test_invalid_calls_are_refused_and_change_nothing(index, call):
    with pytest.raises(ValueError):  # of which ArgumentError is one
        call(index)
    assert [document.id for document in index] == ["cat", "dog", "hen"]


def test_ids_and_queries_come_in_any_collection(index):
    queries = pandas.Series(["The cat sleeps.", "The dog barks."], index=[7, 5])
    for several in (queries, queries.to_numpy(), iter(queries)):
        found = index.search_many(several, k=1)
        assert [hits[0].document_id for hits in found] == ["cat", "dog"]
    assert index.delete(pandas.Series(["cat", "dog"], index=[7, 5])) == 2


def test_counts_and_membership(index):
    counts = len(index), index.count(), index.count("legs = 4"), index.count("legs > 9")
    assert counts == (3, 3, 2, 0)
    with pytest.raises(FilterError):
        index.count("m = 1")
    assert index.count({"legs": [2, 4], "sounds": "purr"}) == 1
    assert index.count({"sounds": None, "metadata.legs": 2}) == 1
    assert [hit.id for hit in index.search("a", where={"id": ["hen", "cow"]})] == ["hen"]
    for where in ({"m": 1}, {"legs": {"$gt": 3}}, {"legs": [None]}):
        with pytest.raises(FilterError):
            index.count(where)
    assert "cat" in index
    assert "x" not in index
    assert None not in index


def test_asyncio(index):
    async def calls():
        added = await index.aadd({"id": "owl", "text": "The owl hoots."}, wait=9)
        queries = ["The owl hoots.", "The dog barks."]
        found = await asyncio.gather(*(index.asearch(query, 1) for query in queries))
        with pytest.raises(FilterError):
            await index.asearch("owl", where={"unknown": 1})
        return added.added, [hits[0].id for hits in found]

    assert asyncio.run(calls()) == (1, ["owl", "dog"])


def test_more_like_adds_the_vectors_of_examples(index, encoder):
    vectors = dict(zip(["cat", "dog", "hen"], index.passages().vectors, strict=True))
    query = vectors["cat"] - vectors["dog"] / 2
    hits = index.more_like("cat", unlike="dog")
    assert [hit.document_id for hit in hits] == ["hen"]
    assert hits[0].score == pytest.approx(
        float(vectors["hen"] @ query / numpy.linalg.norm(query)), abs=1e-6
    )
    for examples in ([], "x", [1], {1, "a"}, None):
        with pytest.raises(ArgumentError):
            index.more_like(examples)


def test_threads_load_an_encoder_once(index, monkeypatch):
    loaded = []

    def load(*arguments, **options):
        time.sleep(0.05)  # so that other threads come in
        loaded.append(load_encoder(*arguments, **options))
        return loaded[-1]

    monkeypatch.setattr("semsearch.index.load_encoder", load)
    with Index.open(index.path) as opened, ThreadPoolExecutor(4) as threads:
        found = list(threads.map(opened.search, ["The cat sleeps."] * 4))
    assert [hits[0].document_id for hits in found] == ["cat"] * 4
    assert len(loaded) == 1


class TestGuidesOfOthers:
    """The first lines of the guides of Chroma, LanceDB and txtai, written for an index."""

    def test_chroma(self, tmp_path):
        collection = Index.create(tmp_path / "collection", "hashing")
        collection.add(
            [
                {"id": "id1", "text": "a page about pineapple", "source": "notion"},
                {"id": "id2", "text": "a page about oranges", "source": "drive"},
            ]
        )
        results = collection.search("pineapple", k=2, where={"source": ["notion", "drive"]})
        assert json.loads(results.to_json())["hits"][0]["id"] == "id1"
        assert (collection.get("id2").text, collection.count()) == ("a page about oranges", 2)
        collection.delete(["id1"])
        collection.delete(where={"source": "drive"})
        assert len(collection) == 0
        collection.close()

    def test_lancedb(self, tmp_path):
        data = [{"text": "knight", "strength": 0.9}, {"text": "ranger", "strength": 0.4}]
        with Index.create(tmp_path / "camelot", "hashing") as table:
            table.add(pandas.DataFrame(data))
            table.add([{"text": "rogue", "strength": 0.6}])
            found = table.search("ranger", k=2, where="strength < 0.7").to_frame()
            assert found["strength"].to_list() == [0.4, 0.6]
            table.delete(where="strength > 0.5")
            assert [document.metadata["strength"] for document in table] == [0.4]

    def test_txtai(self, tmp_path):
        data = ["the iceberg split off", "a lottery ticket won", "the beaches were cleaned"]
        embeddings = Index.create(tmp_path / "news", "hashing")
        embeddings.add(data)
        found = [embeddings.search(query, 1)[0].text for query in ("lottery", "iceberg")]
        assert found == [data[1], data[0]]
        [hits] = embeddings.search_many(["beaches"], 1)
        assert embeddings.delete([hits[0].id]) == 1
        assert "beaches" not in embeddings.search("beaches", 1)[0].text
        embeddings.close()
