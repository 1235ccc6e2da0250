"""The user's cache: entries are complete, made once, and checked before use."""

from __future__ import annotations

import threading
import time

import pytest

from semsearch.encoders.cache import cache_folder, cached_entry
from semsearch.errors import EncoderError


@pytest.fixture(autouse=True)
def empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SEMSEARCH_CACHE", str(tmp_path / "cache"))


class Maker:
    def __init__(self, fail=False):
        self.calls = 0
        self.fail = fail

    def __call__(self, folder):
        self.calls += 1
        (folder / "a").write_bytes(b"first")
        time.sleep(0.05)
        if self.fail:
            raise RuntimeError("cut short")
        (folder / "b").write_bytes(b"second")


def test_an_entry_is_made_once():
    make = Maker()
    entry = cached_entry("thing", make)
    assert entry == cached_entry("thing", make) == cache_folder() / "thing"
    assert make.calls == 1
    assert (entry / "b").read_bytes() == b"second"


def test_an_interrupted_entry_is_discarded():
    with pytest.raises(RuntimeError):
        cached_entry("thing", Maker(fail=True))
    assert [file.name for file in cache_folder().iterdir()] == ["thing.lock"]
    make = Maker()
    cached_entry("thing", make)
    assert make.calls == 1


def test_what_a_killed_process_left_is_removed():
    abandoned = cache_folder() / "thing.draft6exxi7oy"
    abandoned.mkdir(parents=True)
    (abandoned / "model.bin").write_bytes(b"half")
    cached_entry("other", Maker())
    assert abandoned.exists()
    cached_entry("thing", Maker())
    assert not abandoned.exists()


def test_threads_make_an_entry_once():
    make, found = Maker(), []
    threads = [
        threading.Thread(target=lambda: found.append(cached_entry("thing", make))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert make.calls == 1
    assert len(set(found)) == 1


def test_a_cache_that_cannot_be_written(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("SEMSEARCH_CACHE", str(tmp_path / "file"))
    with pytest.raises(EncoderError):
        cached_entry("thing", Maker())
