"""Addresses of indexes on Milvus; what keeps an index from being opened, created or written."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from milvus_documents import DOCUMENTS

from semsearch import Index
from semsearch.addresses import Address, place, store_of
from semsearch.errors import (
    ArgumentError,
    IndexBusyError,
    IndexClosedError,
    IndexFormatError,
    IndexNotFoundError,
    MissingExtraError,
    SpaceError,
    StoreUnreachableError,
)
from semsearch.stores.milvus import connection as connection_module
from semsearch.stores.milvus import store as store_module
from semsearch.stores.milvus.catalogue import read_catalogue, write_catalogue
from semsearch.stores.milvus.connection import target


class TestAddresses:
    @pytest.mark.parametrize(
        ("text", "uri", "name"),
        [
            ("milvus://localhost:19530/news", "http://localhost:19530", "news"),
            ("milvus://[::1]:19530/_n1", "http://[::1]:19530", "_n1"),
            ("milvus://db.example.org/n", "http://db.example.org", "n"),
            ("milvus-lite:///data/x.db/news", os.path.realpath("/data/x.db"), "news"),
            ("milvus-lite:x.db/news", os.path.realpath("x.db"), "news"),
        ],
    )
    def test_parsing_and_formatting(self, text, uri, name):
        address = place(text)
        assert isinstance(address, Address)
        assert str(address) == text
        assert str(place(str(address))) == text
        assert (target(address).uri, target(address).name) == (uri, name)
        assert store_of(address) == "semsearch.stores.milvus"
        assert store_of(place(f"./{text}")) == "semsearch.stores.local"

    @pytest.mark.parametrize(
        "text",
        [
            "milvus://localhost:19530/two words",
            "milvus://localhost:19530/1st",
            "milvus://user:pass@host:1/news",
            "milvus://host:port/news",
            "milvus://host:99999/news",
            "milvus://host:0/news",
            "milvus-lite:///x/news",
        ],
    )
    def test_wrong_ones_are_refused(self, text):
        with pytest.raises(ArgumentError):
            target(place(text))

    def test_missing_extra_is_named(self, monkeypatch):
        monkeypatch.setattr(connection_module, "find_spec", lambda name: None)
        with pytest.raises(MissingExtraError, match=r"semsearch\[milvus\]"):
            Index.open("milvus://localhost:19530/news")

    def test_unreachable_server_is_reported(self, package, monkeypatch):
        package("pymilvus")
        monkeypatch.setenv("SEMSEARCH_MILVUS_TIMEOUT", "0.5")
        with pytest.raises(StoreUnreachableError, match="127.0.0.1:1"):
            Index.open("milvus://127.0.0.1:1/news")
        monkeypatch.setenv("SEMSEARCH_MILVUS_TIMEOUT", "soon")
        with pytest.raises(ArgumentError, match="SEMSEARCH_MILVUS_TIMEOUT"):
            Index.open("milvus://127.0.0.1:1/news")


class TestGuards:
    def test_another_encoder_is_refused(self, index, lite):
        with pytest.raises(SpaceError):
            Index.create(lite, "hashing:32")
        with Index.create(lite) as again:
            assert again.search("bird", 1)[0].document_id == "a"

    def test_a_changed_model_is_refused(self, index, lite):
        store = index._store
        catalogue = read_catalogue(store._connection)
        other = [catalogue.spaces[0]._replace(fingerprint="other")]
        write_catalogue(store._connection, spaces=other)
        with Index.open(lite) as again, pytest.raises(SpaceError):
            again.search("bird")

    def test_a_newer_format_is_refused(self, index, lite):
        connection = index._store._connection
        connection.call("alter_collection_properties", "one", {"semsearch.format": "2"})
        with pytest.raises(IndexFormatError):
            Index.open(lite)

    def test_creation_continues_after_an_interruption(self, index, lite):
        index._store._connection.call("drop_collection", "one")  # the last that is made
        with Index.create(lite, "hashing:64") as again:
            again.add(DOCUMENTS[:2])
            with again.writer() as writer:
                assert writer.verify() == []

    def test_two_that_create_the_same_index(self, lite, tmp_path, monkeypatch):
        original = store_module.make

        def make(*arguments):
            monkeypatch.setattr(store_module, "make", original)
            original(*arguments)
            with pytest.raises(IndexBusyError):
                Index.create(lite, "hashing:64")
            monkeypatch.setenv("SEMSEARCH_CACHE", str(tmp_path / "cache"))  # with its own locks
            with Index.create(lite, "hashing:64") as other:
                other.add(DOCUMENTS)

        monkeypatch.setattr(store_module, "make", make)
        with Index.create(lite, "hashing:64") as index:
            index.add(DOCUMENTS[:1])
            assert len(index) == 3
            with index.writer() as writer:
                assert writer.verify() == []

    def test_a_missing_index_is_reported(self, lite, tmp_path):
        with pytest.raises(IndexNotFoundError):
            Index.open(lite)
        assert list(tmp_path.iterdir()) == []  # milvus-lite creates what it opens

    def test_a_file_is_opened_by_one_process_only(self, index, lite):
        code = f"from semsearch import Index; Index.open({lite!r})"
        done = subprocess.run([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True)
        assert "another process" in done.stderr.splitlines()[-1]

    def test_a_file_stays_open_until_the_last_index_is_closed(self, lite):
        with Index.create(lite, "hashing:64") as first, Index.open(lite) as second:
            first.add(DOCUMENTS)
            first.close()
            assert len(second) == 3
        with pytest.raises(IndexClosedError), first.read():
            pass
