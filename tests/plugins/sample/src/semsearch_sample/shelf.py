"""Keeps the index ``shelf://NAME`` in the folder shelf/NAME."""

from pathlib import Path

from semsearch.stores import local


def open_store(path):
    return local.open_store(_folder(path))


def create_store(path, max_tokens, encoders, dtype=None):
    return local.create_store(_folder(path), max_tokens, encoders, dtype)


def _folder(path):
    engine, _, name = str(path).partition("://")
    assert engine == "shelf", path
    return Path("shelf", name)
