"""Keeps the index ``shelf://NAME`` in the folder shelf/NAME."""

from pathlib import Path

from semsearch.storage import sqlite


def open_store(path):
    return sqlite.open_store(_folder(path))


def create_store(path, max_tokens, encoders, dtype=None):
    return sqlite.create_store(_folder(path), max_tokens, encoders, dtype)


def _folder(path):
    engine, _, name = str(path).partition("://")
    assert engine == "shelf", path
    return Path("shelf", name)
