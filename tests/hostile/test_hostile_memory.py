"""Memory use is bounded, whatever the sizes in a corpus or a file of queries.

Each case runs in its own process, whose peak (VmHWM, which starts afresh with a program, unlike
ru_maxrss) is compared with that after its imports.
"""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterable
from contextlib import suppress
from itertools import repeat

import pytest

from semsearch import Document, Index

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/self/status"),
]

MIB = 1 << 20
GIB = 1 << 30
#: Above the imports. A row of 64 Mi characters takes 128 MiB while it is assembled, and four
#: times that if one of its characters is beyond U+FFFF.
PEAK_MIB = 300
PEAK_MIB_OF_WIDE_CHARACTERS = 600

MEASURED = """
import sys
import faiss, numpy, sqlalchemy
import semsearch.corpus
import semsearch.index
from semsearch.cli import index_command, main, query_command

def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) // 1024

before = peak()
try:
    main()
finally:
    print(f"peak {peak() - before}", file=sys.stderr)
"""


def measured(*arguments: object, cwd, blocks: Iterable[bytes] = ()) -> tuple[int, str, int]:
    """Exit status, stderr and peak memory in MiB of a command that reads these blocks."""
    command = [sys.executable, "-c", MEASURED, *map(str, arguments)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=cwd
    ) as process:

        def feed() -> None:
            with suppress(BrokenPipeError), process.stdin:
                for block in blocks:
                    process.stdin.write(block)

        feeder = threading.Thread(target=feed)
        feeder.start()
        messages = process.stderr.read().decode()
        feeder.join()
        status = process.wait()
    reported, _, number = messages.rpartition("peak ")
    return status, reported, int(number)


