"""Reproduces the figures of README.md and RESULTS.md.

    scripts/reproduce/headline [--sentences N] [--precision P] [--repeats N] [--json FILE]
    scripts/reproduce/tables [--part PART ...] [--results FILE]
    scripts/reproduce/training [--seeds N] [--part PART ...] [--work DIR] [--results FILE]

`headline` is that of Sentence-BERT (Reimers & Gurevych 2019, section 1): finding the most similar
pairs of 10,000 sentences took 65 hours with a cross-encoder on a V100 and 5 seconds with a
bi-encoder. Here the bi-encoder is `semsearch pairs`, a whole process from the shell; the
cross-encoder's time is extrapolated from a sample to all pairs. It has the same body with a
randomly initialised head: its scores are meaningless, but take as long.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path

from rich.console import Console
from rich.table import Table

from scripts.shared.corpora import Corpus, corpus_of, distinct, sts_sentences

ROOT = Path(__file__).resolve().parents[2]
GLOVE_FILE = "glove/glove.6B.50d.txt"
SAMPLE_PAIRS = 1000
MACHINE_SECONDS = 10.0


def main() -> int:
    arguments = parsed()
    data = Path(os.environ["SEMSEARCH_DATA"])
    if arguments.figure == "tables":
        from scripts.reproduce.tables import PARTS, write_tables

        glove = data / GLOVE_FILE
        parts = arguments.part or list(PARTS)
        write_tables(arguments.results, glove if glove.is_file() else None, parts)
        return 0
    if arguments.figure == "training":
        from scripts.reproduce.training import PARTS as TRAINING
        from scripts.reproduce.training import write_training

        parts = arguments.part or list(TRAINING)
        write_training(arguments.results, arguments.work.absolute(), arguments.seeds, parts)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        sentences = list(islice(distinct(sts_sentences(data)), arguments.sentences))
        corpus = corpus_of("sentences", sentences, Path(folder))
        found = headline(corpus, arguments.precision, arguments.repeats)
    Console(highlight=False).print(table(found))
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=2), "utf-8")
    return 0


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    figures = parser.add_subparsers(dest="figure", required=True)
    of_headline = figures.add_parser("headline", prog="scripts/reproduce/headline")
    of_headline.add_argument("--sentences", type=int, default=10_000)
    of_headline.add_argument("--precision", choices=["fp32", "bf16", "int8"], default="bf16")
    of_headline.add_argument("--repeats", type=int, default=3)
    of_headline.add_argument("--json", type=Path)
    of_tables = figures.add_parser("tables", prog="scripts/reproduce/tables")
    of_tables.add_argument("--part", action="append", choices=["sts", "retrieval", "fusion"])
    of_tables.add_argument("--results", type=Path, default=ROOT / "RESULTS.md")
    of_training = figures.add_parser("training", prog="scripts/reproduce/training")
    of_training.add_argument("--seeds", type=int, default=3)
    of_training.add_argument("--part", action="append")
    of_training.add_argument("--work", type=Path, default=ROOT / "models" / "reproduce")
    of_training.add_argument("--results", type=Path, default=ROOT / "RESULTS.md")
    arguments = parser.parse_args()
    if "SEMSEARCH_DATA" not in os.environ:
        parser.error("SEMSEARCH_DATA must name a folder of published data sets")
    return arguments


def headline(corpus: Corpus, precision: str, repeats: int) -> dict[str, float | str]:
    """All figures of the headline; times are medians of several runs."""
    machine = machine_peaks()
    runs = [pairs_run(corpus.file, precision) for _ in range(repeats + 1)][1:]  # the first converts
    encoding, search, whole = (statistics.median(column) for column in zip(*runs, strict=True))
    bound = corpus.flops / 1e9 / machine[precision]
    pairs = len(corpus.texts) * (len(corpus.texts) - 1) // 2
    return {
        "precision": precision,
        "sentences": len(corpus.texts),
        "pairs": pairs,
        "tokens": corpus.tokens,
        "whole_seconds": whole,
        "encoding_seconds": encoding,
        "search_seconds": search,
        "peak_gflops": machine[precision],
        "bound_seconds": bound,
        "encoding_by_bound": encoding / bound,
        "cross_encoder_seconds": pairs / cross_encoder_rate(corpus.texts),
    }


def machine_peaks() -> dict[str, float]:
    command = [sys.executable, "-m", "scripts.shared.machine", "--seconds", str(MACHINE_SECONDS)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    peaks: dict[str, float] = json.loads(done.stdout)["gflops"]
    return peaks


def pairs_run(file: Path, precision: str) -> tuple[float, float, float]:
    """Seconds of encoding, of the search, and of the whole process."""
    command = [sys.executable, "-m", "semsearch", "pairs", str(file), "--precision", precision]
    started = time.perf_counter()
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    whole = time.perf_counter() - started
    encoding, search = re.findall(r"(?:encoded|compared) in ([\d.]+) s", done.stderr)
    return float(encoding), float(search), whole


def cross_encoder_rate(sentences: list[str]) -> float:
    """Pairs a second of a cross-encoder with the same body, in sentence-transformers."""
    from sentence_transformers import CrossEncoder
    from transformers.utils import logging

    from semsearch.encoders.model_folder import find_model

    logging.set_verbosity_error()
    model = CrossEncoder(str(find_model("minilm").path), num_labels=1, device="cpu")
    step = max(1, len(sentences) // SAMPLE_PAIRS)
    shuffled = sentences[::step][:SAMPLE_PAIRS]
    pairs = list(zip(shuffled, shuffled[1:] + shuffled[:1], strict=True))
    model.predict(pairs[:64], show_progress_bar=False)
    started = time.perf_counter()
    model.predict(pairs, show_progress_bar=False)
    return len(pairs) / (time.perf_counter() - started)


def table(found: dict[str, float | str]) -> Table:
    def seconds(name: str) -> str:
        return f"{found[name]:,.2f} s"

    rows = Table(box=None, pad_edge=False, show_header=False)
    rows.add_column()
    rows.add_column(justify="right")
    rows.add_row(
        f"semsearch pairs, {found['sentences']:,} sentences, {found['precision']}, whole process",
        seconds("whole_seconds"),
    )
    rows.add_row(f"  encoding ({found['tokens']:,} tokens)", seconds("encoding_seconds"))
    rows.add_row(
        f"  its bound, at {found['peak_gflops']:,.0f} GFLOP/s of matrix products",
        f"{seconds('bound_seconds')} (x {found['encoding_by_bound']:.2f})",
    )
    rows.add_row(f"  search ({found['pairs']:,} pairs)", seconds("search_seconds"))
    hours = float(found["cross_encoder_seconds"]) / 3600
    rows.add_row(
        f"cross-encoder of the same body, torch fp32, from {SAMPLE_PAIRS:,} pairs",
        f"{hours:,.1f} hours",
    )
    return rows


if __name__ == "__main__":
    raise SystemExit(main())
