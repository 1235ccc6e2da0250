"""Indexes of older formats are read and migrated.

``format-1`` was written by the first version of semsearch: see `write_fixture`.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from semsearch import Document, Index, Retriever
from semsearch.errors import DamagedIndexError, IndexFormatError, SpaceError
from semsearch.stores.local.migrations import STEPS
from semsearch.stores.local.schema import FORMAT_VERSION
from semsearch.stores.protocol import text_hash

FIXTURE = Path(__file__).parent / "format-1"
OPEN_FILES = Path("/proc/self/fd")
QUERIES = {"semantic": "a river in winter", "bm25": "rivers", "hybrid": "lamp"}


def write_fixture() -> None:
    """How the fixture was made; running it again would write the newest format."""
    subjects = ["river", "lamp", "orchard", "harbour", "violin", "glacier"]
    documents = [
        Document(
            f"doc-{number}",
            f"The {subject} in winter, number {number}.",
            subject.title(),
            {"number": number, "tags": [subject, "winter"], "even": number % 2 == 0},
        )
        for number, subject in enumerate(subjects)
    ]
    documents.append(Document(None, "No one named this river. " * 80))
    with Index.create(FIXTURE, ["hashing:16"]) as index:
        index.add(documents)
        index.delete(["doc-4"])
        expected = answers(index)
    (FIXTURE / "expected.json").write_text(json.dumps(expected, indent=1))


def as_then(score, mode):
    """The rounded score as it was then: in hybrid search, both sides had weight 1."""
    return round(2 * score if mode == "hybrid" else score, 5)


def answers(index):
    return {
        mode: [
            [
                hit.document_id,
                as_then(hit.score, mode),
                hit.title,
                hit.metadata,
                hit.text,
            ]
            for hit in Retriever(index).search(query, 10, mode=mode, **fusion)
        ]
        for mode, query in QUERIES.items()
        for fusion in [{"fusion": "rrf"} if mode == "hybrid" else {}]
    }


@pytest.fixture
def path(tmp_path):
    shutil.copytree(FIXTURE, tmp_path / "index")
    (tmp_path / "index" / "expected.json").unlink()
    return tmp_path / "index"


def test_the_first_format_is_read_and_written(path):
    expected = json.loads((FIXTURE / "expected.json").read_text())
    with Index.open(path) as index:
        assert answers(index) == expected
        filtered = Retriever(index).search("x", where="even = true and tags = 'winter'")
        assert {hit.document_id for hit in filtered} == {"doc-0", "doc-2"}
        assert index.add([Document("new", "A new river.")]).added == 1
        with index.writer() as writer:
            assert writer.verify() == []
            writer.compact()
        assert len(index) == 7


def format_of(path):
    connection = sqlite3.connect(path / "index.sqlite")
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    connection.close()
    return version


@pytest.fixture
def next_format(monkeypatch):
    """Raise the program's format by one; the returned function sets the migration step to it."""
    for module in ("database", "migrations"):
        monkeypatch.setattr(f"semsearch.stores.local.{module}.FORMAT_VERSION", FORMAT_VERSION + 1)

    def install(step):
        monkeypatch.setattr(
            "semsearch.stores.local.migrations.STEPS", STEPS | {FORMAT_VERSION: step}
        )

    return install


def schema_of(path):
    with closing(sqlite3.connect(path / "index.sqlite")) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema")]
        return {
            name: sorted(row[1:6] for row in connection.execute(f"PRAGMA table_xinfo('{name}')"))
            for name in tables
        }


def test_the_migrated_schema_is_that_of_a_new_index(path, tmp_path):
    Index.create(tmp_path / "new", ["hashing:16"]).close()
    with Index.open(path) as index:
        assert [(field.name, field.kinds) for field in index.info().fields] == [
            ("even", {"boolean": 5}),
            ("number", {"number": 5}),
            ("tags", {"list of text": 5}),
        ]
    assert format_of(path) == FORMAT_VERSION
    assert schema_of(path) == schema_of(tmp_path / "new")


def test_words_that_the_first_format_did_not_analyse_are_found(path):
    text = "Der Flu\u0308gel, 東京の天気."
    with closing(sqlite3.connect(path / "index.sqlite")) as connection, connection:
        old = "SELECT 'delete', chunk_id, text FROM chunks WHERE chunk_id = 1"
        connection.execute(f"INSERT INTO chunks_fts(chunks_fts, rowid, text) {old}")
        connection.execute("INSERT INTO chunks_fts(rowid, text) VALUES (1, ?)", [text])
        connection.execute(
            'UPDATE chunks SET text = ?, text_hash = ?, "end" = ? WHERE chunk_id = 1',
            [text, text_hash(text), len(text)],
        )
    with Index.open(path) as index:
        for query in ("天気", "FLÜGEL"):
            hits = Retriever(index).search(query, mode="bm25")
            assert [hit.text for hit in hits] == [text]
        with index.writer() as writer:
            assert writer.verify() == []


def test_letters_that_format_4_did_not_fold_are_found(tmp_path):
    with Index.create(tmp_path / "x", ["hashing:16"]) as index:
        index.add([Document("pl", "Łódź leży tu."), Document("en", "It lies here.")])
    with closing(sqlite3.connect(tmp_path / "x" / "index.sqlite")) as connection, connection:
        connection.execute("UPDATE chunks SET analysed = 'łódź leży tu.' WHERE chunk_id = 1")
        connection.execute("INSERT INTO chunks_fts(chunks_fts) VALUES ('rebuild')")
        connection.execute("PRAGMA user_version = 4")
    with Index.open(tmp_path / "x") as index:
        assert [hit.document_id for hit in Retriever(index).search("lodz", mode="bm25")] == ["pl"]
        with index.writer() as writer:
            assert writer.verify() == []


