"""What all stores share: records, spaces, locks, and functions over any reader."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import numpy
import pytest

from semsearch import Index
from semsearch.encoders.specs import Precision
from semsearch.errors import ArgumentError, IndexBusyError, IndexStoreError, SpaceError
from semsearch.storage import open_store
from semsearch.storage.interface import (
    Fault,
    IndexInfo,
    Settings,
    closed_on_error,
    text_hash,
    unit_vectors,
)
from semsearch.storage.lock import writer_lock
from semsearch.storage.spaces import (
    Space,
    check_searchable,
    described_space,
    find_space,
    free_name,
    warn_of_cut_passages,
)
from semsearch.storage.words import language
from semsearch.vector_indexes import IndexType

FIRST = Space(1, "first", "hashing:2", "f1" * 16, 2, True, {"precision": "int8"})
SECOND = FIRST._replace(id=3, name="second", fingerprint="f2" * 16, complete=False)
SPACES = [FIRST, SECOND]


def encoder(**changes):
    made = {"spec": "org/Some Model!", "fingerprint": "f1" * 16, "dimension": 8}
    made |= {"max_document_tokens": 128, "description": dict}
    return SimpleNamespace(**made | changes)


def test_information():
    info = IndexInfo(Path("x"), 1, 2, 3, [], SPACES, {}, {}, None, [])
    assert (info.systems, info.stop_words) == (["first", "bm25"], ())
    german = info._replace(language=language("german"), has_words=False)
    assert (german.systems, german.stop_words) == (["first"], language("german").stop_words)
    assert Settings(7) == (7, IndexType("auto", 0.98), None, {})
    assert Fault("x").remedy == "semsearch verify --repair"
    assert Fault("x", repairable=False).remedy.startswith("semsearch index CORPUS")


def test_texts_are_identified_by_128_bits_of_blake2b():
    """Compared with ``b2sum -l 128``."""
    assert text_hash("birch") == "3bfcf9ca3f4ad19acd3ebe45622168e3"


def test_vectors_of_texts():
    stored = {(1, "a"): numpy.array([3, 4], "float32"), (1, "b"): numpy.array([0, 2], "float32")}
    reader = SimpleNamespace(vectors_of_texts=lambda hashes: stored)
    assert unit_vectors(reader, FIRST, ["b", "a"]).tolist() == [[0, 2], [3, 4]]
    assert unit_vectors(reader, FIRST, []).shape == (0, 2)


def test_what_is_opened_is_closed_on_errors_alone():
    closed = []
    opened = SimpleNamespace(close=lambda: closed.append(1))
    with closed_on_error(opened):
        pass
    assert closed == []
    with pytest.raises(KeyboardInterrupt), closed_on_error(opened):
        raise KeyboardInterrupt
    assert closed == [1]


def test_unknown_stores():
    with pytest.raises(ArgumentError, match="'attic'"):
        Index.open("attic://a")
    with pytest.raises(IndexStoreError):
        open_store(Path("none"))


class TestSpaces:
    def test_finding_one(self):
        assert find_space(SPACES) is FIRST
        assert find_space(SPACES, "first") is FIRST
        assert find_space(SPACES, "second") is SECOND
        with pytest.raises(SpaceError, match="first, second"):
            find_space(SPACES, "zeroth")

    def test_searching_one(self):
        check_searchable(FIRST, SPACES)
        changed = [SECOND, FIRST._replace(id=2), FIRST._replace(fingerprint="other")]
        for space in changed:
            with pytest.raises(SpaceError):
                check_searchable(space, SPACES)

    def test_the_encoder_of_one(self):
        assert FIRST.precision is Precision.INT8
        FIRST.check(encoder(), Path("x"))
        with pytest.raises(SpaceError, match="--index x"):
            SECOND.check(encoder(), Path("x"))

    def test_its_completeness(self):
        FIRST.check_complete()
        with pytest.raises(SpaceError, match="--add-space hashing:2$"):
            SECOND.check_complete()
        with pytest.raises(SpaceError, match="--index y"):
            SECOND.check_complete(Path("y"))

    @pytest.mark.parametrize(
        ("spec", "name"),
        [
            ("sentence-transformers/all-MiniLM-L6-v2", "all-minilm-l6-v2"),
            ("-é-", "space"),
            ("first", "first-2"),
            ("second", "second-3"),
        ],
    )
    def test_names(self, spec, name):
        assert free_name(spec, ["first", "second", "second-2"]) == name

    def test_a_new_one(self):
        made = described_space(encoder(), SPACES, complete=True)
        assert made == (4, "some-model", "org/Some Model!", "f1" * 16, 8, True, {})
        assert described_space(encoder(), [], complete=False).complete is False
        assert described_space(encoder(), [], complete=False).id == 1
        commit = encoder(description=lambda: {"commit": "0123456789"})
        assert "0123456" in described_space(commit, [], complete=True).spec

    def test_passages_that_are_longer_than_its_encoder_reads(self, caplog):
        warn_of_cut_passages(encoder(), 128)
        assert not caplog.records
        warn_of_cut_passages(encoder(), 129)
        [message] = caplog.messages
        assert "reads 128 tokens" in message
        assert "up to 129" in message


class TestLock:
    def test_it_is_of_one_thread(self, tmp_path):
        for wait in (0, 60):  # which would not help
            with (
                writer_lock(tmp_path),
                pytest.raises(IndexBusyError, match=f"process {os.getpid()} since 2"),
                writer_lock(tmp_path, wait=wait),
            ):
                pass
        with pytest.raises(TypeError):
            writer_lock(tmp_path, 1)

    def test_its_owner_is_recorded_while_it_holds(self, tmp_path):
        for _ in range(2):
            with writer_lock(tmp_path):
                assert (tmp_path / "writer.json").exists()
            assert not (tmp_path / "writer.json").exists()

    def test_another_process(self, tmp_path, writing_elsewhere, caplog):
        with writing_elsewhere(tmp_path) as pid:
            for wait in (0, 0.2):
                with (
                    pytest.raises(IndexBusyError, match=f"^shelf is .* process {pid} since"),
                    writer_lock(tmp_path, wait=wait, index=Path("shelf")),
                ):
                    pass
            assert len(caplog.records) == 1  # that it waits
            with Index.create(tmp_path, "hashing:8") as index, pytest.raises(IndexBusyError):
                index._store.writer().__enter__()  # it does not wait
            (tmp_path / "writer.json").unlink()
            with pytest.raises(IndexBusyError, match="unknown"), writer_lock(tmp_path):
                pass
            assert len(caplog.records) == 1

    def test_a_directory_that_is_none(self, tmp_path):
        (tmp_path / "file").touch()
        with pytest.raises(IndexStoreError), writer_lock(tmp_path / "file"):
            pass
