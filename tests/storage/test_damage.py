"""A damaged database raises errors of the library; a search names what is wrong.

`test_verification` checks what verify finds and repairs, `test_snapshot` damaged snapshots.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from semsearch import Document, Index
from semsearch.errors import DamagedIndexError, IndexFormatError


@pytest.fixture
def path(tmp_path):
    with Index.create(tmp_path / "x", ["hashing:16"]) as index:
        index.add(
            Document(str(number), f"The cat {number} hunts.", f"Cat {number}", {"legs": 4})
            for number in range(30)
        )
    return tmp_path / "x"


def execute(path, *statements):
    with closing(sqlite3.connect(path / "index.sqlite", isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


@pytest.mark.parametrize("kept", [0, 50, 5000, 0.5])
def test_a_truncated_database(path, kept):
    file = path / "index.sqlite"
    content = file.read_bytes()
    file.write_bytes(content[: int(kept * len(content)) if kept < 1 else kept])
    with pytest.raises(IndexFormatError), Index.open(path) as index:
        index.search("cat", mode="hybrid")


@pytest.mark.parametrize("place", [0, 4096])
def test_overwritten_pages(path, place):
    file = path / "index.sqlite"
    content = bytearray(file.read_bytes())
    content[place : place + 4096 * 4] = b"\x80" * (4096 * 4)
    file.write_bytes(content)
    with pytest.raises(DamagedIndexError) as caught, Index.open(path) as index:
        index.search("cat", mode="hybrid")
    assert caught.value.code == "damaged-index"


def test_text_that_is_not_utf_8(path):
    execute(path, "UPDATE documents SET title = CAST(x'ff' AS TEXT)")
    with Index.open(path) as index, pytest.raises(DamagedIndexError):
        index.search("cat 1", k=30)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE documents SET title = x'07'",
        "UPDATE documents SET metadata = '[]'",
        "UPDATE settings SET value = 'x'",
        "UPDATE spaces SET name = '../x'",
        "UPDATE spaces SET dimension = 0",
    ],
)
def test_improbable_values_cannot_be_stored(path, statement):
    with pytest.raises(sqlite3.IntegrityError):
        execute(path, statement)


@pytest.mark.parametrize("vector", [b"\0" * 64, b"\0\0\x80\x7f" * 16, b"\0"])
def test_damaged_vectors_are_found_and_repaired(path, vector):
    """Zeros, infinities, too few bytes."""
    execute(path, f"UPDATE vectors SET vector = x'{vector.hex()}' WHERE passage_id = 2")
    with Index.open(path) as index, index.writer() as writer:
        assert ["1 damaged vector" in fault.what for fault in writer.verify()] == [True]
        writer.repair()
        assert writer.verify() == []
        assert len(index.search("cat", 30, mode="semantic")) == 30