def test_an_old_index_that_cannot_be_written_says_what_to_do(path, monkeypatch):
    """Patched, as permissions do not stop root; only a read-only file system would."""
    access = os.access
    monkeypatch.setattr(os, "access", lambda place, mode: mode != os.W_OK and access(place, mode))
    with pytest.raises(IndexFormatError, match=r"has index format 1 .*; copy it to a writable"):
        Index.open(path)
    assert format_of(path) == 1


def test_concurrent_opens_migrate_an_old_index_once(path):
    def documents(_):
        with Index.open(path) as index:
            return len(index)

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(documents, range(8))) == [6] * 8
    with Index.open(path) as index, index.writer() as writer:
        assert writer.verify() == []


def test_opening_an_old_index_waits_for_its_writer(path, caplog, writing_elsewhere):
    with ThreadPoolExecutor(1) as pool, writing_elsewhere(path):
        opening = pool.submit(Index.open, path)
        while not caplog.messages:
            time.sleep(0.01)
        assert "waiting for it" in caplog.text
        assert format_of(path) == 1
    opening.result().close()
    assert format_of(path) == FORMAT_VERSION


def test_an_older_format_is_migrated(path, next_format):
    next_format(lambda connection: connection.exec_driver_sql("CREATE TABLE more (x)"))
    with Index.open(path) as index:
        assert len(index) == 6
    assert format_of(path) == FORMAT_VERSION + 1


def test_an_interrupted_migration_is_rolled_back(path, next_format):
    def fail(connection):
        connection.exec_driver_sql("CREATE TABLE more (x)")
        connection.exec_driver_sql("DELETE FROM documents")
        raise KeyboardInterrupt

    next_format(fail)
    with pytest.raises(KeyboardInterrupt):
        Index.open(path)
    assert format_of(path) == 1
    connection = sqlite3.connect(path / "index.sqlite")
    assert connection.execute("SELECT count(*) FROM documents").fetchone() == (6,)
    connection.close()


def test_a_format_that_never_existed(path):
    connection = sqlite3.connect(path / "index.sqlite")
    connection.execute("PRAGMA user_version = 0")
    connection.close()
    with pytest.raises(IndexFormatError, match="no semsearch ever wrote index format 0"):
        Index.open(path)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_damaged_version_is_named_as_damage(tmp_path, version):
    Index.create(tmp_path / "x", ["hashing:16"]).close()
    with closing(sqlite3.connect(tmp_path / "x" / "index.sqlite")) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    with pytest.raises(DamagedIndexError, match=r"is damaged \((table|duplicate column)"):
        Index.open(tmp_path / "x")


@pytest.mark.skipif(not OPEN_FILES.is_dir(), reason="open files are counted in /proc")
@pytest.mark.parametrize(
    ("version", "use", "error"),
    [
        (0, Index.open, IndexFormatError),
        (99, lambda path: Index.create(path, ["hashing:16"]), IndexFormatError),
        (1, lambda path: Index.create(path, ["hashing:8"]), SpaceError),
        (1, lambda path: Retriever.open(path, "none"), SpaceError),
    ],
)
def test_a_refused_index_is_closed(path, version, use, error):
    with closing(sqlite3.connect(path / "index.sqlite")) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    before = len(list(OPEN_FILES.iterdir()))
    with pytest.raises(error) as refused:
        use(path)
    assert refused.traceback  # keeps the variables of its frames alive
    assert len(list(OPEN_FILES.iterdir())) == before


def test_texts_of_format_2_are_restored_where_possible(path, caplog):
    """Single spaces between passages are guessed and checked by the hash; other space is lost.

    Format 2 is the current one without the column `rest` and later additions.
    """
    spaced, tabbed = ("A river. A lamp.  " * 100, "A river.\tA violin.\n" * 100)
    with Index.open(path) as index:
        index.add([Document("spaced", spaced.strip()), Document("tabbed", tabbed)])
    with closing(sqlite3.connect(path / "index.sqlite")) as connection, connection:
        connection.execute("ALTER TABLE documents DROP COLUMN rest")
        connection.execute("DROP TABLE field_values")
        connection.execute("DROP TABLE indexed_fields")
        connection.execute("DROP INDEX ix_documents_title")
        connection.execute("PRAGMA user_version = 2")
    with Index.open(path) as index:
        assert index.get("doc-2") == Document(
            "doc-2",
            "The orchard in winter, number 2.",
            "Orchard",
            {"number": 2, "tags": ["orchard", "winter"], "even": True},
        )
        assert index.get("spaced").text == spaced.strip()
        assert not caplog.messages
        assert index.get("tabbed").text.split() == tabbed.split()
        assert "white space of 1 document is unknown" in caplog.text
        with index.writer() as writer:
            assert writer.verify() == []
        summary = index.add([Document("spaced", spaced.strip()), Document("tabbed", tabbed)])
        assert (summary.unchanged, summary.metadata_changed, summary.encoded) == (1, 1, 0)
        assert index.get("tabbed").text == tabbed


def test_an_altered_text_is_reported_and_discarded_by_repair(path):
    text = "A river.  A lamp.\n" * 100
    with Index.open(path) as index:
        index.add([Document("long", text)])
    with closing(sqlite3.connect(path / "index.sqlite")) as connection, connection:
        connection.execute("UPDATE documents SET rest = rest || 'x' WHERE external_id = 'long'")
    with Index.open(path) as index:
        with pytest.raises(IndexFormatError, match="the text of document 'long'"):
            index.get("long")
        with index.writer() as writer:
            [fault] = writer.verify()
            assert fault.what == "1 document not as written between passages"
            writer.repair()
            assert writer.verify() == []
        assert index.add([Document("long", text)]).encoded == 0
        assert index.get("long").text == text
