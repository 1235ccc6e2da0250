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
from semsearch.training.trainers import SiameseTrainer

RANK = int(os.environ["RANK"])
BASE, DATA, FOLDER = map(Path, sys.argv[1:])

seen: list[list[float]] = []
stop_at = 0
original = SiameseTrainer.training_step


def step(self, model, inputs, *others):
    seen.append(inputs["label"].tolist())
    loss = original(self, model, inputs, *others)
    if RANK == 0 and self.state.global_step + 1 == stop_at:
        signal.raise_signal(signal.SIGINT)
    return loss


def learn(resume=False):
    recipe = Recipe(epochs=2, batch_size=4, learning_rate=1e-3)
    options = {"development": "none", "scale": (0, 47), "resume": resume}
    settings = Settings(str(BASE), FOLDER / "both", [str(DATA)], [recipe], **options)
    train(Siamese([Loss.COSINE]), settings)


def fails_in_the_second():
    with failing_together():
        if RANK == 1:
            raise TrainingError("no room")


def outcome(action):
    """The error that an action raises, or an empty string."""
    try:
        action()
    except (SemsearchError, SystemExit) as error:
        return f"{type(error).__name__}: {error}"
    return ""


SiameseTrainer.training_step = step
stop_at = 8  # of 12
report = {"stopped": outcome(learn)}
stop_at = 0
learn(resume=True)
report["one failed"] = outcome(fails_in_the_second)
(FOLDER / f"{RANK}.json").write_text(json.dumps(report | {"seen": seen}))
