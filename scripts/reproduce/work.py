"""Helpers of the scripts that train models for RESULTS.md."""

from __future__ import annotations

import csv
import statistics
import subprocess
import sys
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from scripts.reproduce.page import difference, interval, table
from semsearch.datasets import StsSet, load_labelled_pairs, load_retrieval_set
from semsearch.errors import DatasetNotFoundError
from semsearch.evaluation import evaluate_retrieval, evaluate_sts, load_pair_scorer, load_rankers

#: Held-out pairs of SNLI's test set; the rest of dev and test is for training.
SNLI_HELD_OUT = 2000


class Work(NamedTuple):
    """The folder of models and generated data, and the seeds to train each model with."""

    folder: Path
    seeds: Sequence[int]

    def once(self, name: str, *arguments: str) -> Path:
        """The model of `semsearch train ARGUMENTS`, trained unless its folder exists."""
        folder = self.folder / name
        if not folder.exists():
            semsearch("train", *arguments, "--output", str(folder), "--overwrite")
        return folder

    def trained(self, name: str, *arguments: str) -> list[Path]:
        """The models of one command, one per seed."""
        return [self.once(f"{name}-{seed}", *arguments, "--seed", str(seed)) for seed in self.seeds]

    def shown(self, arguments: Sequence[str]) -> str:
        """A command's arguments without the folder."""
        return " ".join(word.replace(f"{self.folder}/", "") for word in arguments)


def semsearch(*arguments: str) -> None:
    """Run a semsearch command in a process of its own, passing its output on."""
    subprocess.run([sys.executable, "-m", "semsearch", *arguments], check=True)


def sts_scores(system: str, sets: Sequence[StsSet]) -> list[float]:
    """Spearman x 100 on each set, all its pairs together."""
    scorer = load_pair_scorer(system)
    return [evaluate_sts(one, [scorer]).results[0].spearman.value for one in sets]


def retrieval_table(systems: dict[str, Sequence[str]]) -> str:
    """The nDCG@10 of each seed's system and its difference from minilm's, with their spread."""
    rows = []
    for name, of_seeds in systems.items():
        try:
            retrieval = load_retrieval_set(name)
        except DatasetNotFoundError:
            continue
        rankers = load_rankers(["minilm", *of_seeds])
        found = evaluate_retrieval(retrieval, rankers, ["nDCG@10"], whole_documents=True)
        before, *after = (result.mean for result in found.results)
        changes = [one.difference for one in found.differences if one.other == "minilm"]
        rows += [
            [f"{name}, seed {seed_of(system)}", interval(mean), difference(change)]
            for system, mean, change in zip(of_seeds, after, changes, strict=True)
        ]
        means, shifts = ([one.value for one in each] for each in (after, changes))
        rows.append([f"**{name}**, {interval(before)} before", spread(means), spread(shifts, "+")])
    return table(["", "after", "difference"], rows)


def seed_of(model: Path | str) -> str:
    """The seed at the end of a model's name."""
    return str(model).rpartition("-")[2]


def snli(work: Work) -> tuple[Path, Path]:
    """SNLI's training pairs and held-out pairs, as files."""
    training, held_out = work.folder / "snli-train.csv", work.folder / "snli-held-out.csv"
    if not held_out.exists():
        development, test = (load_labelled_pairs("snli", split) for split in ("dev", "test"))
        names = ("sentence1", "sentence2", "label")
        write_table(training, names, chain(development, test[:-SNLI_HELD_OUT]))
        write_table(held_out, names, test[-SNLI_HELD_OUT:])
    return training, held_out


def write_table(file: Path, names: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    with file.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(names)
        writer.writerows(rows)


def figure(score: float) -> str:
    return f"{score:.2f}"


def spread(scores: Sequence[float], sign: str = "") -> str:
    """Mean and standard deviation; with the sign "+", those of differences."""
    mean = f"{statistics.mean(scores):{sign}.2f}"
    return mean if len(scores) < 2 else f"{mean} ± {statistics.stdev(scores):.2f}"
