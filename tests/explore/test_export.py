"""Exports: other programs can read them, and an index can be made from them."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime

import numpy
import openpyxl
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
        assert exported == (tmp_path / f"films.{ending}", 4 + len(more), (), 0)
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
        assert export_index(index, tmp_path / "films.csv") == (tmp_path / "films.csv", 5, (), 0)
        frame = pandas.read_csv(tmp_path / "films.csv", dtype=str, index_col="id")
        renamed = ["metadata.id", "metadata.metadata.id"]
        names = ["box", "day", "genres", "huge", *renamed, "score", "vector", "year"]
        assert list(frame.columns) == ["title", "text", *names]
        assert list(frame.text) == [document.text for document in index]
        assert frame.loc["a", "genres"] == '["Drama", "Crime"]'
        assert frame.loc["odd", "box"] == '{"a": [1, null]}'
        assert frame.loc["a", "year"] == "1990"
        assert pandas.isna(frame.loc["b", "title"])

    def test_csv_and_workbooks_open_in_excel_as_they_are(self, index, tmp_path):
        """Umlauts need a byte order mark; a text is no formula, and a cell has a limit."""
        texts = ["Übung für Łódź", "=1+1", "#N/A", "bell \x07", "x " * 20_000]
        days = ["2024-02-29T00:00:00", "2024-02-30", "1850-01-01", "2024-05-01", "24"]
        index.add(
            [
                Document(name, text, None, {"day": day})
                for name, text, day in zip("56789", texts, days, strict=True)
            ]
        )
        where = {"where": "id in ('5', '6', '7', '8', '9')"}
        file = export_index(index, tmp_path / "t.csv", **where).file
        assert file.read_bytes().startswith("\ufeffid,title,text".encode())
        assert list(pandas.read_csv(file, dtype=str, keep_default_na=False).text) == texts
        exported = export_index(index, tmp_path / "t.xlsx", **where)
        assert (exported.rows, exported.cut) == (5, 1)
        sheet = openpyxl.load_workbook(exported.file).active
        ids, _, found, when = zip(*sheet.iter_rows(min_row=2), strict=True)
        assert [cell.value for cell in ids] == [5, 6, 7, 8, 9]
        assert [cell.data_type for cell in found] == ["s"] * 5
        shown = [*texts[:3], "bell \N{REPLACEMENT CHARACTER}", texts[4][:32_767]]
        assert [cell.value for cell in found] == shown
        times = [datetime(2024, 2, 29), *days[1:3], datetime(2024, 5, 1), "24"]
        assert [cell.value for cell in when] == times

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


SURVEY = """Nr,Title,id,Comment,Days,group
5,Übung,k1,It was too loud.,3.5,a
6,,k2,It was too loud!,,b
7,Food,k3,Good food today.,2,c
"""


@pytest.fixture
def survey(tmp_path):
    """Indexes the survey with these options of `Corpus`."""
    (tmp_path / "survey.csv").write_text(SURVEY, "utf-8")

    def indexed(*files, **options):
        index = Index.create(tmp_path / "survey", "hashing")
        index.add(Corpus([tmp_path / "survey.csv", *files], **options))
        return index

    return indexed


class TestOriginalColumns:
    """Tables go back as they came: the columns in their order, with their names."""

    @pytest.mark.parametrize("ending", ["csv", "parquet", "xlsx"])
    def test_are_those_of_the_table(self, survey, tmp_path, ending):
        index = survey(text_columns="Comment", title_column="Title")
        index.add([Document("new", "more", "Later", {"extra": 1})])
        file = export_index(index, tmp_path / f"out.{ending}").file
        reader = {"csv": pandas.read_csv, "parquet": pandas.read_parquet, "xlsx": pandas.read_excel}
        found = reader[ending](file)
        expected = pandas.read_csv(tmp_path / "survey.csv")
        assert list(found.columns) == [*expected.columns, "extra"]
        shown, wanted = (frame.astype(object) for frame in (found.iloc[:3, :6], expected))
        assert shown.where(found.iloc[:3, :6].notna(), None).equals(
            wanted.where(expected.notna(), None)
        )
        assert found.iloc[3][["id", "Title", "Comment"]].tolist() == ["new", "Later", "more"]

    @pytest.mark.parametrize(
        ("texts", "columns", "cells"),
        [
            (["Title", "Comment"], {"Comment": 1}, ["It was too loud.", "Good food today."]),
            (["Comment", "Title"], {"Comment": 1}, ["It was too loud.", "Good food today."]),
            (["Comment", "group"], {"Comment + group": 1}, ["It was too loud.\na", None]),
        ],
    )
    def test_of_several_texts(self, survey, tmp_path, texts, columns, cells):
        """A title can be told from a text; other texts cannot be told from each other."""
        index = survey(text_columns=texts, title_column="Title")
        rows = pandas.read_csv(export_index(index, tmp_path / "out.csv").file)
        (column,) = columns
        assert list(rows.columns)[:4] == ["Nr", "Title", "id", column]
        assert rows[column][0] == cells[0]
        assert cells[1] is None or rows[column][2] == cells[1]

    def test_with_groups_and_duplicates(self, survey, tmp_path):
        index = survey(text_columns="Comment")
        rows = pandas.read_csv(export_index(index, tmp_path / "a.csv", groups=True).file)
        assert list(rows.columns)[-3:] == ["group", "group_2", "duplicate-of"]
        assert list(rows.group) == ["a", "b", "c"]
        assert rows.group_2[0] == rows.group_2[1]
        assert rows["duplicate-of"].fillna("").tolist() == ["", "k1", ""]
        (tmp_path / "plain.csv").write_text(SURVEY.replace("id", "number"), "utf-8")
        with Index.create(tmp_path / "plain", "hashing") as plain:
            plain.add(Corpus(tmp_path / "plain.csv", text_columns="Comment"))
            export_index(plain, tmp_path / "b.csv", groups=True)
        rows = pandas.read_csv(tmp_path / "b.csv")
        assert rows["duplicate-of"].fillna("").tolist() == ["", "row 2", ""]

    def test_are_not_those_of_one_of_two_tables(self, survey, tmp_path):
        (tmp_path / "other.csv").write_text("id,text\nz,words\n")
        index = survey(tmp_path / "other.csv")
        rows = pandas.read_csv(export_index(index, tmp_path / "out.csv").file)
        assert list(rows.columns)[:3] == ["id", "title", "text"]


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
        ("films.txt", {}, ValueError),
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
