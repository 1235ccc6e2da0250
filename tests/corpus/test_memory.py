"""Memory use is bounded, whatever the sizes in a corpus.

Each case runs in its own process, whose peak (VmHWM, which starts afresh with a program, unlike
ru_maxrss) is compared with that after its imports.
"""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/self/status")

#: Above the imports. A row of 64 Mi characters takes 128 MiB while it is assembled, and four
#: times that if one of its characters is beyond U+FFFF.
PEAK_MIB = 300
PEAK_MIB_OF_WIDE_CHARACTERS = 600

MEASURED = """
import sys
from itertools import islice
import faiss, numpy, sqlalchemy
import semsearch.corpus, semsearch.index
from semsearch.cli import index_command, main

def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) // 1024

before = peak()
try:
    {use}
finally:
    print(f"peak {{peak() - before}}", file=sys.stderr)
"""


def measured(use, *arguments, cwd, content):
    """Exit status, stderr and peak memory in MiB of a program that reads this."""
    command = [sys.executable, "-c", MEASURED.format(use=use), *arguments]
    done = subprocess.run(command, cwd=cwd, input=content, capture_output=True, timeout=300)
    reported = done.stderr.decode()
    return done.returncode, reported, int(re.search(r"^peak (\d+)$", reported, re.MULTILINE)[1])


CAT = "\U0001f408".encode()


@pytest.mark.parametrize(
    ("beginning", "block", "mib", "place"),
    [
        (b"id,text\n1,", b"x", 400, "stdin:2: "),
        (b'text,n\n"', b'b","c\n', 16, "stdin:2: "),  # millions of cells
        (b'{"text": "', CAT, 400, "stdin:1: "),
        (b"[", b"[", 60, "stdin: "),
    ],
)
def test_a_corpus(tmp_path, beginning, block, mib, place):
    command = ["index", "-", "--encoder", "hashing"]
    content = beginning + block * ((mib << 20) // len(block))
    status, reported, peak = measured("main()", *command, cwd=tmp_path, content=content)
    assert status == 1
    assert f"Error: {place}" in reported
    assert peak < (PEAK_MIB_OF_WIDE_CHARACTERS if block == CAT else PEAK_MIB)
    assert list(tmp_path.iterdir()) == []


READ_ON = """
    documents = iter(semsearch.corpus.Corpus("-"))
    assert sum(1 for _ in islice(documents, 20_000)) == 20_000
    before = peak()
    assert sum(1 for _ in documents) == 100_000
"""


def test_memory_does_not_grow_with_the_rows(tmp_path):
    """The memory of the first 20,000 is enough for the next 100,000, and so for millions."""
    content = b"text,n\n" + b"one,2\n" * 120_000
    status, _, growth = measured(READ_ON, cwd=tmp_path, content=content)
    assert status == 0
    assert growth <= 2  # MiB; a hundredth of the rows' objects
