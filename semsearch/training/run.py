"""A training run of any task: from the data to the finished folder.

``DIR.training`` holds the settings and checkpoints of a run; ``DIR`` appears whole at the end. The
same command continues an interrupted run from its last checkpoint.
"""

from __future__ import annotations

import json
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from semsearch.encoders.model_folder import find_model
from semsearch.errors import ArgumentError, MissingExtraError, TrainingStoppedError, quoted
from semsearch.training.examples import Notify
from semsearch.training.measures import Measured
from semsearch.training.stages import Recipe, Settings, Stage

if TYPE_CHECKING:
    from semsearch.training.trainer import Trainee

#: Packages from the extra `train`.
NEEDED = ("accelerate", "datasets")
#: The settings and results of a run, in the folder of its model; the settings of an unfinished one.
RECORD, SETTINGS = "training.json", "settings.json"
#: The model of a stage, and its card.
MODEL, CARD = "model", "README.md"


class Trained(NamedTuple):
    """A trained model, after choices on held-out data."""

    folder: Path
    tests: list[Measured]
    verdict: str = ""  #: one line on what the training brought
    is_kept: bool = True  #: whether the model is worth keeping, and was written


@dataclass(frozen=True)
class Job:
    """What a task does with its data.

    Args:
        stages: data and hyperparameters, one per stage.
        trainee: returns the model of a folder, ready for a stage.
        finish: returns the result, from the folders of the trained and of the base model.
    """

    stages: Sequence[Stage]
    trainee: Callable[[Path, Stage], Trainee]
    finish: Callable[[Path, Path], Trained]


class Task(ABC):
    """One kind of training."""

    #: The name in commands and records.
    name: str
    #: The default hyperparameters.
    recipe = Recipe()
    #: How to use the model, with ``{path}`` for its folder.
    usage = "semsearch index corpus.csv --encoder {path}"

    def recipe_for(self, base: str | None) -> Recipe:
        """The default hyperparameters for a base model."""
        del base
        return self.recipe

    @abstractmethod
    def prepare(self, settings: Settings, notify: Notify) -> Job:
        """Read and check the data."""


def train(
    task: Task,
    settings: Settings,
    notify: Notify = lambda message: None,
    on_progress: Callable[[int, float], None] = lambda done, fraction: None,
) -> Trained:
    """Train a model, and write it to the output folder, or resume a run that was stopped.

    Args:
        task: the kind of training.
        settings: base model, data, recipes and output folder.
        notify: called with status messages of one line.
        on_progress: called with the number of examples done in the stage, and the fraction done.

    Raises:
        ArgumentError: the data are unsuitable, the output folder exists, or the run to resume
            was started with other settings.
        CorpusError, DatasetNotFoundError: the data cannot be read.
        EncoderError: the base model cannot be loaded.
        MissingExtraError: a needed package is not installed.
        TrainingError: the loss is not finite, or there is too little data.
        TrainingStoppedError: the run was interrupted and can be resumed.
    """
    for package in NEEDED:
        if find_spec(package) is None:
            raise MissingExtraError(package, "train", "training")
    if settings.output.is_file() or (settings.output.is_dir() and any(settings.output.iterdir())):
        raise ArgumentError(f"{settings.output} exists; remove it, or name another --output")
    run = settings.output.with_name(f"{settings.output.name}.training")
    base = _base(settings.base)
    job = task.prepare(settings, notify)
    stages = [stage.as_json() for stage in job.stages]
    plan = {"trained": task.name, "base": settings.base, "stages": stages}
    text = json.dumps(plan, indent=2) + "\n"
    _check_settings(run, json.loads(text))
    from transformers import set_seed

    from semsearch.training.trainer import run_stage

    folder, results = base, []
    for number, stage in enumerate(job.stages):
        place = run / f"stage-{number}"
        if not (place / MODEL).is_dir():
            set_seed(stage.recipe.seed)
            trainee = job.trainee(folder, stage)  # what is wrong with a model is found here
            place.mkdir(parents=True, exist_ok=True)
            (run / SETTINGS).write_text(text, "utf-8")
            try:
                history = run_stage(trainee, place, notify, on_progress)
            except KeyboardInterrupt:
                raise TrainingStoppedError("stopped; the same command continues it") from None
            draft = place / "model.tmp"
            trainee.write(draft)
            (draft / RECORD).write_text(json.dumps({"history": history}), "utf-8")
            draft.rename(place / MODEL)
        folder = place / MODEL
        results.append(json.loads((folder / RECORD).read_text("utf-8")))
    found = job.finish(folder, base)
    if found.is_kept:
        record = plan | {"results": results, "tests": [one._asdict() for one in found.tests]}
        (found.folder / RECORD).write_text(json.dumps(record, indent=2) + "\n", "utf-8")
        _add_to_card(found, task, settings)
        found.folder.rename(settings.output)
    shutil.rmtree(run)
    return found._replace(folder=settings.output)


def _check_settings(run: Path, plan: Mapping[str, Any]) -> None:
    """Check that an unfinished run in a folder, if there is one, has the same settings."""
    if not run.exists():
        return
    file = run / SETTINGS
    if not file.is_file():
        raise ArgumentError(
            f"{run} exists and is not a training run; remove it, or name another --output"
        )
    earlier = json.loads(file.read_text("utf-8"))
    if different := [name for name, value in plan.items() if earlier.get(name) != value]:
        raise ArgumentError(
            f"{run} holds an unfinished run with other settings or data "
            f"({', '.join(different)}); remove it, or name another --output"
        )


def _base(spec: str | None) -> Path:
    """The folder of a base model."""
    if spec is None:
        return Path()
    model = find_model(spec)
    model.check_whole()
    if model.pooling:
        raise ArgumentError(
            f"'{spec}': a base model is trained with its own pooling; remove the suffix"
        )
    return model.path


def _add_to_card(found: Trained, task: Task, settings: Settings) -> None:
    """Add to the card of the library how semsearch made, measured and uses the model."""
    card = found.folder / CARD
    written = card.read_text("utf-8") if card.is_file() else f"# {settings.output.name}\n"
    origin = f" from `{settings.base}`" if settings.base else ""
    paragraphs = [
        written.rstrip(),
        "## semsearch",
        f"Trained by `semsearch train {task.name}`{origin}; `{RECORD}` has all settings.",
        found.verdict,
        "\n".join(f"- {test}" for test in found.tests),
        f"    {task.usage.format(path=quoted(f'./{settings.output.name}'))}",
    ]
    card.write_text("\n\n".join(filter(None, paragraphs)) + "\n", "utf-8")
