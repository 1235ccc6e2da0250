"""Indexes of another format are refused, and left as they are."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from semsearch import Index
from semsearch.errors import IndexFormatError
from semsearch.storage.sqlite.schema import FORMAT_VERSION


@pytest.mark.parametrize("version", [0, FORMAT_VERSION + 1])
def test_other_formats_are_refused(tmp_path, version):
    path = tmp_path / "index"
    Index.create(path, "hashing:16").close()
    with closing(sqlite3.connect(path / "index.sqlite")) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
        for use in (Index.open, lambda path: Index.create(path, "hashing:16")):
            with pytest.raises(IndexFormatError, match=f"format {version}"):
                use(path)
        assert connection.execute("PRAGMA user_version").fetchone() == (version,)
