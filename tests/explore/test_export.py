"""Exports: other programs can read them, and an index can be made from them."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy
import pandas
import pytest

from semsearch import Corpus, Document, Index, export_index
from semsearch.errors import ArgumentError, FilterError, SpaceError
from semsearch.explore import export

LONG = "\t" + "Amber, birch.  Cedar?\n\n\n" * 100 + "\u2003 "
FILMS = [
    Document("a", "amber birch\n", "First", {"year": 1990, "genres": ["Drama", "Crime"]}),
    Document("b", "birch cedar delta", None, {"year": 2001, "score": 1, "id": "x"}),
    Document("long", LONG, "\u2028 \N{PILE OF POO}", {"score": 2.5, "metadata.id": True}),
    Document(None, "fjord, grove", None, {"day": "2001-05-06", "vector": "trees", "genres": []}),
]
ODD = Document("odd", "birch", None, {"year": "unknown", "box": {"a": [1, None]}, "huge": 2**70})
QUERIES = ["birch", "a grove", "cedar amber"]


@pytest.fixture
def index(tmp_path):
    with Index.create(tmp_path / "films", ["hashing:64", "hashing:16"]) as index:
        index.add(FILMS)
        yield index


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(export, "DOCUMENTS_AT_ONCE", 2)


def again(folder, file):
    """A new index from an exported file."""
    index = Index.create(folder / "again", ["hashing:64", "hashing:16"])
    index.add(Corpus(file))
    return index


def answers(index, **options):
    hits = index.search_many(QUERIES, k=9, space="hashing-64", **options)
    return [[(hit.document_id, hit.score, hit.passage[1:]) for hit in found] for found in hits]


class TestRoundTrip:
    @pytest.mark.parametrize(("ending", "more"), [("jsonl", [ODD]), ("parquet", [])])
    def test_documents_stay_as_they_were(self, index, tmp_path, ending, more):
        """Parquet has all fields in all rows."""
        index.add(more)
        exported = export_index(index, tmp_path / f"films.{ending}")
        assert exported == (tmp_path / f"films.{ending}", 4 + len(more), ())
        with again(tmp_path, exported.file) as found:
            for one, other in zip(found, index, strict=True):
                held = {name: value for name, value in one.metadata.items() if value is not None}
                assert replace(one, metadata=held) == other

    @pytest.mark.parametrize("ending", ["jsonl", "parquet", "csv"])
    def test_the_new_index_returns_the_same_hits(self, index, tmp_path, ending):
        export_index(index, tmp_path / f"films.{ending}")
        with again(tmp_path, tmp_path / f"films.{ending}") as found:
            assert answers(found) == answers(index)
            for options in (
                {"mode": "bm25"},
                {"mode": "hybrid"},
                {"where": "year > 1995 or genres = 'Drama'"},
                {"where": "score >= 1 and metadata.id = 'x'"},
                {"where": "year is null"},
                {"where": "day < '2010-01-01'"},
            ):
                assert answers(found, **options) == answers(index, **options)


class TestTables:
    def test_csv(self, index, tmp_path):
        index.add([ODD])
        assert export_index(index, tmp_path / "films.csv") == (tmp_path / "films.csv", 5, ())
        frame = pandas.read_csv(tmp_path / "films.csv", dtype=str, index_col="id")
        renamed = ["metadata.id", "metadata.metadata.id"]
        names = ["box", "day", "genres", "huge", *renamed, "score", "vector", "year"]
        assert list(frame.columns) == ["title", "text", *names]
        assert list(frame.text) == [document.text for document in index]
        assert frame.loc["a", "genres"] == '["Drama", "Crime"]'
        assert frame.loc["odd", "box"] == '{"a": [1, null]}'
        assert frame.loc["a", "year"] == "1990"
        assert pandas.isna(frame.loc["b", "title"])

    def test_columns_of_parquet_are_typed_or_json(self, index, tmp_path):
        index.add([ODD, Document("n", "null", None, {"none": None, "large": 2**60 + 1})])
        exported = export_index(index, tmp_path / "films.parquet")
        assert exported.as_json == ("box", "huge", "year")
        frame = pandas.read_parquet(exported.file, dtype_backend="pyarrow").set_index("id")
        assert list(frame.columns[:2]) == ["title", "text"]
        assert (frame.year["a"], frame.year["odd"]) == ("1990", '"unknown"')
        assert json.loads(frame.box["odd"]) == ODD.metadata["box"]
        assert json.loads(frame.huge["odd"]) == 2**70
        assert list(frame.genres["a"]) == ["Drama", "Crime"]
        assert frame.score.dtype == "double[pyarrow]"
        assert frame.large.dropna().tolist() == [2**60 + 1]
        assert frame.none.isna().all()


def vectors_of(index, space=None):
    return index.passages(space).vectors


def passages_of(file):
    return [json.loads(line) for line in file.read_text("utf-8").split("\n")[:-1]]


@pytest.mark.parametrize(("space", "dimension"), [(None, 64), ("hashing-16", 16)])
def test_vectors(index, tmp_path, space, dimension):
    options = {"vectors": True, "space": space}
    exported = export_index(index, tmp_path / "v.parquet", **options)
    export_index(index, tmp_path / "v.jsonl", **options)
    frame = pandas.read_parquet(exported.file)
    assert list(frame.columns) == ["id", "start", "end", "text", "vector"]
    assert exported.rows == len(frame) > len(FILMS)
    matrix = numpy.stack(frame.vector)
    assert (matrix.dtype, matrix.shape[1]) == (numpy.float32, dimension)
    assert (matrix == vectors_of(index, space)).all()
    frame["vector"] = matrix.tolist()
    assert passages_of(tmp_path / "v.jsonl") == frame.to_dict("records")
    assert frame.text.tolist() == index.passages().texts
    for row in frame.itertuples():
        assert index.get(row.id).text[row.start : row.end] == row.text


def test_vectors_of_documents_that_match(index, tmp_path):
    done = []
    options = {"where": "year > 2000", "on_progress": lambda *call: done.append(call)}
    exported = export_index(index, tmp_path / "v.jsonl", vectors=True, **options)
    assert [row["id"] for row in passages_of(exported.file)] == ["b"]
    assert done == [(1, 1)]


def test_an_export_is_of_one_state_despite_writes(index, tmp_path):
    def write(done, total):
        if done == 2:
            index.delete(["a", "long"])
            index.add([Document("new", "new")])

    assert export_index(index, tmp_path / "films.jsonl", on_progress=write).rows == 4
    ids = [row["id"] for row in passages_of(tmp_path / "films.jsonl")]
    assert ids[:3] == ["a", "b", "long"]
    assert len(ids) == 4


def interrupt(done, total):
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("name", "options", "error"),
    [
        ("mine.csv", {}, ArgumentError),
        ("films.xlsx", {}, ValueError),
        ("none/films.jsonl", {}, ValueError),
        ("films.jsonl", {"space": "hashing-64"}, ValueError),
        ("films.csv", {"vectors": True}, ValueError),
        ("films.jsonl", {"where": "yaer = 1"}, FilterError),
        ("films.jsonl", {"vectors": True, "space": "glove"}, SpaceError),
        ("films.jsonl", {"on_progress": interrupt}, KeyboardInterrupt),
    ],
)
def test_mistakes_and_interruptions_leave_everything_as_it_was(
    index, tmp_path, name, options, error
):
    (tmp_path / "mine.csv").write_text("mine")
    with pytest.raises(error):
        export_index(index, tmp_path / name, **options)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["films", "mine.csv"]
    assert (tmp_path / "mine.csv").read_text() == "mine"
