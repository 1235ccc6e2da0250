"""Preloading loads the encoder that the index needs, or none."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing

import pytest

from semsearch import Document, Index
from semsearch.preload import preload_for_documents, preload_for_queries


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


def test_encoder_is_warmed_up_in_a_thread(index, monkeypatch):
    names = []
    encode = type(preload_for_queries(index)[0]).encode_queries

    def recorded(self, texts):
        names.append(threading.current_thread().name)
        return encode(self, texts)

    monkeypatch.setattr("semsearch.encoders.hashing.HashingEncoder.encode_queries", recorded)
    preload_for_queries(index)
    wait_for_threads()
    assert names == ["semsearch-preload"]


def wait_for_threads():
    """Wait for the threads that preload."""
    for thread in threading.enumerate():
        if thread.name == "semsearch-preload":
            thread.join()


def test_an_encoder_of_documents_is_warmed_up(monkeypatch):
    read = []
    monkeypatch.setattr(
        "semsearch.encoders.hashing.HashingEncoder.encode_documents",
        lambda self, texts: read.append(len(texts)),
    )
    assert preload_for_documents("hashing:16", "auto").dimension == 16
    wait_for_threads()
    assert read == [8]


def test_broken_index_loads_nothing(index, tmp_path):
    assert preload_for_queries(index, "other") == []
    assert preload_for_queries(tmp_path / "none") == []
    (tmp_path / "file").mkdir()
    (tmp_path / "file" / "index.sqlite").write_bytes(b"nothing" * 1000)
    assert preload_for_queries(tmp_path / "file") == []
    with closing(sqlite3.connect(index / "index.sqlite")) as connection, connection:
        connection.execute("UPDATE spaces SET spec = '/no/such/model', description = '{}'")
    assert preload_for_queries(index) == []
