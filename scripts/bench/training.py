"""The speed of our training compared with plain sentence-transformers.

Both train all-MiniLM-L6-v2 on the same pairs of STS Benchmark for one epoch, in turn, in processes
of their own, with a batch size of 16 and the same threads. `plain` is the trainer of
sentence-transformers with its defaults; `ours` is that of `semsearch train`. Loading and evaluation
are not counted; writing the last checkpoint is, in both.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from semsearch.datasets import read_stsbenchmark
from semsearch.encoders.model_folder import find_model

SYSTEMS = ("plain", "ours")


def main() -> int:
    arguments = parsed()
    if arguments.measure:
        rate = {"plain": plain, "ours": ours}[arguments.measure](arguments.model, arguments.pairs)
        print(rate)
        return 0
    rates: dict[str, list[float]] = {system: [] for system in SYSTEMS}
    for _ in range(arguments.repeats):
        for system in SYSTEMS:
            rates[system].append(measured(system, arguments))
            Console(stderr=True).print(f"{system}: {rates[system][-1]:.1f} pairs/s")
    Console().print(table(rates, arguments))
    return 0


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", choices=["siamese", "cross-encoder"], default="siamese")
    parser.add_argument("--pairs", type=int, default=2048)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--measure", choices=SYSTEMS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if "SEMSEARCH_DATA" not in os.environ:
        parser.error("SEMSEARCH_DATA must name a folder of published data sets")
    return arguments


def measured(system: str, arguments: argparse.Namespace) -> float:
    """Pairs a second of one run."""
    command = [sys.executable, __file__, "--measure", system, "--model", arguments.model]
    command += ["--pairs", str(arguments.pairs)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{system} failed: {done.stderr.strip().splitlines()[-1]}")
    return float(done.stdout.split()[-1])


def plain(model: str, count: int) -> float:
    """Pairs a second of sentence-transformers' trainer with its defaults."""
    from datasets import Dataset
    from sentence_transformers import (
        CrossEncoder,
        CrossEncoderTrainer,
        CrossEncoderTrainingArguments,
        SentenceTransformer,
        SentenceTransformerTrainer,
        SentenceTransformerTrainingArguments,
    )
    from sentence_transformers.cross_encoder.losses import BinaryCrossEntropyLoss
    from sentence_transformers.sentence_transformer.losses import CosineSimilarityLoss

    pairs = read_stsbenchmark("train")
    pairs = [pairs[row] for row in spread(len(pairs), count)]
    columns = {
        "sentence1": [pair.left for pair in pairs],
        "sentence2": [pair.right for pair in pairs],
        "label": [pair.gold / 5 for pair in pairs],
    }
    folder = str(find_model("minilm").path)
    with tempfile.TemporaryDirectory() as output:
        settings = {
            "output_dir": output,
            "num_train_epochs": 1,
            "per_device_train_batch_size": 16,
            "report_to": "none",
        }
        if model == "siamese":
            encoder = SentenceTransformer(folder)
            trainer = SentenceTransformerTrainer(
                model=encoder,
                args=SentenceTransformerTrainingArguments(**settings),
                train_dataset=Dataset.from_dict(columns),
                loss=CosineSimilarityLoss(encoder),
            )
        else:
            reranker = CrossEncoder(folder, num_labels=1)
            trainer = CrossEncoderTrainer(
                model=reranker,
                args=CrossEncoderTrainingArguments(**settings),
                train_dataset=Dataset.from_dict(columns),
                loss=BinaryCrossEntropyLoss(reranker),
            )
        started = time.perf_counter()
        trainer.train()
        return count / (time.perf_counter() - started)


def ours(model: str, count: int) -> float:
    """Pairs a second of a stage of `semsearch train`."""
    from semsearch.training import CrossEncoding, Loss, Recipe, Siamese
    from semsearch.training.data import load_examples
    from semsearch.training.examples import Callbacks, Kind
    from semsearch.training.stages import Stage

    examples = load_examples("stsbenchmark:train", [Kind.SCORED], notify=lambda line: None)
    examples = examples.take(spread(len(examples), count))
    task = Siamese([Loss.COSINE]) if model == "siamese" else CrossEncoding()
    stage = Stage(examples, None, Recipe(epochs=1))
    trainer = task.trainer(find_model("minilm").path, 0, stage)
    with tempfile.TemporaryDirectory() as output:
        started = time.perf_counter()
        trainer.run(Path(output), None, Callbacks(lambda line: None, lambda done, part: None))
        return count / (time.perf_counter() - started)


def spread(length: int, count: int) -> list[int]:
    """The positions of `count` pairs, spread evenly: parts of the set differ in text length."""
    return [place * length // count for place in range(count)]


def table(rates: dict[str, list[float]], arguments: argparse.Namespace) -> Table:
    """Medians with the lowest and the highest value, and their ratio."""
    rows = Table(
        title=f"{arguments.model}: {arguments.pairs:,} pairs of STS Benchmark",
        title_justify="left",
    )
    for heading in ("", "pairs/s", "x plain"):
        rows.add_column(heading, justify="right" if heading else "left")
    base = statistics.median(rates["plain"])
    for system, values in rates.items():
        middle = statistics.median(values)
        spread = f"{middle:.1f} ({min(values):.1f}..{max(values):.1f})"
        rows.add_row(system, spread, f"{middle / base:.2f}x")
    return rows


if __name__ == "__main__":
    sys.exit(main())
