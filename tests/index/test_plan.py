"""Batches of a corpus."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from semsearch import Document, Index
from semsearch.index.plan import next_documents


def test_batches_are_limited_by_documents_or_characters():
    texts = ["abc", "de", "f", "ghijklmnop", "q"]
    corpus = iter([Document(None, text) for text in texts])
    found = []
    for count, characters in [(2, 100), (5, 4), (5, 4), (5, 4)]:
        found.append([document.text for document in next_documents(corpus, count, characters)])
    assert found == [["abc", "de"], ["f", "ghijklmnop"], ["q"], []]


@pytest.mark.parametrize(
    ("before", "after", "changed"),
    [
        ({"a": 1, "b": [1, 2]}, {"b": [1, 2], "a": 1}, 0),
        ({"a": {"x": 1, "y": 2}}, {"a": {"y": 2, "x": 1}}, 0),
        ({"a": 1, "b": True}, {"b": 1, "a": True}, 1),
        ({"a": [1, 2]}, {"a": [2, 1]}, 1),
    ],
)
def test_the_order_of_fields_is_no_change(tmp_path, before, after, changed):
    with Index.create(tmp_path / "x", "hashing") as index:
        index.add([Document("d", "text", metadata=before)])
        assert index.add([Document("d", "text", metadata=after)]).metadata_changed == changed


def test_damaged_metadata_is_written_again(tmp_path):
    document = Document("d", "text", metadata={"a": 1})
    with Index.create(tmp_path / "x", "hashing") as index:
        index.add([document])
        with closing(sqlite3.connect(index.path / "index.sqlite")) as connection, connection:
            connection.execute("UPDATE documents SET metadata = replace(metadata, ':', ';')")
        assert index.add([document]).metadata_changed == 1
        assert index.get("d") == document
