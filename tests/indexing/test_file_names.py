"""No id and no name of an encoder becomes a path beyond the index directory."""

from __future__ import annotations

import hashlib
import shutil
import sys
from pathlib import Path

import pytest

from semsearch import Document, Index
from semsearch.corpus import Corpus
from semsearch.encoders import load_encoder
from semsearch.errors import BadRowError

IDS = [
    *("../../x", "/etc/passwd", "/evil", "CON", "NUL.txt", "..", ".", "index.sqlite", "x\ny", "~"),
    *("C:\\Windows\\x", "$(touch y)", "; rm -rf z", "%2e%2e%2f", "x" * 1_000_000, "\u202e", "-k"),
]
FILES = ["hashing-3.faiss", "index.sqlite", "writer.lock"]


def tree(folder: Path) -> dict[str, str]:
    """Every path below a folder, with a hash of its content, "folder" or a link's target."""
    return {
        path.relative_to(folder).as_posix(): (
            f"-> {path.readlink()}"
            if path.is_symlink()
            else "folder"
            if path.is_dir()
            else hashlib.sha256(path.read_bytes()).hexdigest()
        )
        for path in folder.rglob("*")
    }


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
    before = tree(around)
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
    assert tree(around) == before


def test_an_id_with_a_nul_is_a_bad_row():
    # SQLite would read only the part before the NUL.
    with pytest.raises(BadRowError, match=r"^c\.csv:2"):
        Document("a\0b", "Text.", source="c.csv:2")


class Renamed:
    """The hashing encoder under another name."""

    def __init__(self, spec: str) -> None:
        self._encoder = load_encoder("hashing")
        self.spec = spec
        self.fingerprint = hashlib.sha256(spec.encode("utf-8", "replace")).hexdigest()

    def __getattr__(self, name):
        return getattr(self._encoder, name)


def test_encoder_specs_name_files_in_the_directory_only(around):
    before = tree(around)
    encoders = [Renamed(spec) for spec in [*IDS, "a\0b"]]
    with Index.create("pets", encoders) as index:
        index.add([Document("cat", "The cat sleeps.")])
        spaces = index.info().spaces
    assert len({space.name for space in spaces}) == len(encoders)
    snapshots = {f"{space.name}-1.faiss" for space in spaces}
    assert set(names(around)) == snapshots | {"index.sqlite", "writer.lock"}
    assert max(map(len, snapshots)) < 100
    shutil.rmtree("pets")
    assert tree(around) == before


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
