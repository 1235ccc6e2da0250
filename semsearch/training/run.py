"""A training run of any task, from the data to the finished folder."""

from __future__ import annotations

import json
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from semsearch.encoders.model_folder import find_model
from semsearch.errors import ArgumentError, MissingExtraError, quoted
from semsearch.training.examples import Notify
from semsearch.training.measures import Measured
from semsearch.training.stages import Recipe, Settings, Stage, is_main, process_count
from semsearch.training.workspace import PLAN, locked_run, publish, training_folder

if TYPE_CHECKING:
    from semsearch.training.trainer import Trainee

#: Packages from the extra `train`.
NEEDED = ("accelerate", "datasets")
#: The settings and results of a run, in the folder of its model, and the model of a stage.
RECORD, MODEL = "training.json", "model"
CARD = "README.md"


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
        choices: what determines the result besides data, base model and recipe, as JSON values.
    """

    stages: Sequence[Stage]
    trainee: Callable[[Path, Stage], Trainee]
    finish: Callable[[Path, Path], Trained]
    choices: dict[str, Any] = field(default_factory=dict)


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

    Under `accelerate launch`, the main process evaluates and writes.

    Args:
        task: the kind of training.
        settings: base model, data, recipes and output folder.
        notify: called with status messages of one line.
        on_progress: called with the number of examples done in the stage, and the fraction done.

    Raises:
        ArgumentError: the data are unsuitable, the output folder exists, or the run to resume
            was started with other settings or data.
        CorpusError: a file cannot be read.
        DatasetNotFoundError: a published set is not on this machine.
        EncoderError: the base model cannot be loaded.
        MissingExtraError: a needed package is not installed.
        TrainingError: the loss is not finite, there is too little data, or another process trains
            in the output folder.
        TrainingStoppedError: the run was interrupted and can be resumed.
    """
    for package in NEEDED:
        if find_spec(package) is None:
            raise MissingExtraError(package, "train", "training")
    if not is_main():
        notify, on_progress = lambda message: None, lambda done, fraction: None
    run = training_folder(settings.output)
    base, fingerprint = _base(settings.base)
    job = task.prepare(settings, notify)
    plan = {
        "trained": task.name,
        "base": settings.base,
        "fingerprint": fingerprint,
        "choices": job.choices,
        "processes": process_count(),
        "stages": [stage.as_json() for stage in job.stages],
    }
    from transformers import set_seed

    from semsearch.training.trainer import broadcast, wait_for_all

    # Problems with a model are found before anything is written.
    set_seed(job.stages[0].recipe.seed)
    trainee = None if (run / PLAN).exists() else job.trainee(base, job.stages[0])
    wait_for_all()  # the main process fills the folder that all have checked
    with ExitStack() as opened:
        if is_main():
            opened.enter_context(locked_run(run, plan))
        folder, results = base, []
        for number, stage in enumerate(job.stages):
            place = run / f"stage-{number}"
            if not broadcast((place / MODEL).is_dir()):
                if number or trainee is None:
                    set_seed(stage.recipe.seed)
                    trainee = job.trainee(folder, stage)
                _train_stage(trainee, place, notify, on_progress)
            results.append(json.loads((place / RECORD).read_text("utf-8")))
            folder = place / MODEL
        if not is_main():
            return Trained(settings.output, [])
        found = job.finish(folder, base)
        if found.is_kept:
            record = plan | {"results": results, "tests": [one._asdict() for one in found.tests]}
            (found.folder / RECORD).write_text(json.dumps(record, indent=2) + "\n", "utf-8")
            _add_to_card(found, task, settings)
            publish(run, found.folder, settings.output)
        else:
            shutil.rmtree(run)
    return found._replace(folder=settings.output)


def _base(spec: str | None) -> tuple[Path, str | None]:
    """The folder of a base model and its fingerprint."""
    if spec is None:
        return Path(), None
    model = find_model(spec)
    model.check_whole()
    if model.pooling:
        raise ArgumentError(
            f"'{spec}': a base model is trained with its own pooling; remove the suffix"
        )
    return model.path, model.fingerprint


def _train_stage(
    trainee: Trainee, place: Path, notify: Notify, on_progress: Callable[[int, float], None]
) -> None:
    """Train one stage, and save the result in its folder."""
    from semsearch.training.trainer import run_stage, wait_for_all

    result = run_stage(trainee, place, notify, on_progress)
    if is_main():
        draft = place / "model.tmp"
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
        trainee.write(draft)
        (place / RECORD).write_text(json.dumps(result._asdict()), "utf-8")
        draft.rename(place / MODEL)
    wait_for_all()


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
