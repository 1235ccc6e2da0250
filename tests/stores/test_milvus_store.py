"""An index on milvus-lite: addresses, guards, refusals, and every command."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys

import numpy
import pytest
from click.testing import CliRunner

from semsearch import Document, Index, load_encoder
from semsearch.addresses import Address, place, store_of
from semsearch.cli import main
from semsearch.errors import (
    ArgumentError,
    BadRowError,
    IndexBusyError,
    IndexChangedError,
    IndexClosedError,
    IndexFormatError,
    IndexNotFoundError,
    IndexStoreError,
    MissingExtraError,
    SpaceError,
    StoreUnreachableError,
)
from semsearch.stores.milvus import connection as connection_module
from semsearch.stores.milvus import reader
from semsearch.stores.milvus import store as store_module
from semsearch.stores.milvus.catalogue import read_catalogue, write_catalogue
from semsearch.stores.milvus.collections import passages_of, vectors_of
from semsearch.stores.milvus.connection import Connection, target
from semsearch.stores.milvus.reader import Reader
from semsearch.stores.protocol import EVERYTHING

DOCUMENTS = [
    Document("a", "a red bird sings", "Robin", {"year": 1999, "tags": ["red"]}),
    Document("b", "a blue fish swims", "Carp", {"year": 2005, "tags": []}),
    Document("c", "a red fish swims", None, {"year": 2010, "tags": ["red"]}),
]


@pytest.fixture
def index(lite):
    with Index.create(lite, "hashing:64") as index:
        index.add(DOCUMENTS)
        yield index


def run(*arguments, code=0):
    done = CliRunner().invoke(main, list(map(str, arguments)))
    assert done.exit_code == code, done.output
    return done.output


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

    @pytest.mark.parametrize("text", ["indexes/milvus", "milvus", "a/milvus://b", "./milvus:x"])
    def test_paths_are_not_addresses(self, text):
        assert not isinstance(place(text), Address)
        assert store_of(place(text)) == "semsearch.stores.local"

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("milvus://localhost:19530/two words", "letters, digits and _"),
            ("milvus://localhost:19530/1st", "not starting with a digit"),
            ("milvus://user:pass@host:1/news", "HOST:PORT/NAME"),
            ("milvus://host:port/news", "HOST:PORT/NAME"),
            ("milvus://host:99999/news", "HOST:PORT/NAME"),
            ("milvus://host:0/news", "HOST:PORT/NAME"),
            ("milvus-lite:///x/news", "FILE.db/NAME"),
        ],
    )
    def test_wrong_ones_are_refused(self, text, message):
        with pytest.raises(ArgumentError, match=message):
            target(place(text))

    def test_tls_is_set_by_environment_variables(self, monkeypatch):
        monkeypatch.setenv("SEMSEARCH_MILVUS_TLS", "1")
        assert target(place("milvus://h:1/n")).uri == "https://h:1"
        monkeypatch.setenv("SEMSEARCH_MILVUS_TLS", "0")
        assert target(place("milvus://h:1/n")).uri == "http://h:1"
        monkeypatch.setenv("SEMSEARCH_MILVUS_CA", "")
        assert target(place("milvus://h:1/n")).uri == "http://h:1"
        monkeypatch.setenv("SEMSEARCH_MILVUS_CA", "ca.pem")
        assert target(place("milvus://h:1/n")).uri == "https://h:1"

    def test_missing_extra_is_named(self, monkeypatch):
        monkeypatch.setattr(connection_module, "find_spec", lambda name: None)
        with pytest.raises(MissingExtraError, match=r"semsearch\[milvus\]"):
            Index.open("milvus://localhost:19530/news")

    def test_unreachable_server_is_reported(self, package, monkeypatch):
        package("pymilvus")
        monkeypatch.setenv("SEMSEARCH_MILVUS_TIMEOUT", "0.5")
        with pytest.raises(StoreUnreachableError, match=r"does not answer at http://127.0.0.1:1 "):
            Index.open("milvus://127.0.0.1:1/news")
        monkeypatch.setenv("SEMSEARCH_MILVUS_TIMEOUT", "soon")
        with pytest.raises(ArgumentError, match="SEMSEARCH_MILVUS_TIMEOUT must be a number"):
            Index.open("milvus://127.0.0.1:1/news")

    def test_a_local_index_does_not_import_milvus(self, tmp_path):
        with Index.create(tmp_path / "one", "hashing") as index:
            index.add(DOCUMENTS)
        code = (
            "import sys; from semsearch import Index; "
            f"print(Index.open({str(tmp_path / 'one')!r}).search('red')[0].document_id); "
            "print([name for name in sys.modules if 'milvus' in name or name == 'grpc'])"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        assert done.stdout.split("\n")[1] == "[]"


class TestGuards:
    def test_another_encoder_is_refused(self, index, lite):
        with pytest.raises(SpaceError, match="no space of encoder 'hashing:32'"):
            Index.create(lite, "hashing:32")
        with Index.create(lite) as again:
            assert again.search("bird", 1)[0].document_id == "a"

    def test_a_changed_model_is_refused(self, index, lite):
        store = index._store
        catalogue = read_catalogue(store._connection)
        other = [catalogue.spaces[0]._replace(fingerprint="other")]
        write_catalogue(store._connection, spaces=other)
        with Index.open(lite) as again, pytest.raises(SpaceError, match="made by another model"):
            again.search("bird")

    def test_a_newer_format_is_refused(self, index, lite):
        connection = index._store._connection
        connection.call("alter_collection_properties", "one", {"semsearch.format": "2"})
        with pytest.raises(IndexFormatError, match="has format 2, this semsearch knows format 1"):
            Index.open(lite)

    def test_a_foreign_collection_is_left_alone(self, index, lite):
        connection = index._store._connection
        connection.call("drop_collection", "one_passages")
        connection.call("create_collection", "other", dimension=4)
        with pytest.raises(IndexFormatError, match="was not made by semsearch"):
            Index.create(lite.replace("/one", "/other"), "hashing")

    @pytest.mark.parametrize("taken", ["one_passages", "one_space_1", "one_words", "one_terms"])
    def test_another_index_of_a_collections_name_is_kept(self, lite, taken):
        with Index.create(lite.replace("/one", f"/{taken}"), "hashing:64") as other:
            before = other._store._connection.call("list_collections")
            with pytest.raises(IndexFormatError, match=f"'{taken}', but that name is taken by"):
                Index.create(lite, "hashing:64")
            assert other._store._connection.call("list_collections") == before
            other.add(DOCUMENTS)

    def test_a_foreign_collection_of_such_a_name_is_kept(self, index, lite):
        index._store._connection.call("create_collection", "two_passages", dimension=4)
        with pytest.raises(IndexFormatError, match="choose another name for the index"):
            Index.create(lite.replace("/one", "/two"), "hashing:64")
        assert index._store._connection.has("two_passages")

    def test_a_new_space_keeps_a_collection_of_its_name(self, index, lite):
        with Index.create(f"{lite}_space_2", "hashing:64") as other:
            other.add(DOCUMENTS)
            with index.writer() as writer, pytest.raises(IndexFormatError, match="'one_space_2'"):
                writer.add_space(load_encoder("hashing:32"))
            assert len(other) == 3
            assert len(index.spaces()) == 1

    def test_creation_continues_after_an_interruption(self, index, lite):
        index._store._connection.call("drop_collection", "one")  # the last that is made
        with Index.create(lite, "hashing:64") as again:
            again.add(DOCUMENTS[:2])
            with again.writer() as writer:
                assert writer.verify() == []

    @pytest.mark.parametrize("elsewhere", [False, True])
    def test_two_that_create_the_same_index(self, lite, tmp_path, monkeypatch, elsewhere):
        original = store_module.make

        def make(*arguments):
            monkeypatch.setattr(store_module, "make", original)
            original(*arguments)
            if elsewhere:
                monkeypatch.setenv("SEMSEARCH_CACHE", str(tmp_path / "cache"))
                with Index.create(lite, "hashing:64") as other:
                    other.add(DOCUMENTS)
            else:
                with pytest.raises(IndexBusyError, match="is being written by process"):
                    Index.create(lite, "hashing:64")

        monkeypatch.setattr(store_module, "make", make)
        with Index.create(lite, "hashing:64") as index:
            index.add(DOCUMENTS[:1])
            assert len(index) == (3 if elsewhere else 1)
            with index.writer() as writer:
                assert writer.verify() == []

    def test_an_index_created_before_it_is_locked_is_opened(self, lite, monkeypatch):
        original = store_module.writer_lock

        def writer_lock(*arguments, **options):
            monkeypatch.undo()
            with Index.create(lite, "hashing:64") as other:
                other.add(DOCUMENTS)
            return original(*arguments, **options)

        monkeypatch.setattr(store_module, "writer_lock", writer_lock)
        with Index.create(lite, "hashing:64") as index:
            assert len(index) == 3

    def test_a_missing_index_is_reported(self, lite, tmp_path):
        with pytest.raises(IndexNotFoundError, match="make one with: semsearch index CORPUS"):
            Index.open(lite)
        assert list(tmp_path.iterdir()) == []  # milvus-lite creates what it opens

    def test_a_file_is_opened_by_one_process_only(self, index, lite):
        code = f"from semsearch import Index; Index.open({lite!r})"
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=False
        )
        assert "another process uses it" in done.stderr.splitlines()[-1]

    def test_a_file_is_released_on_closing(self, lite):
        with Index.create(lite, "hashing:64") as first, Index.open(lite) as second:
            first.add(DOCUMENTS)
            first.close()
            assert len(second) == 3
        with pytest.raises(IndexClosedError), first.read():
            pass
        code = f"from semsearch import Index; print(len(Index.open({lite!r})))"
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        assert done.stdout == "3\n"

    def test_a_file_has_several_spellings(self, index, lite, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "link.db").symlink_to("file.db")
        for spelling in ("file.db", "./file.db", "link.db"):
            with Index.open(f"milvus-lite:{spelling}/one") as other:
                assert len(other) == 3
                with index.writer(), pytest.raises(IndexBusyError), other.writer():
                    pass
            assert len(index) == 3

    def test_a_writer_on_another_host_is_reported(self, index, lite):
        connection = index._store._connection
        remote = {"token": "t", "host": "elsewhere", "process": 7, "since": "noon"}
        write_catalogue(connection, writer=remote | {"seen": 2**40})
        with pytest.raises(IndexBusyError, match=r"by process 7 on elsewhere since noon$"):
            index.delete(["a"])
        write_catalogue(connection, writer=remote | {"seen": 0})  # long ago
        assert index.delete(["a"]) == 1
        with index.writer() as writer:
            write_catalogue(connection, writer=remote)
            with pytest.raises(IndexBusyError, match="on elsewhere since noon, too"):
                writer.delete(["b"])
        assert len(index) == 2

    def test_a_writer_of_another_user_is_reported(self, index):
        connection = index._store._connection
        other = {"token": "t", "host": platform.node(), "lock": "/other", "since": "noon"}
        write_catalogue(connection, writer=other | {"process": os.getpid(), "seen": 2**40})
        with pytest.raises(IndexBusyError, match=rf"by process {os.getpid()} on .* since noon$"):
            index.delete(["a"])
        with subprocess.Popen([sys.executable, "-c", ""]) as ended:
            pass
        write_catalogue(connection, writer=other | {"process": ended.pid, "seen": 2**40})
        assert index.delete(["a"]) == 1

    def test_a_writer_that_has_ended_meanwhile_is_reported(self, index):
        with index.writer() as writer:
            write_catalogue(index._store._connection, writer={})
            with pytest.raises(IndexBusyError, match="was written by another process meanwhile; w"):
                writer.delete(["b"])


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
        with index.read() as state, pytest.raises(IndexChangedError, match="while it was read"):
            read(state, index.space())

    def test_vectors_written_meanwhile_are_not_left_out(self, index, monkeypatch):
        original = Reader.live_vectors

        def live_vectors(self, space, owners, fields):
            monkeypatch.undo()
            index.add([Document("b", "a blue fish swims", "Another title")])
            return original(self, space, owners, fields)

        monkeypatch.setattr(Reader, "live_vectors", live_vectors)
        with index.read() as state, pytest.raises(IndexChangedError, match="while it was read"):
            state.document_vectors(index.space(), ["a", "b"])


class TestGraph:
    @pytest.mark.parametrize("found", [0, 1])
    def test_a_filter_finds_what_the_graph_does_not_lead_to(self, index, monkeypatch, found):
        documents = [Document(f"d{n}", f"red fish {n}", None, {"year": n}) for n in range(20)]
        index.add([*documents, Document("long", "red fish " * 400, None, {"year": 5})])
        where = "year > 3 and year < 12"
        exact = [index.search("red fish 7", k, where=where) for k in (5, 50)]
        with index.writer() as writer:
            writer.set_index_type("hnsw")
            writer.optimise()
        original = Connection.search

        def search(self, *arguments):
            nonlocal left
            [hits] = original(self, *arguments)
            left, some = 0, hits[:left]
            return [some]

        monkeypatch.setattr(Connection, "search", search)
        for k, hits in zip((5, 50), exact, strict=True):
            left = found
            again = index.search("red fish 7", k, where=where)
            assert [hit.document_id for hit in again] == [hit.document_id for hit in hits]
            assert [hit.score for hit in again] == pytest.approx([hit.score for hit in hits])


class TestLoading:
    """A file that is opened again has its collections loaded by the first request."""

    def test_failing_is_reported(self, index, lite, monkeypatch):
        import grpc
        from pymilvus import MilvusClient

        class DeadlineError(grpc.RpcError):
            def __str__(self):
                return "StatusCode.DEADLINE_EXCEEDED"

        def load(*arguments, **options):
            raise DeadlineError

        index.close()
        monkeypatch.setattr(MilvusClient, "load_collection", load)
        monkeypatch.setenv("SEMSEARCH_MILVUS_TIMEOUT", "0.5")
        with Index.open(lite) as again:
            with pytest.raises(StoreUnreachableError, match="did not answer in 0.5 s; SEMSEARCH"):
                again.get("a")
            monkeypatch.undo()
            assert again.get("a") == DOCUMENTS[0]


class TestWords:
    """BM25; test_congruence and test_milvus_results compare its ranking with the local store's."""

    def test_later_documents_are_scored_like_the_others(self, lite, tmp_path):
        """milvus-lite's own BM25 would count the words of each session separately."""
        texts = [f"amber birch {number} {'cedar ' * (number % 3)}" for number in range(60)]
        new = Document("new", "amber cedar fjord")
        hits = []
        for path in (lite, str(tmp_path / "local")):
            with Index.create(path, "hashing:64") as index:
                index.add(Document(f"d{number}", text) for number, text in enumerate(texts))
            with Index.open(path) as index:
                index.add([new])
                hits.append(index.search("fjord cedar 7", 20, mode="bm25"))
        ours, local = ([(hit.document_id, hit.score) for hit in found] for found in hits)
        assert [name for name, _ in ours] == [name for name, _ in local]
        assert [score for _, score in ours] == pytest.approx(
            [score for _, score in local], rel=0.01
        )

    def test_a_language(self, index, lite):
        index.close()
        run("index", "--language", "english", "--index", lite)
        assert "Snowball stemmer 'english'" in run("info", "--index", lite)
        with Index.open(lite) as again:
            hits = again.search("swimming the", mode="bm25")
            assert sorted(hit.document_id for hit in hits) == ["b", "c"]
            with again.writer() as writer:
                assert writer.verify() == []

    def test_counts_are_rebuilt_after_an_interrupted_commit(self, index):
        connection = index._store._connection
        catalogue = read_catalogue(connection)
        connection.call("delete", "one_terms", filter="term > 0")
        with index.writer() as writer:
            [fault] = writer.verify()
            assert "BM25's counts of words" in fault.what
        assert index.search("bird", mode="bm25") == []
        write_catalogue(connection, content=catalogue.content._replace(clean=False))
        with index.writer() as writer:
            assert writer.verify() == []
        assert [hit.document_id for hit in index.search("bird", mode="bm25")] == ["a"]

    def test_searching_while_bm25_is_being_built(self, index):
        connection = index._store._connection
        content = read_catalogue(connection).content
        write_catalogue(connection, content=content._replace(bm25="building", clean=False))
        with pytest.raises(IndexStoreError, match="its BM25 is being built"):
            index.search("bird", mode="bm25")
        index.delete(["b"])
        assert [hit.document_id for hit in index.search("fish", mode="bm25")] == ["c"]

    def test_an_index_without_bm25(self, index):
        connection = index._store._connection
        content = read_catalogue(connection).content
        write_catalogue(connection, content=content._replace(bm25="none"))
        with pytest.raises(IndexStoreError, match="has no BM25, which milvus-lite and Milvus from"):
            index.search("bird", mode="hybrid")
        assert index.systems() == ["hashing-64"]


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

    @pytest.mark.parametrize("collection", ["one_passages", "one_space_1", "one"])
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
            assert "1 document without passages: 'c'" in reported
            assert "1 vector of no document" in reported
            assert "1 damaged vector" in reported
            assert "damaged vectors" not in reported
            assert "without a vector" in reported
            writer.repair()
            assert writer.verify() == []
        assert "documents that lack passages are removed: 'c'" in caplog.text
        assert index.add(DOCUMENTS).added == 1
        assert len(index.search("red", 10)) == 3

    def test_a_document_replaced_while_it_is_read(self, index, interrupt):
        query = load_encoder("hashing:64").encode_queries(["fish"])
        with index.read() as state:
            [found] = state.search_vectors(index.space(), query, 3)
            chunks = [one.chunk_id for one in found]
            resume = interrupt("delete", "one_passages")  # the former passages are still there
            with pytest.raises(KeyboardInterrupt):
                index.add([Document("b", "a green bird", "Carp", {"year": 2020})])
            resume()
            with pytest.raises(IndexChangedError, match="was written while it was read"):
                state.fetch(chunks)
            texts = [one.chunk.text for one in state.fetch(chunks, missing_ok=True).values()]
            assert sorted(texts) == ["a red bird sings", "a red fish swims"]

    def test_a_document_deleted_while_it_is_read(self, index, monkeypatch):
        with index.read() as state:
            found = state.search_vectors(
                index.space(), load_encoder("hashing:64").encode_queries(["red"]), 3
            )
            index.delete(["a"])
            with pytest.raises(IndexChangedError, match="was written while it was read"):
                state.fetch([one.chunk_id for one in found[0]])


