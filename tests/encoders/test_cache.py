"""The user's cache: entries are complete and made once; hashes of files are computed once."""

from __future__ import annotations

import hashlib
import os
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from semsearch.encoders.cache import MEMORY, SMALL_BYTES, cache_folder, cached_entry, file_sha256
from semsearch.errors import EncoderError


@pytest.fixture(autouse=True)
def empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SEMSEARCH_CACHE", str(tmp_path / "cache"))


def make(folder):
    (folder / "a").write_bytes(b"first")
    time.sleep(0.05)
    (folder / "b").write_bytes(b"second")


def test_what_an_interrupted_or_killed_process_left_is_removed():
    def fail(folder):
        (folder / "a").write_bytes(b"first")
        raise RuntimeError("cut short")

    with pytest.raises(RuntimeError):
        cached_entry("thing", fail)
    assert [file.name for file in cache_folder().iterdir()] == ["thing.lock"]
    abandoned = cache_folder() / "thing.draft6exxi7oy"
    abandoned.mkdir()
    (abandoned / "model.bin").write_bytes(b"half")
    cached_entry("other", make)
    assert abandoned.exists()
    assert cached_entry("thing", make) == cache_folder() / "thing"
    assert not abandoned.exists()


def test_threads_make_an_entry_once():
    calls = []

    def counted(folder):
        calls.append(folder)
        make(folder)

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: cached_entry("thing", counted), range(4)))
    assert len(calls) == 1
    assert found == [cache_folder() / "thing"] * 4
    assert (found[0] / "b").read_bytes() == b"second"


def test_a_cache_that_cannot_be_written(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("SEMSEARCH_CACHE", str(tmp_path / "file"))
    with pytest.raises(EncoderError):
        cached_entry("thing", make)


@pytest.fixture
def file(tmp_path):
    """A file that is large enough for its hash to be cached."""
    file = tmp_path / "weights"
    file.write_bytes(b"a" * SMALL_BYTES)
    return file


def sha256(file):
    return hashlib.sha256(file.read_bytes()).hexdigest()


def test_a_large_file_is_hashed_once(file, tmp_path, monkeypatch):
    assert file_sha256(file) == sha256(file)
    monkeypatch.setattr(hashlib, "file_digest", None)  # cannot be called again
    assert file_sha256(file) == sha256(file)
    (tmp_path / "small").write_bytes(b"b" * (SMALL_BYTES - 1))
    assert file_sha256(tmp_path / "small") == sha256(tmp_path / "small")
    assert str(tmp_path / "small") not in (cache_folder() / MEMORY).read_text()


def test_changed_and_replaced_files_are_hashed_again(file, tmp_path):
    """Also one with the same size and time; a file that is gone is forgotten."""
    seen = [file_sha256(file)]
    file.write_bytes(b"b" * SMALL_BYTES)
    assert file_sha256(file) == sha256(file) not in seen
    seen.append(sha256(file))
    stamps = file.stat()
    (tmp_path / "other").write_bytes(b"c" * SMALL_BYTES)
    os.utime(tmp_path / "other", ns=(stamps.st_atime_ns, stamps.st_mtime_ns))
    (tmp_path / "other").replace(file)
    assert file_sha256(file) == sha256(file) not in seen
    other = file.rename(tmp_path / "renamed")
    assert file_sha256(other) == sha256(other)
    memory = (cache_folder() / MEMORY).read_text()
    assert str(other) in memory
    assert str(file) not in memory
