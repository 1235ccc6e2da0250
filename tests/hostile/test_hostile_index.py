"""Damaged or forged databases and snapshots raise only SemsearchError."""

from __future__ import annotations

import hashlib
import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from semsearch import Document, Index, Retriever
from semsearch.errors import IndexFormatError, SemsearchError
from semsearch.index.writer import IndexWriter
from semsearch.stores.local.schema import tables

pytestmark = pytest.mark.slow

PETS = [
    Document("cat", "The cat sleeps on the warm radiator.", "Cats", {"legs": 4, "tags": ["purr"]}),
    Document("dog", "The dog barks at the postman.", None, {"legs": 4}),
    Document("hen", "The hen lays eggs in the straw.", "Hens", {"legs": 2}),
    Document("owl", "The owl hunts mice at night.", "Owls", {"legs": 2, "tags": []}),
]
SPEC = "hashing:16"
SNAPSHOT = "hashing-16-1.faiss"

deterministic = settings(
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.fixture(scope="module")
def sound(tmp_path_factory) -> Path:
    """An intact index with a snapshot, its database in the smallest possible pages."""
    path = tmp_path_factory.mktemp("sound") / "pets"
    with Index.create(path, [SPEC]) as index:
        index.add(PETS)
    with closing(sqlite3.connect(path / "index.sqlite")) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("PRAGMA page_size = 512")
        connection.execute("VACUUM")
    assert sorted(file.name for file in path.iterdir()) == [SNAPSHOT, "index.sqlite", "writer.lock"]
    return path


@pytest.fixture(scope="module")
def permissive(sound, tmp_path_factory) -> Path:
    """The same index without NOT NULL constraints."""
    path = tmp_path_factory.mktemp("permissive") / "pets"
    shutil.copytree(sound, path)
    with closing(sqlite3.connect(path / "index.sqlite", isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(
            "UPDATE sqlite_schema SET sql = replace(sql, ' NOT NULL', '') "
            "WHERE name NOT LIKE '%fts%'"
        )
    return path


@pytest.fixture
def copy(tmp_path):
    def copy(source: Path) -> Path:
        path = tmp_path / "copy"
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(source, path)
        return path

    return copy


def search(index: Index, mode: str, where: str | None = None) -> list[tuple[str, str]]:
    hits = Retriever(index).search("the cat hunts at night", k=3, mode=mode, where=where)
    return [(hit.document_id, f"{hit.score:.4f} {hit.title} {hit.metadata}") for hit in hits]


def upsert(writer: IndexWriter) -> None:
    changed = Document("cat", "The cat hunts.", metadata={"legs": 3})
    writer.upsert([*PETS[1:], changed, Document("new", "A new pet, at night.")])


READ = [
    Index.info,
    lambda index: search(index, "semantic"),
    lambda index: search(index, "bm25"),
    lambda index: search(index, "hybrid", "tags = 'purr'"),
]
WRITE = [
    IndexWriter.verify,
    upsert,
    lambda writer: writer.delete(["owl"]),
    IndexWriter.repair,
    IndexWriter.compact,
    IndexWriter.verify,
]


def use(path: Path) -> None:
    """Do everything that can be done with an index; only SemsearchError is suppressed."""
    with suppress(SemsearchError), Index.open(path) as index:
        for read in READ:
            with suppress(SemsearchError):
                read(index)
        with index.writer() as writer:
            for write in WRITE:
                with suppress(SemsearchError):
                    write(writer)


DAMAGE = st.lists(
    st.tuples(
        st.floats(0, 1, exclude_max=True),
        st.sampled_from([b"\0", b"\xff", b"\x01", b"\x80", b"\0" * 16, b"\0" * 512, b"\xff" * 64])
        | st.binary(min_size=1, max_size=4),
    ),
    min_size=1,
    max_size=8,
)


@settings(deterministic, max_examples=100)
@given(DAMAGE)
def test_damaged_database(sound, copy, damage):
    path = copy(sound)
    content = bytearray((path / "index.sqlite").read_bytes())
    for place, patch in damage:
        start = int(place * len(content))
        content[start : start + len(patch)] = patch[: len(content) - start]
    (path / "index.sqlite").write_bytes(content)
    use(path)


@settings(deterministic, max_examples=40)
@given(st.integers(0, 99), st.integers(0, 255))
def test_damaged_database_header(sound, copy, place, byte):
    path = copy(sound)
    content = bytearray((path / "index.sqlite").read_bytes())
    content[place] = byte
    (path / "index.sqlite").write_bytes(content)
    use(path)


@settings(deterministic, max_examples=25)
@given(st.floats(0, 1, exclude_max=True))
def test_truncated_database(sound, copy, part):
    path = copy(sound)
    content = (path / "index.sqlite").read_bytes()
    (path / "index.sqlite").write_bytes(content[: int(part * len(content))])
    use(path)


COLUMNS = {
    **{table.name: [column.name for column in table.columns] for table in tables.sorted_tables},
    "sqlite_sequence": ["name", "seq"],
    "chunks_fts_data": ["id", "block"],
    "chunks_fts_docsize": ["id", "sz"],
    "chunks_fts_config": ["k", "v"],
}
VALUES = [
    *(None, -1, 2**63 - 1, float("inf"), "", "../../x\0", b"\xff", "[]", b"\0" * 64),
    *("[" * 100_000, '{"a": "\\ud800"}', "9" * 5000),
]


@pytest.mark.parametrize(
    ("table", "column"), [(table, name) for table, names in COLUMNS.items() for name in names]
)
def test_forged_values(permissive, copy, table, column):
    for value in [*VALUES, "not UTF-8"]:
        path = copy(permissive)
        with closing(sqlite3.connect(path / "index.sqlite")) as connection:
            shown = "CAST(x'ff41' AS TEXT)" if value == "not UTF-8" else "?"
            try:
                with connection:
                    connection.execute(
                        f'UPDATE {table} SET "{column}" = {shown}', [value] * (shown == "?")
                    )
            except sqlite3.Error:  # a duplicate key, a rowid that is not a number
                continue
        use(path)


@pytest.mark.parametrize("table", [*COLUMNS, "chunks_fts"])
def test_an_empty_or_missing_table(permissive, copy, table):
    for statement in (f"DELETE FROM {table}", f"DROP TABLE {table}"):
        path = copy(permissive)
        file = sqlite3.connect(path / "index.sqlite")
        with suppress(sqlite3.Error), closing(file) as connection, connection:
            connection.execute(statement)
        use(path)


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE VIEW v AS SELECT 1",
        "CREATE TRIGGER t AFTER INSERT ON documents BEGIN DELETE FROM chunks; END",
        "CREATE VIRTUAL TABLE v USING fts5(text)",
        "DROP TABLE fields; CREATE VIEW fields AS WITH RECURSIVE r(name) AS "
        "(SELECT '0' UNION ALL SELECT name + 1 FROM r) SELECT name FROM r",
    ],
)
def test_views_and_triggers_are_rejected(sound, copy, statement):
    path = copy(sound)
    with closing(sqlite3.connect(path / "index.sqlite")) as connection:
        connection.executescript(statement)
    with pytest.raises(IndexFormatError, match="which no index has$"):
        Index.open(path)


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (
            "UPDATE documents SET title = x'07'",
            r"is damaged \(b'\\x07' found where a text is expected",
        ),
        ("UPDATE documents SET title = CAST(x'ff' AS TEXT)", "Could not decode to UTF-8"),
        (
            "UPDATE documents SET metadata = '[]'",
            r"'\[\]' found where JSON of type dict is expected",
        ),
        ("UPDATE documents SET metadata = '{'", "'{' found where JSON of type dict is expected"),
        ("UPDATE settings SET value = '\"x\"' WHERE name = 'revision'", "where JSON of type int"),
        ("UPDATE spaces SET name = '../x'", r"'\.\./x' is not an embedding space"),
        ("UPDATE spaces SET dimension = 8", "not have the dimension of its encoder's"),
        ("DELETE FROM documents WHERE external_id = 'cat'", "passage 1 has no document"),
        ("DROP TABLE fields", "no such table: fields"),
    ],
)
def test_a_search_reports_what_is_wrong(permissive, copy, statement, message):
    path = copy(permissive)
    with closing(sqlite3.connect(path / "index.sqlite")) as connection, connection:
        connection.execute(statement)
    with Index.open(path) as index:
        failing = index.fields if "fields" in statement else lambda: search(index, "hybrid")
        with pytest.raises(IndexFormatError, match=message) as caught:
            failing()
    assert str(caught.value).isprintable()


