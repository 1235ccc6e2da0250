"""Training runs: the folders in which a model is built, and interruption.

``DIR.training`` holds the plan and the checkpoints; ``DIR`` appears atomically at the end. A run
that was killed resumes from its last complete checkpoint.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import signal
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import zip_longest
from pathlib import Path
from types import FrameType
from typing import Any, Self

from semsearch.errors import ArgumentError, SemsearchError, TrainingError, TrainingStoppedError

PLAN = "plan.json"
#: How libraries in Rust (safetensors, tokenizers) report an error of the system.
OS_ERROR = re.compile(r"\(os error (\d+)\)")
WRITE_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
#: What torch reports when a file cannot be written, without the reason.
TORCH_WRITE_ERRORS = ("] . unexpected pos ", "iostream error")


class Workspace:
    """The folders of one run.

    Args:
        output: the folder for the model.
        resume: continue an unfinished run.
        overwrite: discard an existing model or run; other folders are never replaced.

    Raises:
        ArgumentError: existing files must not be overwritten, or there is no run to resume.
    """

    def __init__(self, output: Path, *, resume: bool = False, overwrite: bool = False) -> None:
        self.output = output
        if output.name in ("", "..") or output.absolute() == Path.cwd():
            raise ArgumentError(f"--output must name a separate folder, not {output}")
        #: Where checkpoints are kept until the model is finished.
        self.folder = self.output.with_name(f"{self.output.name}.training")
        self.resumes = resume
        if _holds_something(self.output):
            if not _is_model(self.output):
                raise ArgumentError(
                    f"{self.output} exists and is not a model; name another --output"
                )
            if not overwrite:
                raise ArgumentError(
                    f"{self.output} exists; name another --output, or --overwrite it"
                )
        if resume and not (self.folder / PLAN).is_file():
            raise ArgumentError(f"no training run to resume in {self.folder}")
        if _holds_something(self.folder) and not resume:
            if not (self.folder / PLAN).is_file():
                raise ArgumentError(
                    f"{self.folder} exists and is not a training run; name another --output"
                )
            if not overwrite:
                raise ArgumentError(
                    f"{self.folder} holds an unfinished training run; continue it with --resume, "
                    "or discard it with --overwrite"
                )

    @contextmanager
    def opened(self, plan: Mapping[str, Any]) -> Iterator[None]:
        """Lock the folders for this process.

        Args:
            plan: everything that determines the result, as JSON values.

        Raises:
            ArgumentError: the run to resume has another plan.
            TrainingError: another process trains there, or the folder cannot be written.
        """
        from filelock import FileLock, Timeout

        file = self.folder.with_name(f".{self.folder.name}.lock")
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(file).acquire(timeout=0):
                try:
                    self._begin(json.loads(json.dumps(plan)))
                    yield
                finally:
                    with suppress(PermissionError):  # on Windows, which deletes no open files
                        file.unlink(missing_ok=True)
        except Timeout:
            raise TrainingError(f"another process is training {self.output}") from None
        except Exception as error:
            reason = None if isinstance(error, SemsearchError) else _write_failure(error)
            if reason is None:
                raise
            raise TrainingError(f"{self.folder} cannot be written: {reason}") from error

    def _begin(self, planned: dict[str, Any]) -> None:
        if not self.resumes:
            if self.folder.is_dir():
                self.discard()
            self.folder.mkdir()
            (self.folder / PLAN).write_text(json.dumps(planned, indent=2) + "\n", "utf-8")
            return
        try:
            earlier = json.loads((self.folder / PLAN).read_text("utf-8"))
        except ValueError:
            raise ArgumentError(f"no training run to resume in {self.folder}") from None
        difference = _difference(earlier, planned)
        if difference is not None:
            raise ArgumentError(
                f"the run in {self.folder} was started with {difference}; resume it with that, or "
                "discard it with --overwrite"
            )

    def publish(self, model: Path) -> None:
        """Move the model, a folder of this run, to the output folder, and delete the rest."""
        if self.output.exists():
            self.output.rename(self.folder / "replaced")
        model.rename(self.output)
        self.discard()

    def discard(self) -> None:
        """Delete the folder of the run, its plan last: without it, it is no run to discard."""
        for path in self.folder.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            elif path.name != PLAN:
                path.unlink()
        shutil.rmtree(self.folder)


def _holds_something(path: Path) -> bool:
    if path.is_dir():
        return any(path.iterdir())
    return path.exists() or path.is_symlink()


def _is_model(folder: Path) -> bool:
    """Whether a folder holds a model of sentence-transformers or transformers."""
    try:
        if (folder / "modules.json").is_file():
            return "sentence_transformers." in (folder / "modules.json").read_text("utf-8")
        config = json.loads((folder / "config.json").read_text("utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(config, dict) and "model_type" in config and any(folder.glob("*.safetensors"))


def _write_failure(error: Exception) -> str | None:
    """Why a file cannot be written; None for other errors."""
    if isinstance(error, OSError):
        if error.errno is None or isinstance(error, (ConnectionError, TimeoutError)):
            return None  # not of a file
        return error.strerror or str(error)
    message = str(error)
    found = OS_ERROR.search(message)
    if found and int(found[1]) in WRITE_ERRORS:
        return os.strerror(int(found[1]))
    if any(one in message for one in TORCH_WRITE_ERRORS):
        return "a file is incomplete; the disk may be full"
    return None


def _difference(before: object, now: object, name: str = "plan") -> str | None:
    """A description of the first difference between two plans; None if they are equal."""
    if before == now:
        return None
    found: Iterable[str | None] = ()
    if isinstance(before, dict) and isinstance(now, dict):
        found = (_difference(before.get(key), now.get(key), key) for key in {**before, **now})
    elif isinstance(before, list) and isinstance(now, list):
        found = (_difference(*values, name) for values in zip_longest(before, now))
    return next(filter(None, found), f"{name} {json.dumps(before)}, not {json.dumps(now)}")


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
        return TrainingStoppedError(f"stopped after step {step:,}; add --resume to continue")

    def _request(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
