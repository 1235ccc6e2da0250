"""Compaction removes every trace of deleted documents from the files."""

from __future__ import annotations

import pytest

from semsearch import Document, Index
from semsearch.encoders import load_encoder
from semsearch.errors import IndexBusyError

MARKER = "Xylophonquartz"
SECRET = Document(
    f"id-{MARKER}",
    f"This {MARKER} is to be forgotten, every {MARKER.upper()} of it.",
    f"Title {MARKER}",
    {f"field {MARKER}": f"value {MARKER}", "tags": [MARKER]},
)
OTHERS = [Document(str(number), f"plain text number {number}") for number in range(300)]


def traces(path, vector):
    """The files that contain the marker, in any case and encoding, or the vector."""
    forms = {form(MARKER) for form in (str, str.lower, str.upper)}
    needles = [f.encode(code) for f in forms for code in ("utf-8", "utf-16-le", "utf-16-be")]
    needles.append(vector.tobytes())
    return {
        file.name: needle
        for file in path.iterdir()
        for needle in needles
        if needle in file.read_bytes()
    }


@pytest.fixture
def index(tmp_path):
    with Index.create(tmp_path / "x", ["hashing:16"]) as index:
        index.add([*OTHERS[:150], SECRET, *OTHERS[150:]])
        yield index


@pytest.fixture
def vector():
    (vector,) = load_encoder("hashing:16").encode_documents([SECRET.text])
    return vector


def compact(index):
    with index.writer() as writer:
        writer.compact()


def test_compaction_erases_deleted_documents(index, vector):
    assert {"index.sqlite-wal", "hashing-16-1.faiss"} <= set(traces(index.path, vector))
    index.delete([SECRET.id])
    assert "hashing-16-1.faiss" in traces(index.path, vector)  # deleted rows stay in a snapshot
    compact(index)
    assert traces(index.path, vector) == {}
    assert index.fields() == []
    assert len(index) == 300
    assert len(index.search("plain text number 7", k=400)) == 300
    with index.writer() as writer:
        assert writer.verify() == []


def test_compaction_fails_while_a_reader_holds_an_old_state(index, vector, monkeypatch):
    monkeypatch.setattr(
        "semsearch.storage.sqlite.database._PRAGMAS", ("PRAGMA busy_timeout = 100",)
    )
    with (
        Index.open(index.path) as reader,
        Index.open(index.path) as impatient,
        reader.read() as state,
    ):
        state.connection.exec_driver_sql("SELECT count(*) FROM passages").scalar_one()
        index.delete([SECRET.id])
        with pytest.raises(IndexBusyError):
            compact(impatient)
    compact(index)
    assert traces(index.path, vector) == {}
