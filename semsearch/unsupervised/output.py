"""Where a trained model goes: beside its place first, then there at once, never over another."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from semsearch.errors import ArgumentError, TrainingError
from semsearch.version import __version__

__all__ = ["Output", "model_card"]

#: The files by which a model's folder is known.
MARKS = ("config.json", "modules.json")


class Output:
    """The folder of a model that is being made.

    Args:
        path: what the folder will be.
        overwrite: whether what stands there may be replaced, once the new model is whole.
        resume: whether an unfinished run may and must be there.

    Raises:
        TrainingError: there is a model already, or an unfinished run, or none to resume.
    """

    def __init__(self, path: Path, *, overwrite: bool = False, resume: bool = False) -> None:
        if path.name in ("", ".."):
            raise ArgumentError(f"{path} cannot be a new model's folder; name another one")
        self.path = path
        #: Where checkpoints are kept until the model is finished.
        self.unfinished = path.with_name(f"{path.name}.unfinished")
        if path.exists() or path.is_symlink():
            if not any((path / name).is_file() for name in MARKS):
                raise TrainingError(f"{path} exists, and is no model; name another folder")
            if not overwrite:
                raise TrainingError(
                    f"{path} exists; name another folder with --output, or replace the model that "
                    "is there with --overwrite"
                )
        if resume and not self.unfinished.exists():
            raise TrainingError(f"there is no unfinished run {self.unfinished} to resume")
        if not resume and self.unfinished.exists():
            raise TrainingError(
                f"an unfinished run is in {self.unfinished}; go on with --resume, or remove it"
            )

    def finish(self, write: Callable[[Path], None]) -> None:
        """Let `write` fill a new folder, put it in its place, and drop the checkpoints."""
        draft = self.path.with_name(f"{self.path.name}.draft")
        try:
            shutil.rmtree(draft, ignore_errors=True)
            draft.mkdir(parents=True)
            write(draft)
            replaced = self.path.with_name(f"{self.path.name}.replaced")
            if self.path.exists():
                self.path.replace(replaced)
            draft.replace(self.path)
            shutil.rmtree(replaced, ignore_errors=True)
        except OSError as error:
            raise TrainingError(f"{self.path} cannot be written: {error.strerror}") from error
        self.discard()

    def discard(self) -> None:
        """Drop the checkpoints; nothing is written."""
        shutil.rmtree(self.unfinished, ignore_errors=True)


def model_card(name: str, story: str, facts: Mapping[str, object]) -> str:
    """README.md of a model: what was done, and a table of what was set and measured."""
    rows = "\n".join(f"| {key} | {_cell(value)} |" for key, value in facts.items())
    return (
        f"# {_cell(name)}\n\n{story}\n\n| | |\n|---|---|\n{rows}\n\n"
        f"Made by semsearch {__version__}.\n"
    )


def _cell(value: object) -> str:
    return " ".join(str(value).split()).replace("|", "\\|")
