"""How indexing and searching grow: the same measures at several sizes, in one run.

The passages are the WordNet definitions, encoded once; more of them are made so: a definition and
one of its ten nearest neighbours are drawn (seed 0), the new vector lies between the two, a
quarter to three quarters of the way, and an eighth of its length in a random direction. Queries
are sentences of the STS Benchmark.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import faiss
import numpy
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from scripts.bench.systems import messages
from scripts.shared.corpora import distinct, sts_sentences
from semsearch import Document, Index, load_encoder
from semsearch.protocols import Matrix, TokenSpans

SIZES = (10_000, 100_000, 1_000_000)
QUERIES = 1000
#: Fields that these shares of the documents meet.
FILTERS = {"50 %": "half = 1", "5 %": "twentieth = 1", "0.5 %": "rare = 1", "0.01 %": "few = 1"}
ONE_IN = {"half": 2, "twentieth": 20, "rare": 200, "few": 10_000}
WORDS = ["small dog", "the act of moving", "king of france", "of the and a"]


class Given:
    """An encoder whose vectors are there: a text begins with the number of its row."""

    spec = fingerprint = "given"
    max_document_tokens = 256
    max_query_tokens = None

    def __init__(self, vectors: Matrix, file: Path | None = None) -> None:
        self._vectors = vectors
        self._file = file
        self.dimension = vectors.shape[1]

    def description(self) -> Mapping[str, Any]:
        """Nothing."""
        return {}

    def token_spans(self, text: str) -> TokenSpans:
        """Words."""
        return numpy.array([found.span() for found in re.finditer(r"\S+", text)]).reshape(-1, 2)

    def encode_documents(self, texts: Sequence[str]) -> Matrix:
        """The rows that the texts name."""
        numbers = [int(text.split(" ", 1)[0]) for text in texts]
        if self._file is None:
            found: Matrix = self._vectors[numbers]
            return found
        # Mapped for a moment, so that it is not counted as memory of the index.
        return numpy.array(numpy.load(self._file, mmap_mode="r")[numbers])

    encode_queries = encode_documents


def encoded(folder: Path, data: Path) -> tuple[list[str], Matrix, Matrix]:
    """Definitions, their vectors, and those of the queries; computed once."""
    file = folder / "definitions.npz"
    lines = (data / "corpora" / "wordnet_definitions.jsonl").read_text("utf-8").splitlines()
    texts = [json.loads(line)["text"] for line in lines]
    if not file.exists():
        encoder = load_encoder("minilm", precision="fp32")
        queries = list(islice(distinct(sts_sentences(data)), QUERIES))
        numpy.savez(
            file,
            definitions=encoder.encode_documents(texts),
            queries=encoder.encode_queries(queries),
        )
    stored = numpy.load(file)
    return texts, stored["definitions"], stored["queries"]


def made(definitions: Matrix, count: int, folder: Path) -> tuple[Matrix, NDArray[numpy.int64]]:
    """`count` vectors, the definitions first, and of which definition each is made."""
    origins = numpy.arange(min(count, len(definitions)))
    if count <= len(definitions):
        return definitions[:count], origins
    file = folder / f"made-{count}.npy"
    random = numpy.random.default_rng(0)
    more = random.integers(0, len(definitions), count - len(definitions))
    origins = numpy.concatenate([origins, more])
    if not file.exists():
        graph = faiss.index_factory(definitions.shape[1], "HNSW32", faiss.METRIC_INNER_PRODUCT)
        graph.add(definitions)
        neighbours = graph.search(definitions, 11)[1][:, 1:]
        vectors = numpy.empty((count, definitions.shape[1]), numpy.float32)
        vectors[: len(definitions)] = definitions
        for start in range(0, len(more), 100_000):
            some = more[start : start + 100_000]
            others = neighbours[some, random.integers(0, 10, len(some))]
            part = random.uniform(0.25, 0.75, (len(some), 1))
            rows = (1 - part) * definitions[some] + part * definitions[others]
            noise = random.standard_normal(rows.shape)
            rows = _unit(rows) + _unit(noise) / 8
            place = len(definitions) + start
            vectors[place : place + len(some)] = _unit(rows)
        numpy.save(file, vectors)
    return numpy.load(file, mmap_mode="r"), origins


def _unit(rows: NDArray[Any]) -> NDArray[Any]:
    found: NDArray[Any] = rows / numpy.linalg.norm(rows, axis=1, keepdims=True)
    return found


def documents(texts: Sequence[str], origins: NDArray[numpy.int64]) -> Iterator[Document]:
    """One document a vector."""
    fields = values_of(len(origins))
    for number, origin in enumerate(origins.tolist()):
        metadata = {name: int(values[number]) for name, values in fields.items()}
        yield Document(str(number), f"{number} {texts[origin]}", metadata=metadata)


def values_of(count: int) -> dict[str, NDArray[numpy.int64]]:
    """The values of the fields that filters test, 1 where they are met."""
    random = numpy.random.default_rng(1)
    return {name: random.integers(0, one_in, count) for name, one_in in ONE_IN.items()}


def load(folder: Path, count: int, data: Path, index_type: str) -> dict[str, float]:
    """Index so many passages; seconds and memory of this process, with the vectors that it reads.

    The fields of the filters are indexed afterwards.
    """
    texts, definitions, _ = encoded(folder, data)
    vectors, origins = made(definitions, count, folder)
    before = _peak_kib()
    started = time.perf_counter()
    file = folder / f"made-{count}.npy"
    given = Given(vectors, file if file.exists() else None)
    with Index.create(folder / f"index-{count}", [given]) as index, index.writer() as new:
        new.set_index_type(index_type)
        new.upsert(documents(texts, origins))
        seconds = time.perf_counter() - started
        peak = _peak_kib()
        started = time.perf_counter()
        for name in ONE_IN:
            new.index_field(name)
        fields = time.perf_counter() - started
    return {
        "load s": seconds,
        "fields s": fields,
        "load MiB": peak / 1024,
        "load MiB before": before / 1024,
    }


#: A process that answers one query, and tells its memory: its own, and with what it has mapped.
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
    """Whole processes that answer one query: the first one reads the vectors to check them."""
    seconds = []
    for _ in range(1 + PROCESSES):
        started = time.perf_counter()
        command = [sys.executable, "-c", ONE_QUERY, str(folder / f"index-{count}")]
        told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        seconds.append(time.perf_counter() - started)
        time.sleep(4)  # a file that was just written is not remembered
    own, most = map(int, told.split())
    return {
        "first process ms": seconds[0] * 1000,
        "process ms": float(numpy.median(seconds[1:])) * 1000,
        "own MiB": own / 1024,
        "mapped, too MiB": most / 1024,
    }


def _peak_kib() -> int:
    """Of this process alone; what getrusage tells begins with the peak of the one before it."""
    status = Path("/proc/self/status").read_text("ascii")
    return int(re.search(r"VmHWM:\s+(\d+)", status)[1])  # type: ignore[index]


def add(folder: Path, count: int, data: Path) -> dict[str, float]:
    """Seconds that 100 documents more take."""
    _, definitions, _ = encoded(folder, data)
    new = [Document(f"new {n}", f"{n} a new one {time.time_ns()}") for n in range(100)]
    started = time.perf_counter()
    with Index.open(folder / f"index-{count}", [Given(definitions)]) as index:
        index.add(new)
    return {"add 100 ms": (time.perf_counter() - started) * 1000}


def searched(folder: Path, count: int, data: Path) -> dict[str, float]:
    """Warm queries of one process, by vector, with filters, by words."""
    _, definitions, queries = encoded(folder, data)
    vectors, _ = made(definitions, count, folder)
    exact = faiss.IndexFlatIP(vectors.shape[1])
    exact.add(numpy.ascontiguousarray(vectors))
    few = queries[:200]
    found: dict[str, float] = {}
    with Index.open(folder / f"index-{count}", [Given(definitions)]) as index:
        (snapshot,) = index.info().snapshots.values()
        found["told recall"] = snapshot.recall
        found |= _bare(folder / f"index-{count}" / snapshot.file, queries)
        best = exact.search(few, 10)[0]
        answers = index.search_many(list(few), k=10)
        scores = numpy.array([[hit.score for hit in hits] for hits in answers])
        found["recall"] = float((scores >= best[:, -1:] - 1e-5).mean())
        found |= _timed("", lambda row: index.search(queries[row]), 300)
        started = time.perf_counter()
        index.search_many(list(queries), k=10)
        found["many q/s"] = len(queries) / (time.perf_counter() - started)
        found["of FAISS"] = found["many q/s"] / found["FAISS q/s"]
        for share, where in FILTERS.items():
            found |= _timed(
                f" {share}", lambda row, where=where: index.search(queries[row], where=where), 100
            )
            field = where.split()[0]
            allowed = faiss.IDSelectorBatch(numpy.flatnonzero(values_of(count)[field] == 1))
            best = exact.search(few, 10, params=faiss.SearchParameters(sel=allowed))
            answers = index.search_many(list(few), k=10, where=where)
            reached = [
                score >= least - 1e-5
                for row, hits in zip(best[0], answers, strict=True)
                for least, score in [(row[row > -1][-1:], numpy.array([hit.score for hit in hits]))]
                if len(least)
            ]
            is_met = bool(reached)
            found[f"recall {share}"] = float(numpy.concatenate(reached).mean()) if is_met else 1.0
        found |= _timed(" bm25", lambda row: index.search(WORDS[row % 4], mode="bm25"), 40)
    return found


def _bare(file: Path, queries: Matrix) -> dict[str, float]:
    """Queries per second of FAISS alone, over the same file with the same parameters."""
    index = faiss.read_index(str(file), faiss.IO_FLAG_MMAP_IFC)
    index.search(queries[:10], 10)
    started = time.perf_counter()
    index.search(queries, 10)
    return {"FAISS q/s": len(queries) / (time.perf_counter() - started)}


def _timed(name: str, search: Any, times: int) -> dict[str, float]:
    search(0)
    seconds = []
    for row in range(times):
        started = time.perf_counter()
        search(row)
        seconds.append(time.perf_counter() - started)
    p50, p95 = numpy.percentile(seconds, [50, 95]) * 1000
    return {f"p50{name} ms": float(p50), f"p95{name} ms": float(p95)}


def words(folder: Path, count: int, data: Path) -> dict[str, float]:
    """The same queries by words, stemmed as English and without stop words."""
    with Index.open(folder / f"index-{count}") as index:
        started = time.perf_counter()
        with index.writer() as writer:
            writer.set_language("english")
        found = {"language s": time.perf_counter() - started}
        search = lambda row: index.search(WORDS[row % 4], mode="bm25")  # noqa: E731
        return found | _timed(" bm25 english", search, 40)


STEPS = {step.__name__: step for step in (load, cold, searched, add, words)}


def main() -> None:
    """Each step in a process of its own, at each size; then one table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--index-type", default="auto")
    parser.add_argument("--folder", type=Path, help="keeps vectors and indexes for the next run")
    parser.add_argument("--step", choices=STEPS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    data = Path(os.environ["SEMSEARCH_DATA"])
    if arguments.step:
        (size,) = arguments.sizes
        options = {"index_type": arguments.index_type} if arguments.step == "load" else {}
        print(json.dumps(STEPS[arguments.step](arguments.folder, size, data, **options)))
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        encoded(folder, data)
        columns = {size: _measured(folder, size, arguments.index_type) for size in arguments.sizes}
    table = Table("", *(f"{size:,}" for size in columns))
    for name in next(iter(columns.values())):
        table.add_row(name, *(f"{column[name]:,.4g}" for column in columns.values()))
    Console().print(table)


def _measured(folder: Path, size: int, index_type: str) -> dict[str, float]:
    found: dict[str, float] = {}
    for step in STEPS:
        if step == "load" and (folder / f"index-{size}").exists():
            continue
        command = [sys.executable, "-m", "scripts.bench.scale", "--step", step]
        command += ["--sizes", str(size), "--index-type", index_type, "--folder", str(folder)]
        messages.print(f"{size:,}: {step}")
        output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        found |= json.loads(output.splitlines()[-1])
        if step == "load":
            with Index.open(folder / f"index-{size}") as index:
                info = index.info()
            (snapshot,) = info.snapshots.values()
            found["SQLite MB"] = info.files["index.sqlite"] / 1e6
            found["vectors MB"] = info.files[snapshot.file] / 1e6
    return found


if __name__ == "__main__":
    main()
