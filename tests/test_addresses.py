import sqlite3
from contextlib import closing
from pathlib import PureWindowsPath

import pytest

from semsearch.addresses import sqlite_uri


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        (r"\\server\share\a b.sqlite", "file:////server/share/a%20b.sqlite"),
        (r"C:\Möbel\a.sqlite", "file:///C:/M%C3%B6bel/a.sqlite"),
    ],
)
def test_a_path_of_windows(path, uri):
    """https://sqlite.org/uri.html, section 3.1: the authority is empty or localhost."""
    assert sqlite_uri(PureWindowsPath(path)) == uri


def test_sqlite_opens_it(tmp_path):
    file = tmp_path / "ä#?% b.sqlite"
    with closing(sqlite3.connect(file)) as database:
        database.execute("CREATE TABLE here (a)")
    for uri in (sqlite_uri(file), sqlite_uri(file).replace("file:///", "file:////")):
        with closing(sqlite3.connect(f"{uri}?mode=ro", uri=True)) as database:
            assert database.execute("SELECT name FROM sqlite_schema").fetchall() == [("here",)]
