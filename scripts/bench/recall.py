"""Recall@10 as tuned and shown, and with real queries of five kinds, on three corpora.

The corpora are the WordNet definitions, sentences about films, and both together. The queries are
defined words, film titles, questions (Quora), sentences (STS) and claims (SciFact), up to 1,000 of
each. The claims are held out: nothing was chosen by them.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

import numpy

from scripts.reproduce.page import table
from scripts.shared.corpora import distinct, film_titles, sts_sentences, wordnet_definitions
from semsearch import load_encoder
from semsearch.datasets import read_scifact
from semsearch.protocols import Encoder, Matrix
from semsearch.vector_indexes import IndexType, chosen_kind, index_class
from semsearch.vector_indexes.flat import VectorIndex
from semsearch.vector_indexes.refined import NEIGHBOURS, ROUNDING

QUERIES = 1000
SHORTEST = 30  #: characters; shorter sentences about films are dropped
REPEATS = 5


def queries_of(data: Path) -> dict[str, list[str]]:
    """Queries by kind, drawn with seed 0."""
    lines = (data / "corpora" / "wordnet_definitions.jsonl").read_text("utf-8").splitlines()
    pairs = (data / "pairs" / "quora_dev.tsv").read_text("utf-8").splitlines()
    texts: dict[str, Iterable[str]] = {
        "words": (json.loads(line)["lemma"] for line in lines),
        "titles": film_titles(data, 2 * QUERIES).queries.values(),
        "questions": (line.split("\t")[0] for line in pairs),
        "sentences": sts_sentences(data),
        "claims": read_scifact("train").queries.values(),
    }
    found = {name: list(distinct(some)) for name, some in texts.items()}
    return {
        name: random.Random(0).sample(some, min(QUERIES, len(some))) for name, some in found.items()
    }


def film_sentences(data: Path) -> list[str]:
    """The sentences of film descriptions."""
    films = film_titles(data).documents.values()
    cut = (part for text in films for part in re.split(r"(?<=[.!?])\s+", text))
    return list(distinct(part for part in cut if len(part) > SHORTEST))


def vectors(folder: Path, name: str, texts: list[str], encoder: Encoder) -> Matrix:
    """The vectors of texts, cached in a folder."""
    file = folder / f"{name}.npy"
    if not file.exists():
        numpy.save(file, encoder.encode_documents(texts))
    found: Matrix = numpy.load(file)
    return found


def real_recall(index: VectorIndex, queries: Matrix, least: Matrix) -> float:
    """The share of the ten nearest that a search finds."""
    scores, _ = index.search(queries, NEIGHBOURS)
    return float((scores >= least[:, -1:] - ROUNDING).mean())


def microseconds(index: VectorIndex, queries: Matrix) -> float:
    """The median microseconds of a query in a batch."""
    seconds = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        index.search(queries, NEIGHBOURS)
        seconds.append(time.perf_counter() - started)
    return 1e6 * float(numpy.median(seconds)) / len(queries)


def main() -> None:
    """Build each type over each corpus, and search it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    add = parser.add_argument
    add("--types", nargs="+", default=["auto", "ivf", "hnsw"], help="as for semsearch --index-type")
    add("--encoder", default="minilm", help="as for semsearch --encoder (minilm)")
    add("--folder", type=Path, help="keeps the vectors of an encoder for the next run")
    arguments = parser.parse_args()
    data = Path(os.environ["SEMSEARCH_DATA"])
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        encoder = load_encoder(arguments.encoder, precision="fp32")
        queries = {
            name: vectors(folder, name, texts, encoder) for name, texts in queries_of(data).items()
        }
        corpora = {
            "definitions": vectors(folder, "definitions", wordnet_definitions(data), encoder),
            "films": vectors(folder, "films", film_sentences(data), encoder),
        }
    corpora["both"] = numpy.concatenate(list(corpora.values()))
    rows = [
        [f"{name}, {len(matrix):,}", *row]
        for name, matrix in corpora.items()
        for row in measured(matrix, arguments.types, queries)
    ]
    heads = ["corpus", "index", "search", "shown", *queries, "µs a query"]
    print(table(heads, rows))


def measured(matrix: Matrix, types: list[str], queries: dict[str, Matrix]) -> list[list[str]]:
    """One table row per type."""
    ids = numpy.arange(len(matrix))
    best: dict[str, Matrix] = {}
    rows = []
    for wanted in types:
        kind = chosen_kind(IndexType(wanted), *matrix.shape)
        index = index_class(kind).build(  # type: ignore[union-attr]
            kind, matrix.shape[1], len(matrix), lambda: [(ids, matrix)], IndexType().recall
        )
        best = best or {
            name: index.exact_search(some, NEIGHBOURS)[0] for name, some in queries.items()
        }
        real = [real_recall(index, some, best[name]) for name, some in queries.items()]
        figures = [f"{value:.4f}" for value in (index.measured_recall(), *real)]
        speed = f"{microseconds(index, queries['sentences']):.0f}"
        rows.append([kind, index.plan, *figures, speed])
    return rows


if __name__ == "__main__":
    main()
