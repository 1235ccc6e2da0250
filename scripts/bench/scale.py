"""How indexing and searching scale: the same measures at several sizes, in one run.

The passages are the WordNet definitions, encoded once. More vectors are generated: a definition and
one of its ten nearest neighbours are drawn (seeds 0 and 1), and the new vector lies between them, a
quarter to three quarters of the way, plus noise of an eighth of its length. Queries are sentences
of the STS Benchmark, drawn at random: its first ones are easier.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import faiss
import numpy
from numpy.typing import NDArray

from scripts.shared.corpora import sts_sentences, wordnet_definitions
from scripts.shared.frame import Table, data_folder, in_turn, messages, new_parser, plot, report
from semsearch import Document, Index, load_encoder
from semsearch.protocols import Matrix, TokenSpans

SIZES = (1_000, 10_000, 100_000, 1_000_000)
QUERIES = 1000
#: Queries whose recall is measured.
MEASURED = 500
#: Filters, by the share of documents that match them.
FILTERS = {"50 %": "half = 1", "5 %": "twentieth = 1", "0.5 %": "rare = 1", "0.01 %": "few = 1"}
ONE_IN = {"half": 2, "twentieth": 20, "rare": 200, "few": 10_000}
#: Newer passages than the snapshot, as a share of it; with a tenth, an index is rebuilt.
NEWER = 0.095
WORDS = ["small dog", "the act of moving", "king of france", "of the and a"]


class Given:
    """An encoder with precomputed vectors: a text begins with the number of its row."""

    spec = fingerprint = "given"
    max_document_tokens = 256

    def __init__(self, file: Path) -> None:
        self._file = file
        self.dimension = numpy.load(file, mmap_mode="r").shape[1]

    def description(self) -> Mapping[str, Any]:
        """An empty description."""
        return {}

    def token_spans(self, text: str) -> TokenSpans:
        """The spans of words."""
        return numpy.array([found.span() for found in re.finditer(r"\S+", text)]).reshape(-1, 2)

    def encode_documents(self, texts: Sequence[str]) -> Matrix:
        """The rows that the texts name."""
        numbers = [int(text.split(" ", 1)[0]) for text in texts]
        # Mapped only briefly, so that it is not counted as memory of the index.
        return numpy.array(numpy.load(self._file, mmap_mode="r")[numbers])

    encode_queries = encode_documents


def encode(folder: Path, data: Path) -> None:
    """Write the vectors of the definitions and of the queries, unless they exist."""
    if (folder / "definitions.npy").exists():
        return
    encoder = load_encoder("minilm", precision="fp32")
    queries = random.Random(0).sample(list(sts_sentences(data)), QUERIES)
    numpy.save(folder / "queries.npy", encoder.encode_queries(queries))
    numpy.save(folder / "definitions.npy", encoder.encode_documents(wordnet_definitions(data)))


def origins_of(count: int, data: Path) -> NDArray[numpy.int64]:
    """The definition from which each of `count` vectors is made."""
    known = len(wordnet_definitions(data))
    more = numpy.random.default_rng(0).integers(0, known, max(0, count - known))
    return numpy.concatenate([numpy.arange(min(count, known)), more])


def make(folder: Path, count: int, data: Path) -> dict[str, float]:
    """Write `count` vectors, the definitions first."""
    if vectors_of(folder, count).exists():
        return {}
    known = numpy.load(folder / "definitions.npy")
    vectors = numpy.empty((count, known.shape[1]), numpy.float32)
    vectors[: len(known)] = known[:count]
    if count > len(known):
        graph = faiss.index_factory(known.shape[1], "HNSW32", faiss.METRIC_INNER_PRODUCT)
        graph.add(known)
        neighbours = graph.search(known, 11)[1][:, 1:]
        origins, random = origins_of(count, data), numpy.random.default_rng(1)
        for start in range(len(known), count, 100_000):
            some = origins[start : start + 100_000]
            others = neighbours[some, random.integers(0, 10, len(some))]
            part = random.uniform(0.25, 0.75, (len(some), 1))
            rows = (1 - part) * known[some] + part * known[others]
            noise = _unit(random.standard_normal(rows.shape)) / 8
            vectors[start : start + len(some)] = _unit(_unit(rows) + noise)
    numpy.save(vectors_of(folder, count), vectors)
    return {}


def vectors_of(folder: Path, count: int) -> Path:
    """The file of the vectors."""
    return folder / f"made-{count}.npy"


def _unit(rows: NDArray[Any]) -> NDArray[Any]:
    found: NDArray[Any] = rows / numpy.linalg.norm(rows, axis=1, keepdims=True)
    return found


def documents(count: int, data: Path) -> Iterator[Document]:
    """One document per vector."""
    texts, fields = wordnet_definitions(data), values_of(count)
    for number, origin in enumerate(origins_of(count, data).tolist()):
        metadata = {name: int(values[number]) for name, values in fields.items()}
        yield Document(str(number), f"{number} {texts[origin]}", metadata=metadata)


def values_of(count: int) -> dict[str, NDArray[numpy.int64]]:
    """The values of the fields that filters test: 1 where they match."""
    random = numpy.random.default_rng(2)
    return {name: random.permutation(count) % one_in for name, one_in in ONE_IN.items()}


def load(folder: Path, count: int, data: Path, index_type: str) -> dict[str, float]:
    """Index `count` passages; return the seconds, and the peak memory of this process.

    The fields of the filters are indexed afterwards.
    """
    started = time.perf_counter()
    given = Given(vectors_of(folder, count))
    with Index.create(folder / f"index-{count}", [given]) as index, index.writer() as new:
        new.set_index_type(index_type)
        new.upsert(documents(count, data))
        seconds = time.perf_counter() - started
        peak = peak_mebibytes()
        started = time.perf_counter()
        for name in ONE_IN:
            new.index_field(name)
        fields = time.perf_counter() - started
    return {"load s": seconds, "fields s": fields, "load MiB": peak}


#: A program that answers one query and prints its memory: its own, and with mapped files.
ONE_QUERY = """
import re, sys
from semsearch import Index
with Index.open(sys.argv[1]) as index:
    vector = [1.0] * index.space().dimension
    assert index.search(vector)
