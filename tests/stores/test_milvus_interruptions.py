"""Commits to milvus-lite that are interrupted, and reading meanwhile."""

from __future__ import annotations

import numpy
import pytest
from milvus_documents import DOCUMENTS

from semsearch import Document, Index
from semsearch.errors import IndexChangedError
from semsearch.stores.milvus import reader
from semsearch.stores.milvus.collections import passages_of, vectors_of
from semsearch.stores.milvus.connection import Connection
from semsearch.stores.milvus.reader import Reader
from semsearch.stores.protocol import EVERYTHING


class TestInterruptedCommits:
    """What a killed writer leaves behind is never found; the next writer removes it."""

    @pytest.fixture
    def interrupt(self, index, monkeypatch):
        """Interrupt requests of one kind to a collection until the returned function is called."""

        def interrupt_at(method, collection):
            connection = index._store._connection
            original = type(connection).call

            def call(self, name, *arguments, **options):
                if name == method and arguments[0] == collection:
                    raise KeyboardInterrupt
                return original(self, name, *arguments, **options)

            monkeypatch.setattr(type(connection), "call", call)
            return lambda: monkeypatch.setattr(type(connection), "call", original)

        return interrupt_at

    @pytest.mark.parametrize("collection", ["one_space_1", "one"])
    def test_documents_are_added_completely_or_not_at_all(self, index, interrupt, collection):
        before = index.search("fish", 10)
        new = [Document("b", "a green bird", "Carp"), Document("d", "fish fish " * 200)]
        resume = interrupt("upsert", collection)
        with pytest.raises(KeyboardInterrupt):
            index.add(new)
        assert index.search("fish", 10) == before
        assert list(index) == DOCUMENTS
        resume()
        with index.writer() as writer:
            assert writer.verify() == []
        assert index.info().chunks == 3
        assert index.add(new).added == 1
        assert [one.id for one in index] == ["a", "b", "c", "d"]

    @pytest.mark.parametrize("collection", ["one_passages", "one_space_1"])
    def test_replaced_and_deleted_texts_are_not_found(self, index, interrupt, collection):
        resume = interrupt("delete", collection)
        with pytest.raises(KeyboardInterrupt):
            index.add([Document("b", "a green bird", "Carp")])
        assert "fish" not in str([hit.text for hit in index.search("bird", 2)])
        resume()
        with index.writer():
            resume = interrupt("delete", collection)
        with pytest.raises(KeyboardInterrupt):
            index.delete(["c"])
        hits = index.search("fish", 10)
        assert sorted(hit.document_id for hit in hits) == ["a", "b"]
        assert "fish" not in hits[0].text + hits[1].text
        resume()
        index.add([Document("e", "another")])
        with index.writer() as writer:
            assert writer.verify() == []
        assert {name: dict(kinds) for name, kinds, _ in index.info().fields} == {
            "tags": {"list of text": 1},
            "year": {"number": 1},
        }

    def test_each_fault_is_reported_and_repaired(self, index, caplog):
        store = index._store
        connection, space = store._connection, index.space()
        with store.read() as state:
            [row, *others] = state.reader.live_vectors(
                space,
                next(state.selected(EVERYTHING, [])),
                ["vector", "document", "version", "fields"],
            )
        connection.delete(vectors_of(connection, space), [others[0]["row"]])
        broken = {**row, "vector": [0.5] * 64}
        connection.upsert(vectors_of(connection, space), [broken])
        connection.upsert(vectors_of(connection, space), [{**row, "row": 999, "version": 5}])
        connection.delete(passages_of(connection), [others[1]["chunk"]])
        with index.writer() as writer:
            reported = " ".join(fault.what for fault in writer.verify())
            for what in ("passages: 'c'", "1 vector of no", "1 damaged vector", "without a vector"):
                assert what in reported
            writer.repair()
            assert writer.verify() == []
        assert "'c'" in caplog.text
        assert index.add(DOCUMENTS).added == 1
        assert len(index.search("red", 10)) == 3


class TestReading:
    def test_long_documents_are_read_in_parts(self, lite, monkeypatch):
        """A server refuses answers above 100 MB."""
        largest = 0
        original = Connection.query

        def query(self, collection, condition, fields, since):
            nonlocal largest
            rows = original(self, collection, condition, fields, since)
            if {"vector", "text"} & set(fields):
                largest = max(largest, len(rows))
            return rows

        texts = [f"{n} red fish " * 600 for n in range(20)] + ["blue bird sings " * 6000]
        documents = [Document(str(n), text) for n, text in enumerate(texts)]
        with Index.create(lite, "hashing:64") as index:
            index.add(documents)
            whole = index.passages()
            assert len(whole.texts) > 2 * reader.MIN_STEP
            monkeypatch.setattr(Connection, "query", query)
            monkeypatch.setattr(reader, "READ_BYTES", reader.PASSAGE_BYTES * reader.MIN_STEP)
            parts = index.passages()
            assert parts.texts == whole.texts
            assert numpy.array_equal(parts.vectors, whole.vectors)
            assert list(index) == documents
            index.add([Document("20", texts[20], "Another title")])
            assert numpy.array_equal(index.passages().vectors, whole.vectors)
            with index.writer() as writer:
                assert writer.verify() == []
            assert 0 < largest <= reader.MIN_STEP

    @pytest.mark.parametrize(
        "read",
        [
            lambda state, space: state.passages(space),
            lambda state, space: state.passages_of(["b"]),
            lambda state, space: state.document_vectors(space, ["b"]),
        ],
    )
    def test_documents_written_meanwhile_are_not_left_out(self, index, monkeypatch, read):
        original = Reader.live_passages

        def live_passages(self, owners, fields):
            monkeypatch.undo()
            index.add([Document("b", "a green bird", "Carp")])
            return original(self, owners, fields)

        monkeypatch.setattr(Reader, "live_passages", live_passages)
        with index.read() as state, pytest.raises(IndexChangedError):
            read(state, index.space())
