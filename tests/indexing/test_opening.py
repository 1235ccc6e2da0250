"""Opening, creating and closing indexes."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from semsearch import Document, Index, load_encoder
from semsearch.errors import ArgumentError, IndexNotFoundError, IndexStoreError, SpaceError


@pytest.fixture
def index(tmp_path):
    with Index.create(tmp_path / "x", "hashing") as index:
        index.add([Document("a", "red apple"), Document("b", "blue sky")])
        yield index


class TestOpening:
    def test_interrupted_creation_is_finished(self, tmp_path):
        (tmp_path / "index.sqlite").touch()
        with pytest.raises(IndexNotFoundError):
            Index.open(tmp_path)
        with Index.create(tmp_path, "hashing") as index:
            assert len(index) == 0

    def test_a_changed_model_is_refused(self, index):
        index.close()
        with closing(sqlite3.connect(index.path / "index.sqlite")) as connection, connection:
            connection.execute("UPDATE spaces SET fingerprint = 'of-older-weights'")
        with Index.open(index.path) as opened:
            with pytest.raises(SpaceError, match="of-older-wei"):
                opened.add([Document("c", "text")])
            with pytest.raises(SpaceError):
                opened.search("x")


class TestEncoders:
    def test_a_given_encoder_is_used(self, index, hashing):
        for open_index in (Index.open, Index.create):
            for encoders in (hashing, [hashing], iter([hashing])):
                with open_index(index.path, encoders) as again:
                    assert again.encoder(again.space()) is hashing

    def test_other_values_are_refused(self, index, tmp_path):
        for encoders in (3, [], [None], ["hashing", "hashing"]):
            with pytest.raises(ArgumentError):
                Index.create(tmp_path / "new", encoders)
        assert not (tmp_path / "new").exists()
        for encoders in ("hashing", ["hashing"], None):
            with pytest.raises(ArgumentError):
                Index.open(index.path, encoders)


def test_an_encoder_that_reads_less_than_the_first_is_reported(tmp_path, caplog):
    short = load_encoder("hashing:16")
    short.max_document_tokens = 5
    Index.create(tmp_path / "new", ["hashing", short]).close()
    assert "hashing:16 reads 5 tokens" in caplog.text


def test_the_spaces_of_an_index_are_kept(index):
    with pytest.raises(SpaceError):
        Index.create(index.path, ["hashing:16"])
    for encoders in (None, "hashing"):
        with Index.create(index.path, encoders) as again:
            assert len(again) == 2


def test_a_closed_index_is_reported(index):
    index.close()
    index.close()
    assert "closed" in repr(index)
    for call in (
        len,
        Index.space,
        Index.passages,
        Index.info,
        Index.__enter__,
        lambda index: index.search("red"),
        lambda index: index.add([]),
        lambda index: index.delete(["a"]),
        lambda index: index.encoder(None),
    ):
        with pytest.raises(IndexStoreError):
            call(index)
