"""The script that `test_processes.py` runs in two processes with `accelerate launch`."""

from __future__ import annotations

import json
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

from semsearch.cli import main
from semsearch.errors import SemsearchError, TrainingError
from semsearch.training import CrossEncoding, Loss, Recipe, Settings, Siamese, train
from semsearch.training.processes import failing_together
from semsearch.training.stage_trainer import StageTrainer
from semsearch.training.trainers import SiameseTrainer

RANK = int(os.environ["RANK"])
BASE, DATA, FOLDER = map(Path, sys.argv[1:])
RECIPE = Recipe(epochs=3, batch_size=4, learning_rate=1e-3, evaluate_every=5)


def outcome(action):
    """The error that an action raises, or an empty string."""
    try:
        action()
    except (SemsearchError, SystemExit) as error:
        return f"{type(error).__name__}: {error}"
    return ""


def fails_in_the_second():
    with failing_together():
        if RANK == 1:
            raise TrainingError("no room")


def learn(task, name, output, recipe=RECIPE, **settings):
    wanted = Settings(
        base=str(BASE),
        output=FOLDER / output,
        data=[name if name == "-" else str(DATA / name)],
        recipes=[recipe],
        **settings,
    )
    return train(task, wanted)


def digest(module):
    return sum(float(one.detach().double().abs().sum()) for one in module.parameters())


seen: list[list[float]] = []
trained: list[float] = []
interrupt_at = 0
original_step, original_run = SiameseTrainer.training_step, StageTrainer.run


def step(self, model, inputs, *others):
    if "label" in inputs:
        seen.append(inputs["label"].tolist())
    loss = original_step(self, model, inputs, *others)
    if RANK == 0 and self.state.global_step + 1 == interrupt_at:
        signal.raise_signal(signal.SIGINT)
    return loss


def run(self, *arguments):
    result = original_run(self, *arguments)
    trained.append(digest(self.options["loss"]))
    return result


SiameseTrainer.training_step, StageTrainer.run = step, run

options = ["--batch-size", "4", "--epochs", "3", "--learning-rate", "1e-3", "--precision", "fp32"]
options += ["--data", str(DATA / "ranks.csv"), "--dev", "none", "--output", str(FOLDER / "cosine")]
command = ["train", "siamese", "--base", str(BASE), *options, "--scale", "0", "47"]
report = {"command": outcome(lambda: main(command, standalone_mode=False)), "seen": seen[:]}
softmax = Siamese([Loss.SOFTMAX])
learn(softmax, "labelled.tsv", "whole")
interrupt_at = 14  # of 24, in the second epoch
report["stopped"] = outcome(lambda: learn(softmax, "labelled.tsv", "resumed"))
interrupt_at = 0
learn(softmax, "labelled.tsv", "resumed", resume=True)
learn(Siamese([Loss.RANKING]), "pairs.csv", "ranking", replace(RECIPE, dimensions=(4,)))
learn(CrossEncoding(), "scored.csv", "cross-encoder")
wild = replace(RECIPE, learning_rate=1e30, warmup=0)
report["not finite"] = outcome(lambda: learn(softmax, "labelled.tsv", "wild", wild))
report["input"] = outcome(lambda: learn(softmax, "-", "input"))
report["one failed"] = outcome(fails_in_the_second)
(FOLDER / f"{RANK}.json").write_text(json.dumps(report | {"trained": trained}))
