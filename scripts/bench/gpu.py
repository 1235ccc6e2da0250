"""Encoding on a GPU: documents of five WordNet definitions each (62 tokens), and a query.

Prints medians of three runs with different documents, with the models loaded. New documents give
batches of new shapes, as in an index, for which kernels may have to be compiled.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from sentence_transformers import SentenceTransformer

from scripts.reproduce.page import table
from scripts.shared.corpora import wordnet_definitions
from semsearch import load_encoder
from semsearch.encoders.model_folder import find_model

REPEATS = 3
QUERIES = [f"{number} small animals kept at home" for number in range(50)]


def seconds(work: Callable[[list[str]], object], parts: list[list[str]]) -> float:
    """The median duration of some work on each part but the first."""
    times = []
    for part in parts:
        started = time.perf_counter()
        work(part)
        times.append(time.perf_counter() - started)
    return median(times[1:])


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench/gpu", description=__doc__)
    parser.add_argument("--texts", type=int, default=20_000, metavar="N", help="documents (20,000)")
    parser.add_argument("--device", default="cuda", help="a torch device (cuda)")
    given = parser.parse_args()
    found = wordnet_definitions(Path(os.environ["SEMSEARCH_DATA"]))[: 5 * given.texts]
    texts = [" ".join(found[start : start + 5]) for start in range(0, len(found), 5)]
    size = len(texts) // (REPEATS + 1)
    parts = [texts[start : start + size] for start in range(0, len(texts) - size + 1, size)]
    ours = load_encoder("minilm", given.device, "auto")
    theirs = SentenceTransformer(str(find_model("minilm").path), device=given.device)

    def plain(batch_size: int) -> Callable[[list[str]], object]:
        return lambda part: theirs.encode(part, batch_size=batch_size, show_progress_bar=False)

    times = {f"semsearch, {ours.precision}": seconds(ours.encode_documents, parts)}
    times["sentence-transformers, fp32, batches of 32"] = seconds(plain(32), parts)
    theirs.half()
    times["sentence-transformers, fp16, batches of 1,024"] = seconds(plain(1024), parts)
    rows = [[name, f"{size / spent:,.0f}"] for name, spent in times.items()]
    print(table([f"on {given.device}", "texts/s"], rows), end="\n\n")
    on_cpu = load_encoder("minilm", runtime="openvino")
    encoders = {given.device: ours, "CPU": on_cpu}
    rows = [
        [name, f"{seconds(encoder.encode_queries, [[query] for query in QUERIES]) * 1000:.1f}"]
        for name, encoder in encoders.items()
    ]
    print(table(["one query on", "ms"], rows))


if __name__ == "__main__":
    main()
