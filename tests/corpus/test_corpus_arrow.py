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
DOCUMENTS = [
    Document("1", "one", None, {"tags": ["a"]}),
    Document("2", "two", None, {"tags": None}),
]


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
    notices = []
    documents = list(Corpus(name, notify=notices.append))
    assert documents == DOCUMENTS
    assert [one.source for one in documents] == [f"{name}, row 1", f"{name}, row 2"]
    what = "an Arrow stream" if kind == "stream" else "an Arrow file"
    assert notices[0].endswith(f"; {what}, types: id int64, text string, tags list<item: string>")


def test_files_that_cannot_be_read(write):
    write("old.feather", b"FEA1" + bytes(50))
    with pytest.raises(BadRowError, match=r"^old\.feather"):
        list(Corpus("old.feather"))
    write("cut.arrow", stored("file")[:-30])
    with pytest.raises(BadRowError, match=r"^cut\.arrow"):
        list(Corpus("cut.arrow"))
    write("empty.arrow", stored("file", TABLE.slice(0, 0)))
    with pytest.raises(CorpusError, match=r"^empty\.arrow"):
        list(Corpus("empty.arrow"))


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
    assert bad[0].reason.startswith("cannot be read as Arrow or Parquet: ")
    assert bad[1].reason.startswith("cannot be read as Arrow or Parquet: ")
