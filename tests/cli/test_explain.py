"""``semsearch explain``, and the examples of its pages that need special conditions."""

from __future__ import annotations

import re

import pytest

from semsearch import Document, Index
from semsearch.explanations import codes, page, summary
from tests.cli.conftest import invoke as run


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
