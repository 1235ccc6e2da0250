"""The script that `test_processes.py` runs in two processes with `accelerate launch`."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

from semsearch.errors import SemsearchError, TrainingError
from semsearch.training import Loss, Recipe, Settings, Siamese, train
from semsearch.training.processes import failing_together
from semsearch.training.stage_trainer import StageTrainer
from semsearch.training.trainers import SiameseTrainer

RANK = int(os.environ["RANK"])
BASE, DATA, FOLDER = map(Path, sys.argv[1:])
RECIPE = Recipe(epochs=2, batch_size=4, learning_rate=1e-3, evaluate_every=4)


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


def learn(loss, name, output, **settings):
    data = [name if name == "-" else str(DATA / name)]
    train(Siamese([loss]), Settings(str(BASE), FOLDER / output, data, [RECIPE], **settings))


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

learn(Loss.COSINE, "ranks.csv", "cosine", development="none", scale=(0, 47))
report = {"seen": seen[:]}
learn(Loss.SOFTMAX, "labelled.tsv", "whole")
interrupt_at = 7  # of 16
report["stopped"] = outcome(lambda: learn(Loss.SOFTMAX, "labelled.tsv", "resumed"))
interrupt_at = 0
learn(Loss.SOFTMAX, "labelled.tsv", "resumed", resume=True)
report["input"] = outcome(lambda: learn(Loss.SOFTMAX, "-", "input"))
report["one failed"] = outcome(fails_in_the_second)
(FOLDER / f"{RANK}.json").write_text(json.dumps(report | {"trained": trained}))
