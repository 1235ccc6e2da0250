"""The folders in which a model is built, and interruption.

``DIR.training`` holds the plan and the checkpoints of a run; ``DIR`` appears atomically at the end.
A run that finds its own plan resumes from the last complete checkpoint.
"""

from __future__ import annotations

import json
import shutil
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any, Self

from semsearch.errors import ArgumentError, TrainingError, TrainingStoppedError

PLAN = "plan.json"


def training_folder(output: Path) -> Path:
    """The folder in which the model of an output folder is built.

    Raises:
        ArgumentError: the output folder, or other files in place of the run, exist.
    """
    if _holds_something(output):
        raise ArgumentError(f"{output} exists; remove it, or name another --output")
    folder = output.parent / f"{output.name}.training"
    if _holds_something(folder) and not (folder / PLAN).is_file():
        raise ArgumentError(
            f"{folder} exists and is not a training run; remove it, or name another --output"
        )
    return folder


def _holds_something(path: Path) -> bool:
    return any(path.iterdir()) if path.is_dir() else path.exists()


@contextmanager
def locked_run(folder: Path, plan: Mapping[str, Any]) -> Iterator[None]:
    """Begin or resume a run; no other process can do so until it ends.

    Args:
        folder: as returned by `training_folder`.
        plan: everything that determines the result, as JSON values.

    Raises:
        ArgumentError: the run in the folder has another plan.
        TrainingError: another process trains there.
    """
    from filelock import FileLock, Timeout

    folder.parent.mkdir(parents=True, exist_ok=True)
    file = folder.with_name(f".{folder.name}.lock")
    try:
        with FileLock(file).acquire(timeout=0):
            try:
                _begin(folder, json.loads(json.dumps(plan)))
                yield
            finally:
                with suppress(PermissionError):  # on Windows, which deletes no open files
                    file.unlink(missing_ok=True)
    except Timeout:
        raise TrainingError(f"another process is training in {folder}") from None


def _begin(folder: Path, plan: dict[str, Any]) -> None:
    file = folder / PLAN
    if not file.is_file():
        folder.mkdir(exist_ok=True)
        file.write_text(json.dumps(plan, indent=2) + "\n", "utf-8")
        return
    earlier = json.loads(file.read_text("utf-8"))
    if different := [name for name, value in plan.items() if earlier.get(name) != value]:
        raise ArgumentError(
            f"{folder} holds an unfinished run with other settings or data "
            f"({', '.join(different)}); remove it, or name another --output"
        )


def publish(folder: Path, model: Path, output: Path) -> None:
    """Move a model, a folder of a run, to the output folder, and delete the run."""
    model.rename(output)
    shutil.rmtree(folder)


class Interruption:
    """Ctrl-C stops a training run after the current step, with a checkpoint; a second, at once."""

    def __init__(self) -> None:
        self.asked = False
        self._before: Any = None

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():  # others get no signals
            self._before = signal.signal(signal.SIGINT, self._request)
        return self

    def __exit__(self, *error: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def stopped(self, step: int) -> TrainingStoppedError:
        """The error to raise after the checkpoint of this step was written."""
        return TrainingStoppedError(
            f"stopped after step {step:,}; run the same command again to continue"
        )

    def _request(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
