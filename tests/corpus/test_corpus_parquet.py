"""Parquet files and pandas DataFrames."""

from __future__ import annotations

import datetime
import io
from decimal import Decimal
from pathlib import Path

import pandas
import pyarrow
import pyarrow.parquet
import pytest

from semsearch.corpus import Corpus, frame_documents
from semsearch.corpus.frames import documents_of, frame_text_columns
from semsearch.errors import ArgumentError, BadRowError, CorpusError
from semsearch.records import Document
from tests.corpus.conftest import read


@pytest.fixture
def write_table(write):
    def write_table(columns, name="corpus.parquet", *, packed=False):
        file = io.BytesIO()
        pyarrow.parquet.write_table(pyarrow.table(columns), file)
        return write(name, file.getvalue(), packed=packed)

    return write_table


COLUMNS = {
    "id": [1, 2],
    "text": ["one", "two"],
    "tags": [["a", "b"], None],
    "day": [datetime.date(2020, 1, 2), None],
    "score": [0.5, float("nan")],
}
DOCUMENTS = [
    Document("1", "one", None, {"tags": ["a", "b"], "day": "2020-01-02", "score": 0.5}),
    Document("2", "two", None, {"tags": None, "day": None, "score": None}),
]


@pytest.mark.parametrize(
    ("name", "packed"),
    [("corpus.parquet", False), ("corpus.parquet.gz", True), ("corpus.dat", False)],
)
def test_parquet(write_table, stdin, name, packed):
    corpus = Corpus(write_table(COLUMNS, name, packed=packed))
    documents = list(corpus)
    assert documents == DOCUMENTS
    assert [one.source for one in documents] == [f"{name}, row 1", f"{name}, row 2"]
    assert corpus.fraction_read == 1.0
    stdin(Path(name).read_bytes())
    assert list(Corpus("-")) == DOCUMENTS


def test_whole_decimals_are_valid_ids_and_binary_data_is_left_out(write_table):
    """As in data sets of Hugging Face with images."""
    columns = {"id": [Decimal(12), Decimal("12.5"), None], "text": ["one", "two", "three"]}
    columns |= {"n": [1] * 3, "image": [{"bytes": b"\xff", "path": "a.png"}] * 3, "raw": [b"a"] * 3}
    [document], bad, _ = read(write_table(columns))
    assert document == Document("12", "one", None, {"n": 1})
    assert [str(error) for error in bad] == [
        "corpus.parquet, row 2: id is not a string but Decimal('12.5') (Decimal)",
        "corpus.parquet, row 3: empty id",
    ]


def test_bad_rows(write_table):
    texts = pyarrow.array([b"good", b"caf\xe9", None, b" ", b"good"]).cast(
        pyarrow.string(), safe=False
    )
    days = pyarrow.array([0, 0, 0, 0, 10**9], pyarrow.int32()).cast(pyarrow.date32())
    documents, bad, _ = read(write_table({"text": texts, "day": days}))
    assert documents == [Document(None, "good", None, {"day": "1970-01-01"})]
    assert [error.source for error in bad] == [f"corpus.parquet, row {row}" for row in (2, 3, 4, 5)]
    assert bad[0].reason.startswith("cannot be read: 'utf-8' codec can't decode byte 0xe9")
    assert [error.reason for error in bad[1:3]] == ["empty text"] * 2
    assert bad[3].reason.startswith("cannot be read: ")


def test_files_that_are_not_parquet(bad_file, write_table):
    content = Path(write_table(COLUMNS)).read_bytes()
    for name, wrong in {
        "text.parquet": b"id,text\n1,one\n",
        "cut.parquet": content[:-10],
        "wrong.parquet": content[:20] + b"\xff" * 60 + content[80:],
    }.items():
        assert bad_file(name, wrong).reason.startswith("cannot be read as Parquet: ")


def test_a_frame():
    frame = pandas.DataFrame(
        {
            "id": [1.0, 2.0],
            "title": ["One", None],
            "text": ["first", "second"],
            "score": [0.5, float("nan")],
            "count": pandas.array([1, None], dtype="Int64"),
            "day": [pandas.Timestamp("2020-01-02"), pandas.NaT],
            "genre": pandas.Categorical(["a", "b"]),
            "tags": [["x"], []],
        },
        index=["p", "q"],
    )
    notices: list[str] = []
    documents = list(frame_documents(frame, notify=notices.append))
    first = {"score": 0.5, "count": 1, "genre": "a", "tags": ["x"]}
    second = {"score": None, "count": None, "day": None, "genre": "b", "tags": []}
    assert documents == [
        Document("1", "first", "One", first | {"day": "2020-01-02T00:00:00"}),
        Document("2", "second", None, second),
    ]
    assert [document.source for document in documents] == ["frame.iloc[0]", "frame.iloc[1]"]
    [notice] = notices
    assert notice.startswith("frame: text from 'text', title from 'title', id from 'id'; ")


def test_bad_rows_of_frames():
    """In more rows than are read at once."""
    texts = [f"text {number}" for number in range(2500)]
    texts[1:6] = [float("nan"), None, pandas.NA, "", [5]]
    bad = []
    documents = list(frame_documents(pandas.DataFrame({"text": texts}), on_bad_row=bad.append))
    assert [document.text for document in documents] == [texts[0], *texts[6:]]
    assert documents[-1].source == "frame.iloc[2499]"
    assert [error.source for error in bad] == [f"frame.iloc[{row}]" for row in range(1, 6)]
    with pytest.raises(BadRowError, match=r"^frame\.iloc"):
        list(frame_documents(pandas.DataFrame({"text": texts})))


def test_frames_that_cannot_be_read():
    repeated = pandas.DataFrame([["a", "b"]], columns=["text", "text"])
    for columns in ({"text": []}, {}, repeated, {"a": ["x"], "b": ["y"]}):
        with pytest.raises(CorpusError):
            list(frame_documents(pandas.DataFrame(columns)))


def test_a_corpus_can_be_a_frame():
    frame = pandas.DataFrame({"a": ["x"], "b": ["y"]})
    columns = {"id_column": "a", "text_columns": "b", "title_column": None}
    assert list(documents_of(frame, columns)) == [Document("x", "y")]
    assert frame_text_columns(frame, "b") == ("b",)
    assert list(documents_of(pyarrow.table(frame), columns)) == [Document("x", "y")]
    assert list(documents_of([], {"id_column": None})) == []
    with pytest.raises(ArgumentError):
        list(documents_of(["x"], {"id_column": "a"}))
