"""The script that `test_processes.py` runs in two processes with `accelerate launch`."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

from sentence_transformers import SentenceTransformerTrainer

from semsearch.errors import TrainingStoppedError
from semsearch.training import Loss, Recipe, Settings, Siamese, train

RANK = os.environ["RANK"]
BASE, DATA, FOLDER = map(Path, sys.argv[1:])

seen: list[list[float]] = []
stop_at = 4  # of 12
original = SentenceTransformerTrainer.training_step


def step(self, model, inputs, *others):
    seen.append(inputs["label"].tolist())
    loss = original(self, model, inputs, *others)
    if RANK == "0" and self.state.global_step + 1 == stop_at:
        signal.raise_signal(signal.SIGINT)
    return loss


def learn():
    recipe = Recipe(epochs=2, batch_size=4, learning_rate=1e-3, scale=(0, 47))
    settings = Settings(str(BASE), FOLDER / "both", [str(DATA)], [recipe], development="none")
    train(Siamese([Loss.COSINE]), settings)


SentenceTransformerTrainer.training_step = step
stopped = ""
try:
    learn()
except TrainingStoppedError as error:
    stopped = str(error)
stop_at = 0
learn()
(FOLDER / f"{RANK}.json").write_text(json.dumps({"stopped": stopped, "seen": seen}))