class TestRefusals:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["query", "fish -red", "--mode", "bm25"], "finds no phrases and leaves out no words"),
            (["query", '"red fish"', "--mode", "hybrid"], "finds no phrases"),
            (["map"], "a map is stored in the directory of its index"),
            (["compact"], "is not compacted by semsearch"),
            (["index", "--filter-column", "year"], "no indexes of fields"),
            (["index", "--index-type", "ivf"], "flat, hnsw or auto, not ivf"),
            (["index", "--recall", "0.9"], "recall and memory cannot be chosen"),
        ],
    )
    def test_unsupported_commands_fail_with_one_line(self, index, lite, arguments, message):
        output = run(*arguments, "--index", lite, code=1)
        assert output.startswith("Error: ")
        assert output.endswith("[unsupported-by-store]\n")
        assert output.count("\n") == 1
        assert message in output

    @pytest.mark.parametrize(
        ("document", "message"),
        [
            (Document("x", "y" * 70_000), "a passage has 70,000 bytes; Milvus takes up to 65,535"),
            (Document("x", "y", "t" * 70_000), "its title has 70,002 bytes"),
            (Document("x", "y", None, {"a": "é" * 40_000}), "its metadata has 80,008 bytes"),
            (Document("x", "y", None, {"a": list(range(3000))}), "values by which filters find it"),
            (Document("x", "y" + " " * 70_000), "its text outside its passages has 70,000 bytes"),
        ],
    )
    def test_documents_too_large_for_a_field_are_bad_rows(self, index, tmp_path, document, message):
        with pytest.raises(BadRowError, match=f"^document 'x': .*{message}"):
            index.add([document])
        bad = []
        others = [Document("d", "a green bird"), Document("e", "fish " * 20_000)]
        with index.writer(on_bad_row=bad.append) as writer:
            assert writer.upsert([others[0], document, others[1]]).added == 2
        assert [str(error).partition(":")[0] for error in bad] == ["document 'x'"]
        assert [one.id for one in index] == ["a", "b", "c", "d", "e"]
        # Its text is larger than a field, but what lies outside its passages is not.
        assert index.add([Document("e", "fish " * 20_000, "Fish")]).metadata_changed == 1

    def test_a_copy_names_a_document_that_is_too_large(self, index, lite, tmp_path):
        with Index.create(tmp_path / "local", "hashing:64") as local:
            local.add([*DOCUMENTS, Document("x", "y" * 70_000)])
        index.close()
        output = run("push", tmp_path / "local", lite, code=1)
        assert "document 'x': a passage has 70,000 bytes; Milvus takes up to 65,535; sho" in output


