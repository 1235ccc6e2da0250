"""``semsearch explain``, and the examples of its pages that need special conditions."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest

from semsearch import Document, Index
from semsearch.cli import serve_command
from semsearch.explanations import codes, page, summary
from semsearch.stores.local.database import Database, _Access
from tests.cli.conftest import invoke as run


def error_shown(code):
    """The error message at the end of a page's example."""
    return re.findall(r"^Error: .*$", page(code), re.MULTILINE)[-1]


def words(text):
    """The words of a page, without what differs between Markdown and plain text."""
    return [word for word in re.split(r"[\s\[\]()#$:]+|\.\./|docs/", text) if word]


@pytest.fixture
def index(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Index.create("indexes/tickets", "hashing:8") as index:
        index.add([Document("1", "The printer is on fire")])
        yield index


def test_pages_are_printed_as_text():
    for code in codes():
        text = run("explain", code).stdout
        assert text.startswith(f"{code}\n\n{summary(code)[:40]}")
        assert not re.search(r"```|<!--|\]\(|^#", text, re.MULTILINE)
        written = re.sub(r"<!--.*?-->", "", page(code))
        written = re.sub(r'```\w*(?: title="(.*?)")?', r"\1", written)
        assert words(text) == words(written)
        prose = [line for line in text.splitlines() if not line.startswith("    ")]
        assert max(map(len, prose)) <= 80


def test_index_busy(index, writing_elsewhere):
    with writing_elsewhere(index.path):
        stderr = run("delete", "1", code=1).stderr
    by = r"process \d+ since \d{4}-[-\d: +.]+"
    shown = re.sub(by, "", error_shown("index-busy")) + "\n"
    assert re.sub(by, "", stderr) == shown.replace("/srv", str(Path.cwd()))


def test_index_changed_during_reading(index, monkeypatch):
    index.close()
    states = itertools.count()
    monkeypatch.setattr(Database, "_file_state", lambda database: next(states))
    monkeypatch.setattr(Database, "_current_access", lambda database: _Access.IMMUTABLE)
    stderr = run("info", code=1).stderr
    here = str(Path.cwd() / "indexes")
    assert stderr == error_shown("index-changed").replace("/mnt/shared", here) + "\n"


def test_missing_extra(monkeypatch):
    monkeypatch.setattr(serve_command, "find_spec", lambda name: None)
    assert run("serve", code=1).stderr == error_shown("missing-extra") + "\n"
