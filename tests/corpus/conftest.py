"""Files to read, in a folder of the test's own that is also the working directory."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Writes a file and returns its name, by which messages will call it."""
    monkeypatch.chdir(tmp_path)

    def write(name: str, content: str | bytes, *, packed: bool = False) -> str:
        stored = content.encode() if isinstance(content, str) else content
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(stored) if packed else stored)
        return name

    return write
