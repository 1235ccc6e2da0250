"""An open index whose directory or files are replaced or deleted, as by a nightly job."""

from __future__ import annotations

import os
import shutil

import pytest

from semsearch import Document, Index
from semsearch.errors import IndexNotFoundError

pytestmark = pytest.mark.skipif(
    os.name != "posix", reason="Windows does not replace files that are open"
)


def make(path, name, encoder="hashing:32"):
    """An index of three documents, of which a filter matches the last; all have one revision."""
    with Index.create(path, encoder) as index:
        index.add(Document(f"{name}{n}", f"{name} cat", metadata={"g": n // 3}) for n in (1, 2, 3))
    return path


@pytest.fixture
def path(tmp_path):
    return make(tmp_path / "x", "old")


def make_anew(path):
    shutil.rmtree(path)
    make(path, "new")


def replace_files(path):
    for file in make(path.with_name("z"), "new").iterdir():
        file.replace(path / file.name)


@pytest.mark.parametrize("replace", [make_anew, replace_files])
def test_the_new_index_is_read_and_written(path, replace, caplog):
    with Index.open(path) as index:
        assert [hit.document_id for hit in index.search("cat", where="g = 1")] == ["old3"]
        replace(path)
        found = index.search("cat", where="g = 1")
        assert [(hit.document_id, hit.text) for hit in found] == [("new3", "new cat")]
        index.add([Document("added", "a later cat")])
        with Index.open(path) as other:
            assert [document.id for document in other] == ["new1", "new2", "new3", "added"]
        with index.writer() as writer:
            assert writer.verify() == []
    assert not caplog.records


def test_a_deleted_index_is_neither_read_nor_written_nor_made(path):
    with Index.open(path) as index:
        assert len(index) == 3
        shutil.rmtree(path)
        for use in (index.count, lambda: index.search("cat"), lambda: index.add([])):
            with pytest.raises(IndexNotFoundError):
                use()
        assert not path.exists()
        make(path, "new")
        assert "new1" in index
