"""Arrow IPC files (also called Feather) and streams."""

from __future__ import annotations

import io
import random

import pyarrow
import pyarrow.feather
import pyarrow.ipc
import pytest

from semsearch.corpus import Corpus
from semsearch.errors import BadRowError, CorpusError
from semsearch.records import Document

TABLE = pyarrow.table({"id": [1, 2], "text": ["one", "two"], "tags": [["a"], None]})


def stored(kind, table=TABLE):
    file = io.BytesIO()
    if kind == "feather":
        pyarrow.feather.write_feather(table, file, compression="lz4")
    else:
        new = pyarrow.ipc.new_file if kind == "file" else pyarrow.ipc.new_stream
        with new(file, table.schema) as writer:
            writer.write_table(table, max_chunksize=1)
    return file.getvalue()


@pytest.mark.parametrize(
    ("kind", "name"),
    [("feather", "c.feather"), ("file", "c.arrow"), ("stream", "c.arrows"), ("file", "c")],
)
def test_arrow(write, kind, name):
    write(name, stored(kind), packed=kind == "file")
    documents = list(Corpus(name))
    assert documents == [
        Document("1", "one", None, {"tags": ["a"]}),
        Document("2", "two", None, {"tags": None}),
    ]
    assert [one.source for one in documents] == [f"{name}, row 1", f"{name}, row 2"]


@pytest.mark.parametrize(
    ("name", "content", "error"),
    [
        ("old.feather", b"FEA1" + bytes(50), BadRowError),
        ("cut.arrow", stored("file")[:-30], BadRowError),
        ("empty.arrow", stored("file", TABLE.slice(0, 0)), CorpusError),
    ],
)
def test_files_that_cannot_be_read(write, name, content, error):
    with pytest.raises(error, match=f"^{name}"):
        list(Corpus(write(name, content)))


def test_a_broken_file_is_one_bad_row(write):
    """Even if the damage is found late; other files are still read."""
    table = pyarrow.table({"text": [f"text {number}" for number in range(3000)]})
    stream = io.BytesIO()
    with pyarrow.ipc.new_stream(stream, table.schema) as writer:
        for batch in table.to_batches(max_chunksize=1000):
            writer.write_batch(batch)
    write("late.arrow", stream.getvalue()[:-10_000])
    write("other.arrow", random.Random(7).randbytes(2000))
    write("good.txt", "Good.")
    bad = []
    names = ["other.arrow", "late.arrow", "good.txt"]
    *rows, last = Corpus(names, on_bad_row=bad.append)
    assert last.id == "good.txt"
    assert [row.text for row in rows] == [f"text {number}" for number in range(2000)]
    assert [error.source for error in bad] == ["other.arrow", "late.arrow, after row 2000"]
