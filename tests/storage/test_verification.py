"""Every kind of fault is found and named; derived data is rebuilt."""

from __future__ import annotations

import sqlite3

import pytest

from semsearch import Document, Index
from semsearch.encoders import load_encoder
from semsearch.errors import EncoderError, SpaceError

DOCUMENTS = [
    Document(str(number), f"word{number % 5} thing{number % 7} {number}", metadata={"n": number})
    for number in range(60)
]


@pytest.fixture
def path(tmp_path):
    with Index.create(tmp_path / "x", ["hashing:32"]) as index:
        index.add(DOCUMENTS)
        index.add([Document("東京", "Wort3 ｗｏｒｄ１ 東京の天気")])
    return tmp_path / "x"


def damage(path, *statements):
    """Change the database behind the index's back."""
    connection = sqlite3.connect(path / "index.sqlite")
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


def faults(path):
    with Index.open(path) as index, index.writer() as writer:
        return writer.verify()


def repair(path):
    with Index.open(path) as index, index.writer() as writer:
        writer.repair()


def answers(path):
    with Index.open(path) as index:
        hits = [index.search("word3 thing4", 60, mode=mode) for mode in ("semantic", "bm25")]
    return [[(hit.document_id, round(hit.score, 6)) for hit in ranking] for ranking in hits]


REPAIRABLE = {
    "DELETE FROM vectors WHERE passage_id = 7": "1 passage",
    "UPDATE vectors SET vector = x'00' WHERE passage_id < 3": "2 passages",
    "DELETE FROM passages_fts_data WHERE id > 10": "words",
    "INSERT INTO passages_fts(rowid, words) VALUES (999, 'stray')": "words",
    "UPDATE snapshots SET vectors = 59": "hashing-32-1.faiss is missing",
    "UPDATE snapshots SET generation = 7": "hashing-32-7.faiss is missing",
}


@pytest.mark.parametrize("statement", REPAIRABLE)
def test_derived_data_is_repaired(path, statement):
    before = answers(path)
    damage(path, statement)
    found = faults(path)
    assert REPAIRABLE[statement] in " / ".join(fault.what for fault in found)
    assert all(fault.repairable for fault in found)
    repair(path)
    assert faults(path) == []
    assert answers(path) == before


def test_an_index_of_sqlite_that_lacks_rows_is_rebuilt(path):
    with Index.open(path) as index, index.writer() as writer:
        writer.index_field("n")
    damage(
        path,
        "PRAGMA writable_schema = ON",
        "UPDATE sqlite_schema SET sql = replace(sql, '\"n\"', '\"m\"') WHERE name = 'metadata.n'",
    )
    found = faults(path)
    assert "missing from index metadata.n" in found[0].what
    assert all(fault.repairable for fault in found)
    repair(path)
    assert faults(path) == []


UNREPAIRABLE = {
    "UPDATE passages SET text = 'altered' WHERE passage_id = 1": "1 passage",
    'UPDATE passages SET start = start + 1, "end" = "end" + 1 WHERE passage_id = 1': "1 passage",
    "UPDATE texts SET text = text || '.' WHERE document_id = 1": "1 document not",
}


@pytest.mark.parametrize("statement", UNREPAIRABLE)
def test_unrepairable_damage_is_reported(path, statement):
    damage(path, statement)
    reported = {fault.what: fault for fault in faults(path)}
    (what,) = [what for what in reported if UNREPAIRABLE[statement] in what]
    assert not reported[what].repairable


def test_every_damaged_vector_of_a_snapshot_is_found_and_repaired(path):
    before = answers(path)
    (file,) = path.glob("*.faiss")
    content = file.read_bytes()
    for place in range(200, 60 * 32 * 4, 1000):
        changed = bytearray(content)
        changed[place] ^= 0x10
        file.write_bytes(changed)
        assert len(faults(path)) == 1
        assert answers(path) == before
    repair(path)
    assert faults(path) == []
    assert answers(path) == before


def test_leftovers_are_removed_by_the_next_writer(path):
    """Those of a killed run, and the map of a space that was dropped."""
    before = {file.name for file in path.iterdir()} | {"hashing-32.map"}
    for name in ("hashing-32-2.faiss.tmp", "hashing-32-7.faiss", "hashing-32.map"):
        (path / name).write_bytes(b"half of a file")
    with Index.open(path) as index, index.writer() as writer:
        assert {file.name for file in path.iterdir()} >= before
        assert not list(path.glob("hashing-32-[27]*"))
        writer.add_space(load_encoder("hashing:64"))
        (path / "hashing-64.map").write_bytes(b"a map")
        writer.drop_space("hashing-64")
    assert {file.name for file in path.iterdir()} == before


def test_a_space_whose_encoder_is_missing_does_not_prevent_the_repair_of_others(tmp_path):
    with Index.create(tmp_path / "two", ["hashing:32", "hashing:64"]) as index:
        index.add(DOCUMENTS)
    damage(
        index.path,
        "UPDATE vectors SET vector = x'00' WHERE passage_id = 7",
        "UPDATE spaces SET spec = 'no/model' WHERE space_id = 1",
    )
    with pytest.raises(EncoderError, match="no/model"):
        repair(index.path)
    with Index.open(index.path) as again:
        with pytest.raises(SpaceError):
            again.search("word3", space="hashing-32")
        assert len(again.search("word3", 60, space="hashing-64")) == 60
        assert list(again.info().snapshots) == ["hashing-64"]
    (fault,) = faults(index.path)
    assert fault.what == "space 'hashing-32' lacks the vectors of 1 passage"
