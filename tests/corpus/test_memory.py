"""Memory use is bounded, whatever the sizes in a corpus, a file of queries or a data set.

Each case runs in its own process, whose peak (VmHWM, which starts afresh with a program, unlike
ru_maxrss) is compared with that after its imports.
"""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from contextlib import suppress
from itertools import repeat

import pytest

from semsearch import Document, Index

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/self/status")

MIB = 1 << 20
#: Above the imports. A row of 64 Mi characters takes 128 MiB while it is assembled, and four
#: times that if one of its characters is beyond U+FFFF.
PEAK_MIB = 300
PEAK_MIB_OF_WIDE_CHARACTERS = 600

MEASURED = """
import sys
from itertools import islice
import faiss, numpy, sqlalchemy
import semsearch.corpus, semsearch.index
from semsearch.cli import index_command, main, query_command

def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) // 1024

before = peak()
try:
    {use}
finally:
    print(f"peak {{peak() - before}}", file=sys.stderr)
"""


def measured(use, *arguments, cwd, blocks=()):
    """Exit status, stderr and peak memory in MiB of a program that reads these blocks."""
    command = [sys.executable, "-c", MEASURED.format(use=use), *arguments]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, cwd=cwd, **pipes) as process:

        def feed():
            with suppress(BrokenPipeError), process.stdin:
                for block in blocks:
                    process.stdin.write(block)

        feeder = threading.Thread(target=feed)
        feeder.start()
        reported = process.stderr.read().decode()
        feeder.join()
    return process.returncode, reported, int(re.search(r"^peak (\d+)$", reported, re.MULTILINE)[1])


def long(beginning, block, size=400 * MIB):
    """Blocks of this total size, which share one MiB of memory."""
    return [beginning, *repeat(block * (MIB // len(block)), size // MIB)]


CAT = "\U0001f408".encode()


@pytest.mark.parametrize(
    ("blocks", "place"),
    [
        (long(b"id,text\n1,", b"x"), "stdin:2: "),
        (long(b'text,n\n"', b'b","c\n', 16 * MIB), "stdin:2: "),  # millions of cells
        (long(b'{"text": "', CAT), "stdin:1: "),
        (long(b"[", b"[", 60 * MIB), "stdin: "),
    ],
)
def test_a_corpus(tmp_path, blocks, place):
    command = ["index", "-", "--encoder", "hashing"]
    status, reported, peak = measured("main()", *command, cwd=tmp_path, blocks=blocks)
    assert status == 1
    assert f"Error: {place}" in reported
    assert peak < (PEAK_MIB_OF_WIDE_CHARACTERS if CAT in blocks[1] else PEAK_MIB)
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_queries(tmp_path):
    with Index.create(tmp_path / "indexes" / "one", ["hashing"]) as index:
        index.add([Document("1", "One.")])
    status, reported, peak = measured(
        "main()", "query", "--queries", "-", cwd=tmp_path, blocks=long(b"one\n", b"x ")
    )
    assert status == 1
    assert reported.startswith("Error: stdin:2: ")
    assert peak < PEAK_MIB


READ_ON = """
    documents = iter(semsearch.corpus.Corpus("-"))
    assert sum(1 for _ in islice(documents, 20_000)) == 20_000
    before = peak()
    assert sum(1 for _ in documents) == 100_000
"""


def test_memory_does_not_grow_with_the_rows(tmp_path):
    """The memory of the first 20,000 is enough for the next 100,000, and so for millions."""
    status, _, growth = measured(READ_ON, cwd=tmp_path, blocks=[b"text,n\n" + b"one,2\n" * 120_000])
    assert status == 0
    assert growth <= 2  # MiB; a hundredth of the rows' objects
