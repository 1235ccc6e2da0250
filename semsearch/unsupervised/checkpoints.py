"""All that a run needs to go on as if it had never stopped, written whole or not at all."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from semsearch.errors import TrainingError

if TYPE_CHECKING:
    import torch

STATE = "state.json"
MODEL = "model.safetensors"
OPTIMIZER = "optimizer.safetensors"


@dataclass
class Position:
    """How far a run has come: steps done, the next batch, the seconds spent on steps."""

    step: int = 0
    epoch: int = 0
    batch: int = 0
    seconds: float = 0.0


class Checkpoints:
    """The checkpoints of one run, of which the newest is kept.

    Args:
        folder: of the run; made with the first checkpoint.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def save(
        self, position: Position, model: torch.nn.Module, optimizer: torch.optim.Optimizer
    ) -> None:
        """Write a checkpoint, then drop those before it."""
        from safetensors.torch import save_file, save_model

        draft = self.folder / "draft"
        try:
            shutil.rmtree(draft, ignore_errors=True)
            draft.mkdir(parents=True)
            save_model(model, str(draft / MODEL))
            states = optimizer.state_dict()["state"]
            tensors = {
                f"{number}.{name}": value
                for number, state in states.items()
                for name, value in state.items()
            }
            save_file(tensors, draft / OPTIMIZER)
            (draft / STATE).write_text(json.dumps(asdict(position)), "utf-8")
            for file in draft.iterdir():
                with file.open("rb") as stream:
                    os.fsync(stream.fileno())
            older = self._all()
            whole = self.folder / f"step-{position.step:09}"
            if whole not in older:  # the same step was saved before
                draft.replace(whole)
            for folder in older:
                if folder != whole:
                    shutil.rmtree(folder)
        except OSError as error:
            raise TrainingError(
                f"no checkpoint can be written into {self.folder}: {error.strerror}"
            ) from error

    def load(self, model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> Position:
        """Take model and optimizer to where the newest checkpoint has them.

        Raises:
            TrainingError: it is damaged.
        """
        from safetensors import SafetensorError
        from safetensors.torch import load_file, load_model

        found = self._all()
        if not found:  # it was stopped before its first checkpoint
            return Position()
        newest = found[-1]
        try:
            position = Position(**json.loads((newest / STATE).read_text("utf-8")))
            load_model(model, str(newest / MODEL))
            whole = optimizer.state_dict()
            whole["state"] = {}
            for key, tensor in load_file(newest / OPTIMIZER).items():
                number, _, name = key.partition(".")
                whole["state"].setdefault(int(number), {})[name] = tensor
            optimizer.load_state_dict(whole)
            return position
        except (OSError, ValueError, KeyError, TypeError, RuntimeError, SafetensorError) as error:
            raise TrainingError(
                f"the checkpoint {newest} is damaged; remove {self.folder} and start over"
            ) from error

    def _all(self) -> list[Path]:
        return sorted(self.folder.glob("step-*"))
