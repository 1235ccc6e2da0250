"""No id and no name of an encoder becomes a path beyond the index directory."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import pytest

from semsearch import Document, Index
from semsearch.corpus import Corpus
from semsearch.errors import BadRowError
from semsearch.storage.spaces import free_name

IDS = [
    *("../../x", "/etc/passwd", "/evil", "CON", "NUL.txt", "..", ".", "index.sqlite", "x\ny", "~"),
    *("C:\\Windows\\x", "$(touch y)", "; rm -rf z", "%2e%2e%2f", "x" * 1_000_000, "\u202e", "-k"),
]
FILES = ["hashing-3.faiss", "index.sqlite", "writer.lock"]


@pytest.fixture
def around(tmp_path, monkeypatch) -> Path:
    """A folder with other files around an index, middle/pets; middle is the working directory."""
    middle = tmp_path / "around" / "middle"
    middle.mkdir(parents=True)
    monkeypatch.chdir(middle)
    for name in ("x", "x-1.faiss", "x-2.faiss", "x-1.faiss.tmp", "x.sqlite"):
        (middle.parent / name).write_text("not ours")
        (middle / name).write_text("not ours")
    return middle.parent


def names(around: Path) -> list[str]:
    return sorted(file.name for file in (around / "middle" / "pets").iterdir())


def test_ids_are_not_used_as_file_names(around):
    before = sorted(around.rglob("*"))
    documents = [
        Document(name, f"Text {number}.", title=name, metadata={name: name})
        for number, name in enumerate(IDS)
    ]
    with Index.create("pets", ["hashing"]) as index:
        index.add(documents)
        hits = index.search("text", k=len(IDS))
        assert {hit.document_id for hit in hits} == set(IDS)
        index.delete(IDS[:3])
        with index.writer() as writer:
            writer.sync(documents[3:])
            writer.repair()
            writer.compact()
            assert writer.verify() == []
    assert names(around) == FILES
    shutil.rmtree("pets")
    assert sorted(around.rglob("*")) == before


def test_an_id_with_a_nul_is_a_bad_row():
    # SQLite would read only the part before the NUL.
    with pytest.raises(BadRowError, match=r"^c\.csv:2"):
        Document("a\0b", "Text.", source="c.csv:2")


@pytest.mark.parametrize("spec", [*IDS, "a\0b"])
def test_names_of_spaces_are_safe_in_file_names(spec):
    assert re.fullmatch(r"[a-z0-9_-]{1,64}", free_name(spec, []))
    assert free_name("hashing", ["hashing", "hashing-2"]) == "hashing-3"


@pytest.mark.skipif(sys.platform != "linux", reason="file names can be any bytes on Linux only")
def test_undecodable_file_names(around):
    folder = around / "middle" / "caf\udce9"
    folder.mkdir()
    (folder / "b\udcff.txt").write_text("One.")
    (folder / "c\udcff.csv").write_text("id,text\nc,Two.\n")
    (folder / "d\udcff.jsonl").write_text('{"id": "d", "text": "Three."}\n{"id": "d", "text": ""}')
    bad = []
    with Index.create("pets", ["hashing"]) as index:
        for name in ("", "b\udcff.txt", "c\udcff.csv", "d\udcff.jsonl"):
            index.add(Corpus(folder / name, on_bad_row=bad.append))
        ids = {hit.document_id for hit in index.search("x")}
    place = str(around / "middle" / "caf\\udce9")
    rows = {"c\\udcff.csv#id=c", "d\\udcff.jsonl#id=d"}  # from the folder's tables
    assert ids == {"b\\udcff.txt", f"{place}/b\\udcff.txt", "c", "d"} | rows
    assert [error.source for error in bad] == [f"{place}/d\\udcff.jsonl:2"] * 2  # folder, file