def test_damaged_vectors_are_reported_and_repaired(permissive, copy):
    for vector in (b"\0" * 64, b"\xff" * 64, b"\0\0\x80\x7f" * 16, b"\xff\xff\x7f\x7f" * 16, b"\0"):
        path = copy(permissive)
        (path / SNAPSHOT).unlink()
        with closing(sqlite3.connect(path / "index.sqlite")) as connection, connection:
            connection.execute("UPDATE vectors SET vector = ? WHERE chunk_id = 2", [vector])
        with Index.open(path) as index, index.writer() as writer:
            with pytest.raises(IndexFormatError, match="damaged; see: semsearch verify"):
                search(index, "semantic")
            assert "has 1 damaged vector" in " ".join(fault.what for fault in writer.verify())
            writer.repair()
            assert writer.verify() == []
            assert search(index, "semantic")


@pytest.fixture(scope="module")
def answers(sound):
    with Index.open(sound) as index:
        return {mode: search(index, mode) for mode in ("semantic", "hybrid")}


@settings(deterministic, max_examples=40)
@given(DAMAGE, st.floats(0, 1), st.booleans())
@example([(0.0, b"IxMp")], 1.0, False)  # unchanged
@example([(0.0, b"\0")], 0.0, True)  # empty
def test_damaged_snapshot(sound, copy, answers, damage, part, cut):
    path = copy(sound)
    content = bytearray((path / SNAPSHOT).read_bytes())
    for place, patch in damage:
        start = int(place * len(content))
        content[start : start + len(patch)] = patch
    if cut:
        del content[int(part * len(content)) :]
    (path / SNAPSHOT).write_bytes(content)
    with Index.open(path) as index:
        for mode, expected in answers.items():
            assert search(index, mode) == expected


