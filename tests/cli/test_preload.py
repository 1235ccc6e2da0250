"""Preloading loads the encoder that the index needs, or none."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing

import pytest

from semsearch import Document, Index
from semsearch.cli.preload import preload_for_documents, preload_for_queries
from semsearch.storage.address import Address


@pytest.fixture
def index(tmp_path):
    with Index.create(tmp_path / "x", ["hashing:16", "hashing:32"]) as index:
        index.add([Document("a", "a text")])
    return tmp_path / "x"


@pytest.mark.parametrize(
    ("space", "dimension"), [(None, 16), ("hashing-16", 16), ("hashing-32", 32)]
)
def test_encoder_of_the_space_is_loaded(index, space, dimension):
    (encoder,) = preload_for_queries(index, space)
    assert encoder.dimension == dimension
    with Index.open(index, [encoder]) as opened:
        assert opened.encoder(opened.space(space)) is encoder


def test_encoders_are_warmed_up_in_a_thread(index, monkeypatch):
    calls = []
    for name in ("encode_queries", "encode_documents"):

        def recorded(self, texts, name=name):
            calls.append((name, len(texts), threading.current_thread().name))

        monkeypatch.setattr(f"semsearch.encoders.hashing.HashingEncoder.{name}", recorded)
    for preload in (
        lambda: preload_for_queries(index),
        lambda: preload_for_documents("hashing", "auto"),
    ):
        preload()
        for thread in threading.enumerate():
            if thread.name == "semsearch-preload":
                thread.join()
    assert [call[:2] for call in calls] == [("encode_queries", 1), ("encode_documents", 8)]
    assert {call[2] for call in calls} == {"semsearch-preload"}


def test_broken_index_loads_nothing(index, tmp_path):
    assert preload_for_queries(index, "other") == []
    assert preload_for_queries(tmp_path / "none") == []
    assert preload_for_queries(Address("milvus://x")) == []
    (tmp_path / "file").mkdir()
    (tmp_path / "file" / "index.sqlite").write_bytes(b"nothing" * 1000)
    assert preload_for_queries(tmp_path / "file") == []
    with closing(sqlite3.connect(index / "index.sqlite")) as connection, connection:
        connection.execute("UPDATE spaces SET spec = '/no/such/model', description = '{}'")
    assert preload_for_queries(index) == []
