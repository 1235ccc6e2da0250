"""What only Milvus has: addresses, settings, approximate search, limits, what kills leave."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy
import pytest
from click.testing import CliRunner

from semsearch import Document, Index
from semsearch.cli import main
from semsearch.errors import (
    ArgumentError,
    BadRowError,
    IndexBusyError,
    IndexFormatError,
    IndexNotFoundError,
    IndexStoreError,
    MissingExtraError,
)
from semsearch.storage.address import Address, place, store_of
from semsearch.storage.interface import Selection
from semsearch.storage.milvus import connection as connection_module
from semsearch.storage.milvus import reader as reader_module
from semsearch.storage.milvus.connection import Connection, parsed
from semsearch.storage.milvus.schema import DOCUMENT_COLUMNS, LISTS, NO_VECTOR, passage_ids


class TestAddresses:
    @pytest.mark.parametrize(
        ("text", "uri", "name"),
        [
            ("milvus://localhost:19530/news", "http://localhost:19530", "news"),
            ("milvus://[::1]:19530/_n1", "http://[::1]:19530", "_n1"),
            ("milvus-lite:///data/x.db/news", os.path.realpath("/data/x.db"), "news"),
            ("milvus-lite:x.db/news", os.path.realpath("x.db"), "news"),
        ],
    )
    def test_parsing_and_formatting(self, text, uri, name):
        address = place(text)
        assert isinstance(address, Address)
        assert str(address) == str(place(str(address))) == text
        assert parsed(address) == (uri, name)
        assert store_of(address) == "semsearch.storage.milvus"
        assert store_of(place(f"./{text}")) == "semsearch.storage.sqlite"

    @pytest.mark.parametrize(
        "text",
        [
            "milvus://localhost:19530/two words",
            "milvus://user:pass@host:1/news",
            "milvus://host:port/news",
            "milvus-lite:///x/news",
        ],
    )
    def test_wrong_ones_are_refused(self, text):
        with pytest.raises(ArgumentError):
            parsed(place(text))

    @pytest.mark.parametrize(("tls", "scheme"), [("", "http"), ("0", "http"), ("1", "https")])
    def test_tls(self, monkeypatch, tls, scheme):
        monkeypatch.setenv("SEMSEARCH_MILVUS_TLS", tls)
        assert parsed(place("milvus://host/news")) == (f"{scheme}://host", "news")

    def test_missing_extra_is_named(self, monkeypatch):
        monkeypatch.setattr(connection_module, "find_spec", lambda name: None)
        with pytest.raises(MissingExtraError, match=r"semsearch\[milvus\]"):
            Index.open("milvus://localhost:19530/news")

    def test_unreachable_server_is_reported(self, package, monkeypatch):
        package("pymilvus")
        monkeypatch.setattr(connection_module, "TIMEOUT_SECONDS", 0.5)
        with pytest.raises(IndexStoreError, match="127.0.0.1:1"):
            Index.open("milvus://127.0.0.1:1/news")


class TestOpening:
    def test_other_collections_are_kept(self, lite_index, lite):
        """They may be anybody's, or of another format."""
        connection = lite_index._store._connection
        for name, collection in (("other", "other"), ("another", "another_space_1")):
            connection.call("create_collection", collection, dimension=2)
            with pytest.raises(IndexFormatError):
                Index.create(lite.replace("one", name), "hashing:64")
            assert connection.call("has_collection", collection)
        connection.call("alter_collection_properties", "one", {"semsearch.format": "2"})
        with pytest.raises(IndexFormatError):
            Index.open(lite)

    def test_creation_continues_after_an_interruption(self, lite_index, lite, documents):
        lite_index._store._connection.call("drop_collection", "one")  # the last one created
        with pytest.raises(IndexNotFoundError):
            Index.open(lite)
        with Index.create(lite, "hashing:64") as again:
            again.add(documents[:2])
            assert len(again.search("fish")) == 2

    def test_a_missing_index_is_reported(self, lite, tmp_path):
        with pytest.raises(IndexNotFoundError):
            Index.open(lite)
        assert list(tmp_path.iterdir()) == []  # milvus-lite creates what it opens

    def test_a_file_is_opened_by_one_process_only(self, lite_index, lite):
        code = f"from semsearch import Index; Index.open({lite!r})"
        done = subprocess.run([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True)
        assert IndexBusyError.__name__ in done.stderr.splitlines()[-1]

    def test_a_closed_index_is_refused_and_others_of_the_file_are_not(self, lite, documents):
        with Index.create(lite, "hashing:64") as first, Index.open(lite) as second:
            first.add(documents)
            first.close()
            assert len(second) == 3
        with pytest.raises(IndexStoreError), first.read():
            pass


@pytest.mark.parametrize(
    ("version", "has_bm25"),
    [("2.3.5", False), ("v2.4.9-dev", False), ("v2.5.0", True), ("2.10.1", True), ("3.0", True)],
)
def test_servers_with_bm25(version, has_bm25):
    connection = Connection.__new__(Connection)
    connection.is_file, connection.version = False, version
    assert connection.has_bm25 is has_bm25
    connection.is_file = True
    assert connection.has_bm25


def test_an_index_without_bm25(lite, documents, monkeypatch):
    """As on a server of version 2.3."""
    monkeypatch.setattr(Connection, "has_bm25", False)
    with Index.create(lite, "hashing:64") as index:
        index.add(documents)
        assert index.info().systems == ["hashing-64"]
        assert index.search("a red fish swims", 1)[0].document_id == "c"
        with pytest.raises(ArgumentError):
            index.search("fish", mode="bm25")


def test_small_requests(lite, monkeypatch):
    """Rows are written, listed, read and deleted two at a time."""
    for module, name in [
        (connection_module, "ROWS_AT_ONCE"),
        (connection_module, "IDS_AT_ONCE"),
        (reader_module, "PAGE"),
    ]:
        monkeypatch.setattr(module, name, 2)
    documents = [
        Document(f"d{n}", "red fish. " * 100 * n, f"T{n}", {"n": n if n < 4 else "four"})
        for n in range(1, 6)
    ]
    with Index.create(lite, ["hashing:64", "hashing:32"]) as index:
        assert index.add(reversed(documents)).added == 5
        with index.read() as state:
            assert state.ids(limit=3) == ["d5", "d4", "d3"]
            assert state.count(Selection(["d1", "d5", "x"])) == 2
            assert [len(some) for some in state.scan(1)] == [1] * 5
            assert state.documents(["d1", "d5"]) == {"d1": documents[0], "d5": documents[4]}
            assert list(state.passages_of(["d4", "d2"])) == ["d4", "d2"]
            [field] = state.info().fields
            query = numpy.ones((1, 64), numpy.float32)
            [found] = state.search_vectors(index.space(), query, 100)
        assert sorted(one.document_id for one in found) == [1, 2, 3, 4, 5]
        assert list(field.kinds.items()) == [("number", 3), ("text", 2)]
        assert list(index) == documents[::-1]
        hits = index.search("red fish", 100, per_document=100)
        assert len({hit.passage.id for hit in hits}) == index.info().passages > 8
        assert index.delete(where="n < 4") == 3
        with index.writer() as writer:
            assert writer.verify() == []
        assert list(index) == documents[:2:-1]


def test_an_approximate_index_finds_k_under_any_filter(lite_index):
    """If too few matches are in the lists that are searched, all lists are."""
    lite_index.add(Document(f"d{n}", f"red fish {n}", None, {"year": n}) for n in range(2000))
    wanted = ["year in (7, 900, 1999)", "year >= 0"]
    exact = [lite_index.search("red fish 7", 40, where=where) for where in wanted]
    with lite_index.read() as state:
        assert state._lists(lite_index.space()) == LISTS
    with lite_index.writer() as writer:
        writer.set_index_type("ivf")
    with lite_index.read() as state:
        assert state._lists(lite_index.space()) < LISTS
    for where, hits in zip(wanted, exact, strict=True):
        found = lite_index.search("red fish 7", 40, where=where)
        assert len(found) == len(hits)
    assert found[0].document_id == "d7"


@pytest.mark.parametrize(
    "arguments",
    [
        ["query", "fish -red", "--mode", "bm25"],
        ["query", "fish", "--require", "red fish"],
        ["query", "fish", "--where", "title like 'C%'"],
        ["map"],
        ["configure", "--add-space", "hashing:32"],
        ["configure", "--filter-column", "year"],
        ["configure", "--stemmer", "english"],
        ["configure", "--recall", "0.9"],
    ],
)
def test_unsupported_commands_fail(lite_index, lite, arguments):
    done = CliRunner().invoke(main, [*arguments, "--index", lite])
    assert done.exit_code == 1
    assert done.output.endswith("[invalid-argument]\n")


def test_documents_too_large_for_a_field_are_bad_rows(lite_index):
    large = [
        (Document("x", "y" * 70_000), "'text'"),
        (Document("x", "y", "t" * 70_000), "'title'"),
        (Document("x", "y", None, {"a": "é" * 40_000}), "'metadata'"),
        (Document("x", "y", None, {"a": "x" * 40_000}), "'fields'"),
        (Document("x", "y" + " " * 70_000), "'after'"),
    ]
    for document, column in large:
        with pytest.raises(BadRowError, match=f"^document 'x': .*{column}"):
            lite_index.add([document])
    long = Document("e", "fish " * 20_000)  # larger than a field, but its passages are not
    bad = []
    with lite_index.writer(on_bad_row=bad.append) as writer:
        assert writer.upsert([document, long]).added == 1
    assert len(bad) == 1
    assert lite_index.get("e") == long


#: Adds documents, then dies before it writes the vectors of others.
KILLED = """
import os, signal, sys
sys.path.insert(0, sys.argv[2])
from conftest import DOCUMENTS
from test_milvus import TestKills
from semsearch import Index
from semsearch.storage.milvus.connection import Connection

def upsert(self, collection, rows):
    if collection.endswith("_space_1"):
        os.kill(os.getpid(), signal.SIGKILL)
    original(self, collection, rows)

index = Index.create(sys.argv[1], "hashing:64")
index.add(DOCUMENTS)
original, Connection.upsert = Connection.upsert, upsert
index.add(TestKills.CHANGED)
"""


def interrupt_at(number, monkeypatch, change) -> bool:
    """Interrupt a change before its n-th request that writes; returns whether it has fewer."""
    original, left = Connection.call, number

    def call(self, method, *arguments, **options):
        nonlocal left
        if method in ("upsert", "delete"):
            if not left:
                raise KeyboardInterrupt
            left -= 1
        return original(self, method, *arguments, **options)

    with monkeypatch.context() as patched:
        patched.setattr(Connection, "call", call)
        try:
            change()
        except KeyboardInterrupt:
            return False
    return True


class TestKills:
    """What a killed command leaves, until a command reads the same documents again."""

    CHANGED = (
        Document("b", "a green bird", "Carp", {"kind": "bird"}),  # another text
        Document("c", "a red fish swims", "Perch", {"year": 2011}),  # other metadata
        Document("d", "fish fish. " * 200, None, {"year": 2012}),  # new, with several passages
    )

    def check_rewritten(self, index, documents):
        index.add(self.CHANGED)
        with index.writer() as writer:
            assert writer.verify() == []
        assert list(index) == [documents[0], *self.CHANGED]
        assert len(index.search("fish", 100, per_document=100)) == index.info().passages
        assert [hit.document_id for hit in index.search("x", where="year = 2011")] == ["c"]
        kinds = {field.name: field.kinds for field in index.info().fields}
        assert kinds["year"] == {"number": 3}

    @pytest.mark.parametrize("request_number", range(7))
    def test_an_interruption_at_any_request(
        self, lite_index, documents, monkeypatch, request_number
    ):
        """Each hit is a passage that a document had or has; the next run completes all."""
        if interrupt_at(request_number, monkeypatch, lambda: lite_index.add(self.CHANGED)):
            assert request_number == 6  # there are six
        versions = [*documents, *self.CHANGED]
        for hit in lite_index.search("fish", 100, per_document=100):
            assert any(hit.text in one.text for one in versions if one.id == hit.document_id)
        assert all(document in versions for document in lite_index)
        self.check_rewritten(lite_index, documents)

    @pytest.mark.parametrize("request_number", range(3))
    def test_an_interrupted_deletion(self, lite_index, documents, monkeypatch, request_number):
        interrupt_at(request_number, monkeypatch, lambda: lite_index.delete(["a", "b"]))
        lite_index.add(documents)
        assert sorted(lite_index, key=lambda one: one.id) == documents
        assert len(lite_index.search("red", 10)) == 3

    def test_a_killed_process(self, lite, documents):
        """milvus-lite opens its file again."""
        here = str(Path(__file__).parent)
        done = subprocess.run([sys.executable, "-c", KILLED, lite, here], check=False)
        assert done.returncode == -signal.SIGKILL
        with Index.open(lite) as index:
            assert list(index) == documents[:1]  # the others are not wholly written
            self.check_rewritten(index, documents)

    def test_faults_are_reported_and_repaired(self, lite_index, documents, caplog):
        connection = lite_index._store._connection
        with lite_index.read() as state:
            [row] = state.named(["a"], ["passages"])
            [whole] = state.named(["b"], DOCUMENT_COLUMNS)
        connection.upsert("one", [whole | {"text_hash": "", "vector": NO_VECTOR}])
        with lite_index.writer() as writer:
            reported = [fault.what for fault in writer.verify()]
            assert reported[0] == "1 document not wholly written, such as 'b'"
            writer.repair()
            assert writer.verify() == []
        assert "again: b" in caplog.text
        assert lite_index.add(documents).added == 1
        with lite_index.read() as state:
            [other] = state.named(["b"], DOCUMENT_COLUMNS)
            connection.delete("one", "id", ["b"])
            assert list(state.fetch(passage_ids([row, other]))) == passage_ids([row])
        with lite_index.writer() as writer:
            [fault] = writer.verify()
        assert "3 vectors for 2 passages" in fault.what
        connection.upsert("one", [other | {"vector": NO_VECTOR}])
        connection.delete("one_space_1", "passage", passage_ids([row]))
        with lite_index.writer() as writer:
            [fault] = writer.verify()
        assert ("2 vectors for 3 passages" in fault.what, fault.repairable) == (True, False)
        with pytest.raises(IndexBusyError):
            lite_index.get("a")
