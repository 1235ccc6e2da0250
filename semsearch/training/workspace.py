"""Where a training run keeps what it has done: beside the model, until that is whole.

``DIR.training`` holds the plan and the checkpoints; ``DIR`` appears at once, at the end. A run
that was killed goes on from its last whole checkpoint.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import Any

from semsearch.errors import ArgumentError, TrainingError

__all__ = ["Workspace"]

PLAN = "plan.json"
#: What the trainer writes last into a checkpoint.
LAST_OF_CHECKPOINT = "trainer_state.json"


class Workspace:
    """The folders of one run.

    Args:
        output: where the model goes.
        plan: all that decides the result, as JSON values.
        resume: go on with what is there.
        overwrite: discard what is there.

    Raises:
        ArgumentError: there is something that must not be overwritten, nothing to resume, or
            something else to resume than what is planned.
    """

    def __init__(
        self, output: Path, plan: Mapping[str, Any], *, resume: bool, overwrite: bool
    ) -> None:
        self.output = output.absolute()
        self._root = self.output.with_name(f"{self.output.name}.training")
        self._resumes = resume
        self._check_output(overwrite)
        planned = json.loads(json.dumps(plan))
        if resume:
            self._check_plan(planned)
            return
        if self._root.exists() and not overwrite:
            raise ArgumentError(
                f"{self._root} holds an unfinished training run; go on with --resume, "
                "or discard it with --overwrite"
            )
        self._plan = planned

    def _check_output(self, overwrite: bool) -> None:
        if not self.output.name or self.output == Path.cwd():
            raise ArgumentError("--output must name a folder of its own")
        if not self.output.exists() or overwrite:
            return
        if not self.output.is_dir() or any(self.output.iterdir()):
            raise ArgumentError(f"{self.output} exists; name another --output, or --overwrite it")

    def _check_plan(self, planned: dict[str, Any]) -> None:
        try:
            earlier = json.loads((self._root / PLAN).read_text("utf-8"))
        except (OSError, ValueError):
            raise ArgumentError(f"no training run to resume in {self._root}") from None
        difference = _difference(earlier, planned)
        if difference is not None:
            raise ArgumentError(
                f"the run in {self._root} began with {difference}; resume it with that, or "
                "discard it with --overwrite"
            )
        self._plan = planned

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Hold the folders for this process alone.

        Raises:
            TrainingError: another process trains there, or the folder cannot be written.
        """
        from filelock import FileLock, Timeout

        file = self._root.with_name(f".{self._root.name}.lock")
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(file).acquire(timeout=0):
                try:
                    self._begin()
                    yield
                finally:
                    file.unlink(missing_ok=True)
        except Timeout:
            raise TrainingError(f"another process is training {self.output}") from None
        except OSError as error:
            raise TrainingError(
                f"{self._root} cannot be written: {error.strerror or error}"
            ) from error

    def _begin(self) -> None:
        if self._resumes:
            return
        shutil.rmtree(self._root, ignore_errors=True)
        self._root.mkdir()
        (self._root / PLAN).write_text(json.dumps(self._plan, indent=2) + "\n", "utf-8")

    def stage(self, number: int) -> Path:
        """The folder of a stage's checkpoints."""
        return self._root / f"stage-{number}"

    def finished(self, number: int) -> Path | None:
        """The model of a stage that came to its end."""
        model = self.stage(number) / "model"
        return model if model.is_dir() else None

    def last_checkpoint(self, number: int) -> Path | None:
        """The newest checkpoint of a stage that was written to its end."""
        found = self.stage(number).glob(f"checkpoint-*/{LAST_OF_CHECKPOINT}")
        whole = [file.parent for file in found if file.stat().st_size]
        return max(whole, key=lambda folder: int(folder.name.rpartition("-")[2]), default=None)

    @contextmanager
    def finishing(self, number: int) -> Iterator[Path]:
        """A folder to save the model of a stage in; it counts when it is whole."""
        draft = self.stage(number) / "model.tmp"
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
        yield draft
        draft.rename(draft.with_name("model"))

    def publish(self, model: Path) -> None:
        """Put the model where it was wanted, and remove all else."""
        old = self._root / "replaced"
        if self.output.exists():
            self.output.rename(old)
        model.rename(self.output)
        shutil.rmtree(self._root)


def _difference(before: object, now: object, name: str = "plan") -> str | None:
    """The first thing that two plans differ in, as a person would say it."""
    if before == now:
        return None
    found: Iterable[str | None] = ()
    if isinstance(before, dict) and isinstance(now, dict):
        found = (_difference(before.get(key), now.get(key), key) for key in {**before, **now})
    elif isinstance(before, list) and isinstance(now, list):
        found = (_difference(*values, name) for values in zip_longest(before, now))
    return next(filter(None, found), f"{name} {json.dumps(before)}, not {json.dumps(now)}")