def long(beginning: bytes, block: bytes, size: int = GIB, end: bytes = b"") -> list[bytes]:
    """Blocks of this total size, which share one MiB of memory."""
    return [beginning, *repeat(block * (MIB // len(block)), size // MIB), end]


CAT = "\U0001f408".encode()


@pytest.mark.parametrize(
    ("format_name", "blocks", "message"),
    [
        ("csv", long(b"id,text\n1,", b"x"), "stdin:2: the line is longer than 64 MiB"),
        ("csv", long(b"", b"x"), "stdin:1: the line is longer than 64 MiB"),
        ("csv", long(b"id,text\n1,", b"\0"), "stdin:2: the line is longer than 64 MiB"),
        ("csv", long(b"id,text\n1,", CAT), "stdin:2: the line is longer than 64 MiB"),
        ("jsonl", long(b'{"text": "', b"x"), "stdin:1: the line is longer than 64 MiB"),
        ("jsonl", long(b'{"text": "', CAT), "stdin:1: the line is longer than 64 MiB"),
        ("json", long(b'[{"text": "', b"x"), "stdin: an item is longer than 64 MiB"),
        ("json", long(b'[{"text": "', CAT), "stdin: an item is longer than 64 MiB"),
        ("text", long(b"", b"x"), "stdin: longer than 64 MiB"),
        # Ten million columns, cells and values; a record with endless quotes.
        ("csv", long(b"text", b",abc", 40 * MIB, b"\none\n"), "stdin:1: more than 1,000,000 cells"),
        ("csv", long(b"text,n\n1", b",abc", 40 * MIB), "stdin:2: more than 1,000,000 cells"),
        ("csv", long(b'text,n\n"', b'b","c\n', 60 * MIB), "stdin:2: more than 1,000,000 cells"),
        (
            "jsonl",
            long(b'{"text": [', b"[],[]," * 4, 60 * MIB, b"0]}"),
            "stdin:1: more than 1,000,0",
        ),
        (
            "json",
            long(b'[{"text": [', b'{"":1}, ', 60 * MIB, b"0]}]"),
            "stdin: an item has more th",
        ),
        # Nested 100,000 deep.
        ("jsonl", [b'{"text": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"], "stdin:1: its lists"),
        (
            "jsonl",
            [b'{"text": ' + b'{"a":' * 100_000 + b"1" + b"}" * 100_001],
            "stdin:1: its lists",
        ),
        ("json", [b"[" * 100_000 + b"]" * 100_000], "stdin, item 1: its lists and objects are nes"),
        ("json", [b"[" * 60 * MIB], "stdin, item 1: its lists and objects are nested too deeply"),
    ],
)
def test_a_corpus(tmp_path, format_name, blocks, message):
    options = ["--encoder", "hashing", "--input-format", format_name]
    status, reported, peak = measured("index", "-", *options, cwd=tmp_path, blocks=blocks)
    assert status == 1
    assert reported.startswith(("Error: ", "stdin: text from"))
    assert [line.partition(message)[0] for line in reported.splitlines() if "Error" in line] == [
        "Error: "
    ]
    assert "Traceback" not in reported
    assert peak < (PEAK_MIB_OF_WIDE_CHARACTERS if CAT in b"".join(blocks[1:2]) else PEAK_MIB)
    assert list(tmp_path.iterdir()) == []


def test_a_deeply_nested_cell_stays_text(tmp_path):
    nested = "[" * 100_000 + "]" * 100_000
    blocks = [f"text,n\none,{nested}\n".encode()]
    status, reported, peak = measured(
        "index", "-", "--encoder", "hashing", cwd=tmp_path, blocks=blocks
    )
    assert status == 0, reported
    assert peak < PEAK_MIB


@pytest.mark.parametrize("block", [b"x", b"x ", b"\0", CAT])
def test_a_file_of_queries(tmp_path, block):
    with Index.create(tmp_path / "indexes" / "one", ["hashing"]) as index:
        index.add([Document("1", "One.")])
    status, reported, peak = measured(
        *("query", "--mode", "hybrid", "--queries", "-"), cwd=tmp_path, blocks=long(b"one\n", block)
    )
    assert (status, reported) == (
        1,
        "Error: stdin:2: the line is longer than 1 MiB [corpus-too-large]\n",
    )
    assert peak < PEAK_MIB


READ = """
import json, sys
from pathlib import Path
from semsearch.datasets import load_labelled_pairs, load_retrieval_set, load_sts_set
from semsearch.errors import DatasetError
from semsearch.evaluation.trec import read_run

def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) // 1024

readers = {
    "sts": load_sts_set,
    "pairs": load_labelled_pairs,
    "ir": load_retrieval_set,
    "run": lambda name: read_run(Path(name)),
}
before = peak()
try:
    readers[sys.argv[1]](sys.argv[2])
    reported = None
except DatasetError as error:
    reported = str(error)
print(json.dumps([reported, peak() - before]))
"""


def packed(blocks: Iterable[bytes]) -> bytes:
    """The blocks, gzipped; a repeated block is compressed once."""
    members = {block: gzip.compress(block) for block in set(blocks)}
    return b"".join(members[block] for block in blocks)


def beir(**files: bytes) -> bytes:
    """A zip archive in BEIR's layout, with these contents in place of small ones."""
    members = {
        "corpus.jsonl": b'{"_id": "d", "text": "tea"}\n',
        "queries.jsonl": b'{"_id": "q", "text": "tea"}\n',
        "qrels/test.tsv": b"q\td\t1\n",
    }
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as written:
        for name, content in members.items():
            key = name.split(".")[0].split("/")[0]
            written.writestr(name, files.get(key, content))
    return archive.getvalue()


LINE = "the line is longer than 64 MiB"
CELLS = "more than 1,000,000 cells"
NESTED = b'{"_id": "d", "text": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n"
MANY = b'{"_id": "d", "text": [' + b"[]," * (20 * MIB) + b"[]]}\n"


@pytest.mark.parametrize(
    ("reader", "name", "blocks", "message"),
    [
        ("sts", "a.csv.gz", long(b"sentence1,sentence2,score\na,b,1\n", b"x"), f":3: {LINE}"),
        ("sts", "a.csv.gz", long(b"", b"\0"), f":1: {LINE}"),
        ("sts", "a.csv.gz", long(b"s1,s2,score\na,b,", b",", 60 * MIB), f":2: {CELLS}"),
        ("sts", "a.tsv.gz", long(b"s1\ts2\tscore\na\tb\t", b"\t", 60 * MIB), f":2: {CELLS}"),
        ("pairs", "a.csv.gz", long(b's1,s2,label\na,b,"', b'b","c\n', 60 * MIB), f":2: {CELLS}"),
        ("ir", "a.csv.gz", long(b"query,passage,relevance\na,", CAT), f":2: {LINE}"),
        ("run", "a.run.gz", long(b"q Q0 d ", b"1"), f":1: {LINE}"),
        ("run", "a.run.gz", long(b"q Q0 d ", b"1 ", 60 * MIB), f":1: {CELLS}"),
        ("ir", "x/corpus.jsonl.gz", long(b'{"_id": "', b"x"), f":1: {LINE}"),
        ("ir", "x/corpus.jsonl.gz", [MANY], ":1: more than 1,000,000 values"),
        ("ir", "x/corpus.jsonl.gz", [NESTED], ":1: not JSON: maximum recursion depth"),
        ("ir", "x/x.all", long(b".I 1\n.W\n", b"x", 65 * MIB), f":3: {LINE}"),
        ("ir", "x/x.all", long(b".I 1\n.W\n", b"x ", 60 * MIB), None),
        ("ir", "x/x.rel", long(b"1 ", b"1 ", 60 * MIB), f":1: {CELLS}"),
        ("ir", "x/LISA0.001", long(b"", b"Document", 65 * MIB), f":1: {LINE}"),
        ("ir", "x/LISARJ.NUM", long(b"1 2 ", b"1 ", 60 * MIB), f":1: {CELLS}"),
        ("sts", "x/STS.input.a.txt", long(b"a\t", b"b\t", 60 * MIB), f":1: {CELLS}"),
    ],
)
def test_a_data_set(tmp_path, reader, name, blocks, message):
    """If the reader takes a folder, its other files are small."""
    small = {
        "corpus": {"queries.jsonl": '{"_id": "q", "text": "x"}', "qrels/test.tsv": "q\td\t1\n"},
        "x": {"x.all": ".I 1\n.W\nx\n", "x.qry": ".I 1\n.W\nx\n", "x.rel": "1 1 1\n"},
        "LISA0": {"LISA.QUE": "1\nx #\n", "LISARJ.NUM": "1 1 1\n"},
        "LISARJ": {"LISA0.001": "Document 1\nx\n", "LISA.QUE": "1\nx #\n"},
        "STS": {"STS.gs.a.txt": "1\n"},
    }
    file = tmp_path / name
    for other, content in small.get(file.name.split(".")[0], {}).items():
        (file.parent / other).parent.mkdir(parents=True, exist_ok=True)
        (file.parent / other).write_text(content, "utf-8")
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(packed(blocks) if file.suffix == ".gz" else b"".join(blocks))
    path = file if file.parent == tmp_path else file.parent
    done = subprocess.run(
        [sys.executable, "-c", READ, reader, path], capture_output=True, text=True, check=True
    )
    reported, peak = json.loads(done.stdout)
    assert message is None or f"{file}{message}" in (reported or ""), reported
    assert peak < PEAK_MIB


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"corpus": b'{"_id": "d", "text": "' + b"x" * (65 * MIB)}, f"corpus.jsonl:1: {LINE}"),
        ({"queries": NESTED}, "queries.jsonl:1: not JSON: maximum recursion depth"),
        ({"qrels": b"q\td" + b"\t1" * (30 * MIB)}, f"qrels/test.tsv:1: {CELLS}"),
    ],
)
def test_an_archive(tmp_path, files, message):
    file = tmp_path / "a.zip"
    file.write_bytes(beir(**files))
    done = subprocess.run(
        [sys.executable, "-c", READ, "ir", file], capture_output=True, text=True, check=True
    )
    reported, peak = json.loads(done.stdout)
    assert f"{file}/{message}" in reported
    assert peak < PEAK_MIB


GROWTH = """
import sys
from itertools import islice
from semsearch.corpus import Corpus

def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))

documents = iter(Corpus("-", format=sys.argv[1]))
assert sum(1 for _ in islice(documents, 20_000)) == 20_000
before = peak()
count = 20_000 + sum(1 for _ in documents)
print(count, peak() - before)
"""


@pytest.mark.parametrize(
    ("format_name", "row"),
    [("csv", b"one,2\n"), ("jsonl", b'{"text":"one","n":2}\n'), ("json", b"")],
)
def test_memory_does_not_grow_with_the_rows(format_name, row):
    """The memory of the first 20,000 is enough for the next 200,000, and so for millions."""
    content = b"text,n\n" * (format_name == "csv") + row * 220_000
    if format_name == "json":
        content = b"[" + b'{"text":"one","n":2},' * 219_999 + b'{"text":"one","n":2}]'
    command = [sys.executable, "-c", GROWTH, format_name]
    done = subprocess.run(command, input=content, capture_output=True, check=True)
    count, growth = map(int, done.stdout.split())
    assert count == 220_000
    assert growth < 2 * 1024  # KiB; a hundredth of the rows' objects
