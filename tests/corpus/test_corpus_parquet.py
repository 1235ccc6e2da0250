"""Parquet files."""

from __future__ import annotations

import datetime
import io
from decimal import Decimal
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from semsearch.corpus import Corpus
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


def test_binary_data_is_left_out(write_table):
    """As in data sets of Hugging Face with images."""
    images = [{"bytes": b"\xff", "path": "a.png"}]
    (document,) = Corpus(write_table({"text": ["one"], "n": [1], "image": images, "raw": [b"a"]}))
    assert document == Document(None, "one", None, {"n": 1})


def test_whole_decimals_are_valid_ids(write_table):
    columns = {"id": [Decimal(12), Decimal("12.5"), None], "text": ["one", "two", "three"]}
    [document], bad, _ = read(write_table(columns))
    assert document.id == "12"
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
