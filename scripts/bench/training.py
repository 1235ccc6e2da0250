"""The speed of our training compared with plain sentence-transformers.

Both train all-MiniLM-L6-v2 on the same pairs of STS Benchmark for one epoch, in turn, in processes
of their own, with a batch size of 16 and the same threads. `plain` is the trainer of
sentence-transformers with its defaults; `ours` is that of `semsearch train`. Loading and evaluation
are not counted; writing the last checkpoint is, in both.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

from scripts.shared.frame import Table, data_folder, in_turn, new_parser, report, run, spread
from semsearch.encoders.model_folder import find_model
from semsearch.evaluation.datasets import read_stsbenchmark

SYSTEMS = ("plain", "ours")


def main() -> None:
    """Measure, and print the table."""
    parser = new_parser("scripts/bench/training", __doc__)
    parser.add_argument("--model", choices=["siamese", "cross-encoder"], default="siamese")
    parser.add_argument("--pairs", type=int, default=2048)
    parser.add_argument("--measure", choices=SYSTEMS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    data_folder()
    if arguments.measure:
        print({"plain": plain, "ours": ours}[arguments.measure](arguments.model, arguments.pairs))
        return

    def rate(system: str) -> float:
        command = [sys.executable, "-m", "scripts.bench.training", "--measure", system]
        options = ["--model", arguments.model, "--pairs", arguments.pairs]
        return float(run([*command, *options]).output.split()[-1])

    measured = in_turn(arguments.model, SYSTEMS, arguments.repeats, rate)
    base = statistics.median(measured["plain"])
    rows = [
        {"": name, "pairs/s": spread(rates), "x plain": statistics.median(rates) / base}
        for name, rates in measured.items()
    ]
    title = f"{arguments.model}: {arguments.pairs:,} pairs of STS Benchmark"
    report(arguments, [Table(title, rows)])


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
    pairs = [pairs[row] for row in evenly(len(pairs), count)]
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
    from semsearch.training import Loss, Recipe
    from semsearch.training.data import load_examples
    from semsearch.training.encoder import encoder_trainee
    from semsearch.training.examples import Kind
    from semsearch.training.reranker import BINARY, cross_encoder_trainee
    from semsearch.training.stages import Stage
    from semsearch.training.trainer import run_stage

    examples = load_examples("stsbenchmark:train", [Kind.SCORED], notify=lambda line: None)
    examples = examples.take(evenly(len(examples), count))
    is_siamese = model == "siamese"
    stage = Stage(examples, None, Recipe(epochs=1), Loss.COSINE.value if is_siamese else BINARY)
    trained = encoder_trainee if is_siamese else cross_encoder_trainee
    trainee = trained(find_model("minilm").path, stage)
    with tempfile.TemporaryDirectory() as output:
        started = time.perf_counter()
        run_stage(trainee, Path(output), lambda line: None, lambda done, part: None)
        return count / (time.perf_counter() - started)


def evenly(length: int, count: int) -> list[int]:
    """The positions of `count` pairs, spread evenly: parts of the set differ in text length."""
    return [place * length // count for place in range(count)]


if __name__ == "__main__":
    main()
