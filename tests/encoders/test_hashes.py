"""SHA-256 of files: computed again if a file changes, otherwise only once."""

from __future__ import annotations

import hashlib
import os

import pytest

from semsearch.encoders.cache import MEMORY, SMALL_BYTES, cache_folder, file_sha256


@pytest.fixture(autouse=True)
def empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SEMSEARCH_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def file(tmp_path):
    """A file that is large enough for its hash to be cached."""
    file = tmp_path / "weights"
    write(file, b"a")
    return file


def write(file, byte):
    file.write_bytes(byte * SMALL_BYTES)


def sha256(file):
    return hashlib.sha256(file.read_bytes()).hexdigest()


def test_a_file_is_hashed_once(file, monkeypatch):
    assert file_sha256(file) == sha256(file)
    monkeypatch.setattr(hashlib, "file_digest", None)  # cannot be called again
    assert file_sha256(file) == sha256(file)


def test_changed_content_has_another_hash(file):
    before = file_sha256(file)
    write(file, b"b")
    assert file_sha256(file) == sha256(file) != before


def test_a_replaced_file_is_hashed_again(file, tmp_path):
    stamps = file.stat()
    before = file_sha256(file)
    write(tmp_path / "other", b"b")
    os.utime(tmp_path / "other", ns=(stamps.st_atime_ns, stamps.st_mtime_ns))
    (tmp_path / "other").replace(file)
    assert file_sha256(file) == sha256(file) != before


def test_hashes_of_small_files_are_not_cached(tmp_path):
    (tmp_path / "small").write_bytes(b"small")
    assert file_sha256(tmp_path / "small") == hashlib.sha256(b"small").hexdigest()
    assert not (cache_folder() / MEMORY).exists()