class TestCommands:
    def test_from_the_shell(self, lite, tmp_path):
        corpus = tmp_path / "birds.csv"
        corpus.write_text("id,text,year\na,a red bird,1999\nb,a blue fish,2005\nc,a red fish,\n")
        output = run("index", corpus, "--encoder", "hashing", "--index", lite)
        assert f"{lite.replace(':/', ':///')}: 3 documents (3 added)" in output
        output = run("index", corpus, "--index", lite)
        assert "3 documents (3 unchanged)" in output
        corpus.write_text("id,text,year\na,a red bird,1999\nb,a green fish,2005\n")
        output = run("index", corpus, "--sync", "--dry-run", "--index", lite)
        assert "0 documents to add, 1 to change" in output
        assert "to remove: 1 of 3 documents ('c')" in output
        output = run("index", corpus, "--sync", "--index", lite)
        assert "(1 changed, 1 unchanged, 1 removed)" in output
        hits = run(
            "query", "red", "-k", "1", "--where", "year < 2000", "--format", "csv", "--index", lite
        )
        assert ",a," in hits
        assert json.loads(run("info", "--format", "json", "--index", lite))["documents"] == 2
        assert "BM25: Porter" in run("info", "--index", lite)
        assert "fish" in run("query", "greens", "--mode", "bm25", "--index", lite)
        output = run("compare", "green fish", "--index", lite)
        assert "hashing and bm25: " in output
        run("index", "--add-space", "hashing:32", "--index", lite)
        assert "hashing-32" in run("info", "--index", lite)
        assert "no faults" in run("verify", "--index", lite)
        run("index", "--drop-space", "hashing-32", "--index", lite)
        run("index", "--index-type", "hnsw", "--index", lite)
        assert "a green fish" in run("query", "green", "-k", "1", "--index", lite)
        assert "HNSW, by Milvus" in run("query", "green", "-k", "1", "--explain", "--index", lite)
        assert "1 document deleted, 1 left" in run("delete", "a", "--index", lite)

    def test_a_filter_column_is_not_needed(self, lite, tmp_path):
        corpus = tmp_path / "birds.csv"
        corpus.write_text("id,text,year\na,a red bird,1999\n")
        options = ("--encoder", "hashing", "--filter-column", "year")
        output = run("index", corpus, *options, "--index", lite)
        assert output.endswith(
            "an index on Milvus has no indexes of fields; filters work without\n"
        )
        assert "a red bird" in run("query", "bird", "--where", "year = 1999", "--index", lite)

    def test_eval(self, index, lite, tmp_path):
        queries, qrels = tmp_path / "queries.csv", tmp_path / "qrels.csv"
        index.close()
        queries.write_text("query_id,text\nq1,red bird\n")
        qrels.write_text("query_id,doc_id,relevance\nq1,a,1\n")
        output = run(
            *("eval", "ir", "--index", lite, "--queries", queries, "--qrels", qrels),
        )
        assert "hashing-64" in output
        assert "bm25" in output
        assert "100.0" in output

    def test_serve(self, index, lite):
        pytest.importorskip("fastapi", reason="the service needs the extra 'serve'")
        from fastapi.testclient import TestClient

        from semsearch.service import Settings, create_app

        app = create_app({"birds": place(lite)}, Settings())
        with TestClient(app, base_url="http://localhost") as client:
            found = client.get("/v1/indexes/birds/search", params={"query": "red bird", "k": 1})
            assert found.json()["hits"][0]["id"] == "a"
            assert client.get("/v1/indexes/birds/documents/b").json()["title"] == "Carp"