status = open("/proc/self/status").read()
print(*(re.search(name + r":\\s+(\\d+)", status)[1] for name in ("RssAnon", "VmHWM")))
"""
PROCESSES = 7


def cold(folder: Path, count: int, data: Path) -> dict[str, float]:
    """Time whole processes that answer one query; the first reads the vectors to verify them."""
    del data
    time.sleep(4)  # hashes of files that were just written are not cached
    seconds = []
    for _ in range(1 + PROCESSES):
        started = time.perf_counter()
        command = [sys.executable, "-c", ONE_QUERY, str(folder / f"index-{count}")]
        printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        seconds.append(time.perf_counter() - started)
    own, peak = map(int, printed.split())
    return {
        "first process ms": seconds[0] * 1000,
        "process ms": float(numpy.median(seconds[1:])) * 1000,
        "own MiB": own / 1024,
        "mapped, too MiB": peak / 1024,
    }


def peak_mebibytes() -> float:
    """The peak memory of this process alone; getrusage starts from that of its parent."""
    status = Path("/proc/self/status").read_text("ascii")
    return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 1024  # type: ignore[index]


def add(folder: Path, count: int, data: Path) -> dict[str, float]:
    """Milliseconds to add 100 documents: the median of five runs."""
    del data
    given = Given(vectors_of(folder, count))
    seconds = []
    for _ in range(5):
        moment = time.time_ns()
        new = [Document(f"new {moment} {n}", f"{n} a new one {moment}") for n in range(100)]
        started = time.perf_counter()
        with Index.open(folder / f"index-{count}", [given]) as index:
            index.add(new)
        seconds.append(time.perf_counter() - started)
    return {"add 100 ms": float(numpy.median(seconds)) * 1000}


def exact_index(folder: Path, count: int) -> Any:
    """A flat index of all vectors."""
    vectors = numpy.load(vectors_of(folder, count))
    exact = faiss.IndexFlatIP(vectors.shape[1])
    exact.add(vectors)
    return exact


def searched(folder: Path, count: int, data: Path) -> dict[str, float]:
    """Warm queries in one process: by vector, with filters, by words."""
    del data
    queries = numpy.load(folder / "queries.npy")
    exact = exact_index(folder, count)

    def recall(where: str | None, allowed: faiss.SearchParameters | None) -> float:
        """The share of the ten nearest that are found, or equally near ones."""
        answers = index.search_many(list(queries[:MEASURED]), k=10, where=where)
        best, numbers = exact.search(queries[:MEASURED], 10, params=allowed)
        reached = [
            [hit.score >= scores[rows >= 0].min() - 1e-5 for hit in hits]
            for scores, rows, hits in zip(best, numbers, answers, strict=True)
            if rows.max() >= 0
        ]
        return float(numpy.concatenate(reached).mean()) if reached else 1.0

    with Index.open(folder / f"index-{count}", [Given(vectors_of(folder, count))]) as index:
        (snapshot,) = index.info().snapshots.values()
        found: dict[str, float] = {"told recall": snapshot.recall, "recall": recall(None, None)}
        found |= timed("", lambda row: index.search(queries[row]), 300)
        found |= _many(index, folder / f"index-{count}" / snapshot.file, queries)
        for share, where in FILTERS.items():
            matching = numpy.flatnonzero(values_of(count)[where.split()[0]] == 1)
            allowed = faiss.SearchParameters(sel=faiss.IDSelectorBatch(matching))
            found[f"recall {share}"] = recall(where, allowed)
            search = lambda row, where=where: index.search(queries[row], where=where)  # noqa: E731
            found |= timed(f" {share}", search, 100)
        found |= timed(" bm25", lambda row: index.search(WORDS[row % 4], mode="bm25"), 40)
    return found


def _many(index: Index, file: Path, queries: Matrix) -> dict[str, float]:
    """Queries per second, ours and FAISS's alone on the same file with the same parameters.

    FAISS returns numbers of vectors, ours passages with their texts and fields.
    """
    bare = faiss.read_index(str(file), faiss.IO_FLAG_MMAP_IFC)
    bare.search(queries[:10], 10)
    index.search_many(list(queries), k=10)
    searches: dict[str, Callable[[], object]] = {
        "FAISS q/s": lambda: bare.search(queries, 10),
        "many q/s": lambda: index.search_many(list(queries), k=10),
    }

    def rate(name: str) -> float:
        started = time.perf_counter()
        searches[name]()
        return len(queries) / (time.perf_counter() - started)

    rates = {
        name: float(numpy.median(found))
        for name, found in in_turn("many", list(searches), 3, rate).items()
    }
    return rates | {"of FAISS": rates["many q/s"] / rates["FAISS q/s"]}


def timed(name: str, search: Any, times: int) -> dict[str, float]:
    """Milliseconds of single queries: the median and the 95th percentile."""
    search(0)
    seconds = []
    for row in range(times):
        started = time.perf_counter()
        search(row)
        seconds.append(time.perf_counter() - started)
    p50, p95 = numpy.percentile(seconds, [50, 95]) * 1000
    return {f"p50{name} ms": float(p50), f"p95{name} ms": float(p95)}


def words(folder: Path, count: int, data: Path) -> dict[str, float]:
    """The same BM25 queries, with English stemming and without stop words."""
    del data
    with Index.open(folder / f"index-{count}") as index:
        with index.writer() as writer:
            writer.set_stemmer("english")
        search = lambda row: index.search(WORDS[row % 4], mode="bm25")  # noqa: E731
        return timed(" bm25 english", search, 40)


def recent(folder: Path, count: int, data: Path) -> dict[str, float]:
    """Warm queries with nearly as many newer passages as an index has before it is rebuilt."""
    del data
    queries = numpy.load(folder / "queries.npy")
    with Index.open(folder / f"index-{count}", [Given(vectors_of(folder, count))]) as index:
        info = index.info()
        (snapshot,) = info.snapshots.values()
        newer = info.passages - snapshot.vectors
        more = int(NEWER * snapshot.vectors) - newer
        index.add([Document(f"newer {n}", f"{n} a newer one {n}") for n in range(more)])
        found = timed(" recent", lambda row: index.search(queries[row]), 300)
    return found | {"recent": float(newer + max(0, more))}


STEPS = {step.__name__: step for step in (make, load, cold, searched, add, words, recent)}


def main() -> None:
    """Run each step at each size in a process of its own, then print one table."""
    arguments = parsed()
    if arguments.step:
        (size,) = arguments.sizes
        options = {"index_type": arguments.index_type} if arguments.step == "load" else {}
        step = STEPS[arguments.step]
        print(json.dumps(step(arguments.folder, size, data_folder(), **options)))
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        encode(folder, data_folder())
        columns = {size: measured(folder, size, arguments) for size in arguments.sizes}
    names = dict.fromkeys(name for figures in columns.values() for name in figures)
    rows = [
        {"": name, **{f"{size:,}": figures.get(name) for size, figures in columns.items()}}
        for name in names
    ]
    report(arguments, [Table("by the number of passages", rows)])
    if arguments.plot:
        plot(columns, PANELS, "passages", arguments.plot)


def parsed() -> argparse.Namespace:
    """The parsed options."""
    parser = new_parser("scripts/bench/scale", __doc__)
    add = parser.add_argument
    add("--sizes", type=int, nargs="+", default=SIZES)
    add("--index-type", default="auto")
    add("--plot", type=Path, metavar="FILE", help="draw curves into this file (.png or .svg)")
    add("--folder", type=Path, help="keeps vectors and indexes for the next run")
    add("--step", choices=STEPS, help=argparse.SUPPRESS)
    return parser.parse_args()


def measured(folder: Path, size: int, arguments: argparse.Namespace) -> dict[str, float]:
    """The figures of all steps at one size; a step that fails has none."""
    found: dict[str, float] = {}
    for step in STEPS:
        if step == "load" and (folder / f"index-{size}").exists():
            continue
        command = [sys.executable, "-m", "scripts.bench.scale", "--step", step]
        command += ["--sizes", str(size), "--folder", str(folder)]
        command += ["--index-type", arguments.index_type]
        messages.print(f"{size:,}: {step}")
        done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True)
        if done.returncode:
            messages.print(f"failed (exit status {done.returncode})")
            continue
        found |= json.loads(done.stdout.splitlines()[-1])
        if step == "load":
            with Index.open(folder / f"index-{size}") as index:
                info = index.info()
            (snapshot,) = info.snapshots.values()
            files = {"SQLite MB": "index.sqlite", "vectors MB": snapshot.file}
            found |= {name: info.files[file] / 1e6 for name, file in files.items()}
    return found


PANELS = {
    "seconds to load, without encoding": {"load s": "semsearch"},
    "milliseconds of one query (median)": {
        "p50 ms": "semantic",
        **{f"p50 {share} ms": f"filter that {share} meet" for share in FILTERS},
        "p50 bm25 ms": "BM25",
        "p50 bm25 english ms": "BM25, English stop words",
    },
    "memory and files, MB": {
        "load MiB": "peak of loading",
        "own MiB": "of a query, its own",
        "SQLite MB": "SQLite",
        "vectors MB": "vectors",
    },
}


if __name__ == "__main__":
    main()
