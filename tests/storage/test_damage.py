"""A damaged database, or one of another format, raises errors of the library.

`test_verification` checks what verify finds and repairs, `test_snapshot` damaged snapshots.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from semsearch import Document, Index
from semsearch.errors import DamagedIndexError, IndexFormatError
from semsearch.storage.sqlite.schema import FORMAT_VERSION


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


@pytest.mark.parametrize(
    ("damage", "error"),
    [
        (lambda content: b"", IndexFormatError),
        (lambda content: content[:5000], DamagedIndexError),
        (lambda content: b"\x80" * 16_384 + content[16_384:], DamagedIndexError),
        (lambda content: content[:4096] + b"\x80" * 16_384 + content[20_480:], DamagedIndexError),
    ],
)
def test_a_damaged_file(path, damage, error):
    file = path / "index.sqlite"
    file.write_bytes(damage(file.read_bytes()))
    with pytest.raises(error), Index.open(path) as index:
        index.search("cat", mode="hybrid")


@pytest.mark.parametrize("version", [0, FORMAT_VERSION + 1])
def test_other_formats_are_refused_and_left_as_they_are(path, version):
    execute(path, f"PRAGMA user_version = {version}")
    before = (path / "index.sqlite").read_bytes()
    for use in (Index.open, lambda path: Index.create(path, "hashing:16")):
        with pytest.raises(IndexFormatError, match=f"format {version}"):
            use(path)
    assert (path / "index.sqlite").read_bytes() == before


def test_text_that_is_not_utf_8(path):
    execute(path, "UPDATE documents SET title = CAST(x'ff' AS TEXT)")
    with Index.open(path) as index, pytest.raises(DamagedIndexError):
        index.search("cat 1", k=30)
