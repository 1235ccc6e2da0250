"""What a stage leaves in its folder: checkpoints of the trainer, then the model."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

#: What the trainer writes last into a checkpoint.
LAST_OF_CHECKPOINT = "trainer_state.json"


class StageFolder(NamedTuple):
    """The folder of one stage."""

    path: Path

    @property
    def model(self) -> Path:
        """Where the model is when the stage has come to its end."""
        return self.path / "model"

    def last_checkpoint(self) -> Path | None:
        """The newest checkpoint that was written to its end."""
        found = self.path.glob(f"checkpoint-*/{LAST_OF_CHECKPOINT}")
        whole = [file.parent for file in found if file.stat().st_size]
        return max(whole, key=lambda folder: int(folder.name.rpartition("-")[2]), default=None)

    @contextmanager
    def finishing(self) -> Iterator[Path]:
        """A folder to save the model in; it counts when it is whole."""
        draft = self.path / "model.tmp"
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
        yield draft
        draft.rename(self.model)
