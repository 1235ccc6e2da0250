"""Encoding on a GPU: documents of five WordNet definitions each (62 tokens), and a query.

Prints medians of three runs, with the models loaded.
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
QUERY = "a small animal kept at home"


def seconds(work: Callable[[], object]) -> float:
    """The median duration of some work, after a first run."""
    work()
    times = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return median(times)


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench/gpu", description=__doc__)
    parser.add_argument("--texts", type=int, default=20_000, metavar="N", help="documents (20,000)")
    parser.add_argument("--device", default="cuda", help="a torch device (cuda)")
    given = parser.parse_args()
    found = list(wordnet_definitions(Path(os.environ["SEMSEARCH_DATA"])))
    texts = [" ".join(found[start : start + 5]) for start in range(0, 5 * given.texts, 5)]
    ours = load_encoder("minilm", given.device, "auto")
    theirs = SentenceTransformer(str(find_model("minilm").path), device=given.device)

    def plain(batch_size: int) -> Callable[[], object]:
        return lambda: theirs.encode(texts, batch_size=batch_size, show_progress_bar=False)

    times = {f"semsearch, {ours.precision}": seconds(lambda: ours.encode_documents(texts))}
    times["sentence-transformers, fp32, batches of 32"] = seconds(plain(32))
    theirs.half()
    times["sentence-transformers, fp16, batches of 1,024"] = seconds(plain(1024))
    rows = [[name, f"{len(texts) / spent:,.0f}"] for name, spent in times.items()]
    print(table([f"on {given.device}", "texts/s"], rows), end="\n\n")
    on_cpu = load_encoder("minilm", runtime="openvino")
    encoders = {given.device: ours, "CPU": on_cpu}
    rows = [
        [name, f"{seconds(lambda encoder=encoder: encoder.encode_queries([QUERY])) * 1000:.1f}"]
        for name, encoder in encoders.items()
    ]
    print(table(["one query on", "ms"], rows))


if __name__ == "__main__":
    main()