def test_a_directory_in_place_of_a_snapshot(sound, copy, answers):
    path = copy(sound)
    (path / SNAPSHOT).unlink()
    (path / SNAPSHOT).mkdir()
    with Index.open(path) as index:
        assert search(index, "semantic") == answers["semantic"]
    use(path)


@pytest.mark.parametrize(
    ("place", "patch"),
    [
        (0, b"IxFI"),  # without ids
        (0, b"????"),
        (4, (8).to_bytes(4, "little")),  # another dimension
        (4, (2**31 - 1).to_bytes(4, "little")),
        (8, (2**40).to_bytes(8, "little")),  # too many vectors
        (8, (-1).to_bytes(8, "little", signed=True)),
        (37, b"IxF2"),  # distances in place of inner products
        (41, (8).to_bytes(4, "little")),
        (45, (3).to_bytes(8, "little")),  # fewer vectors than ids
    ],
)
def test_a_forged_snapshot_with_a_matching_hash(sound, copy, place, patch):
    """FAISS reads it: both the file and its recorded hash are forged."""
    path = copy(sound)
    content = bytearray((path / SNAPSHOT).read_bytes())
    content[place : place + len(patch)] = patch
    (path / SNAPSHOT).write_bytes(content)
    with closing(sqlite3.connect(path / "index.sqlite")) as connection, connection:
        connection.execute("UPDATE snapshots SET sha256 = ?", [hashlib.sha256(content).hexdigest()])
    use(path)
