"""Memory use does not grow with the corpus, nor with errors in it."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from semsearch.corpus import Corpus
from semsearch.errors import BadRowError, CorpusError

pytestmark = pytest.mark.nightly

MIB = 1 << 20


class Generated(io.RawIOBase):
    """A file that is generated while it is read."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self.blocks = blocks
        self.rest = b""
        self.taken = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:
        self.rest = self.rest or next(self.blocks, b"")
        size = min(len(buffer), len(self.rest))
        buffer[:size], self.rest = self.rest[:size], self.rest[size:]
        self.taken += size
        return size


@pytest.fixture
def stdin(monkeypatch):
    def fill(blocks: Iterator[bytes]) -> Generated:
        file = Generated(blocks)
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BufferedReader(file)))
        return file

    return fill


def endless(beginning: bytes, block: bytes) -> Iterator[bytes]:
    yield beginning
    while True:
        yield block


@pytest.mark.parametrize(
    ("beginning", "block"),
    [
        (b"id,text\n1,", b"x" * MIB),
        (b'{"text": "one"}\n{"text": "', b"x" * MIB),
        (b'[{"text": "one"}, {"text": "', b"x" * MIB),
        (b'id,text\n1,one\n2,"two\n', b"3,three\n" * (MIB // 8)),
    ],
)
def test_endless_row(stdin, beginning, block):
    file = stdin(endless(beginning, block))
    with pytest.raises(CorpusError, match="^stdin"):
        list(Corpus("-"))
    assert file.taken < 140 * MIB


def test_reading_resumes_after_an_unmatched_quote(write):
    # From 64 MiB after the stray quote, each line is a row again.
    line = "2," + "x" * 1000 + "\n"
    count = 70_000
    write("corpus.csv", 'id,text\n1,"stray\n' + line * count)
    bad: list[BadRowError] = []
    rest = sum(1 for _ in Corpus("corpus.csv", on_bad_row=bad.append))
    assert [error.source for error in bad] == ["corpus.csv:2"]
    swallowed = (64 * MIB - len("stray\n")) // len(line)
    assert rest == count - swallowed - 1


def test_importing_the_readers_imports_nothing_heavy():
    code = "import semsearch.corpus, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"pandas", "pyarrow", "numpy", "ijson"} & set(done.stdout.split())
