"""A training run of any task, from the data to the finished folder."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from semsearch.encoders.model_folder import find_model
from semsearch.encoders.torch_loading import quiet_transformers
from semsearch.errors import ArgumentError, MissingExtraError
from semsearch.runs import Workspace
from semsearch.training.card import model_card
from semsearch.training.curve import draw_curve
from semsearch.training.examples import Callbacks, Notify
from semsearch.training.processes import broadcast, failing_together, is_main, process_count
from semsearch.training.scoring import MEASURES, Measured
from semsearch.training.stages import Settings, Stage
from semsearch.training.task import Task

if TYPE_CHECKING:
    from semsearch.training.stage_trainer import StageTrainer

#: Packages from the extra `train`.
NEEDED = ("accelerate", "datasets", "matplotlib")

RECORD = "training.json"
#: The model in the folder of a stage.
MODEL = "model"
CURVE = "training.png"


class Trained(NamedTuple):
    """A finished run."""

    folder: Path
    tests: list[Measured]
    is_kept: bool = True  #: whether the model was written


def train(
    task: Task,
    settings: Settings,
    notify: Notify = lambda message: None,
    on_progress: Callable[[int, float], None] = lambda done, fraction: None,
) -> Trained:
    """Train a model, and write it to the output folder.

    Under `accelerate launch` all processes return the same; if the main one raises an error, the
    others exit.

    Args:
        task: the kind of training.
        settings: base model, data, recipes and output folder.
        notify: called with status messages of one line.
        on_progress: called with the number of examples done in the stage, and the fraction done.

    Raises:
        ArgumentError: the data are unsuitable, the output folder is taken, or the run to resume
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
    with failing_together():
        if process_count() > 1 and "-" in settings.data:
            raise ArgumentError("only one process can read standard input; name a file")
        workspace = Workspace(settings.output, resume=settings.resume, overwrite=settings.overwrite)
        base, fingerprint = _base(settings.base)
        stages, tests = task.stages(settings, notify)
        _check_patience(stages)
        plan = {
            "trained": task.name,
            "base": settings.base,
            "fingerprint": fingerprint,
            "choices": task.choices(),
            "processes": process_count(),
            "stages": [
                stage.as_json() | {"loss": task.loss(number, stage.training)}
                for number, stage in enumerate(stages)
            ],
        }
        # Problems with a model are found before anything is written.
        ready = [] if settings.resume else [task.trainer(base, 0, stages[0])]
    with ExitStack() as opened:
        with failing_together():
            if is_main():
                opened.enter_context(workspace.opened(plan))
        folder = base
        places = [workspace.folder / f"stage-{number}" for number in range(len(stages))]
        for number, (stage, place) in enumerate(zip(stages, places, strict=True)):
            if not broadcast((place / MODEL).is_dir()):
                with failing_together():
                    trainer = ready.pop() if ready else task.trainer(folder, number, stage)
                _announce(stage, task.loss(number, stage.training), notify)
                _run(trainer, place, Callbacks(notify, on_progress))
            folder = place / MODEL
        trained = Trained(settings.output, [], is_kept=False)
        with failing_together():
            if is_main():
                folder = task.finished(folder, base)
                measured = task.measured(folder, base, tests, stages[-1])
                trained = Trained(settings.output, measured, task.is_worth_keeping())
        if is_main() and trained.is_kept:
            _describe(folder, places, plan, task, stages, trained)
            workspace.publish(folder)
        elif is_main():
            workspace.discard()
    return broadcast(trained)


def _check_patience(stages: Sequence[Stage]) -> None:
    has_any = any(stage.development for stage in stages)
    if not has_any and any(stage.recipe.patience for stage in stages):
        raise ArgumentError("--patience needs a development set, and there is none")


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


def _describe(
    model: Path,
    places: Sequence[Path],
    plan: dict[str, Any],
    task: Task,
    stages: Sequence[Stage],
    trained: Trained,
) -> None:
    """Write the record, the card and the curve of a run beside its model."""
    records = [json.loads((place / RECORD).read_text("utf-8")) for place in places]
    record = plan | {"results": records, "tests": [test._asdict() for test in trained.tests]}
    (model / RECORD).write_text(json.dumps(record, indent=2) + "\n", "utf-8")
    card = model_card(trained.folder.name, task.description, record)
    (model / "README.md").write_text(card, "utf-8")
    histories = [one["history"] for one in records]
    if any(histories):
        draw_curve(histories, _measures(stages), trained.tests, model / CURVE)


def _announce(stage: Stage, loss: str, notify: Notify) -> None:
    training, development, recipe = stage
    measured = f"{development.name} ({MEASURES[development.kind]})" if development else "nothing"
    if recipe.steps != 0:
        notify(
            f"{training.name}: {len(training):,} {training.kind.value}, {loss} loss; "
            f"scored on {measured}"
        )


def _run(trainer: StageTrainer, place: Path, callbacks: Callbacks) -> None:
    """Train one stage, and save the result in its folder."""
    checkpoint = broadcast(_last_checkpoint(place))
    if checkpoint is not None:
        callbacks.notify(f"resuming from step {checkpoint.name.rpartition('-')[2]}")
    result = trainer.run(place, checkpoint, callbacks)
    if is_main():
        draft = place / "model.tmp"
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
        with quiet_transformers():
            trainer.write(draft)
        (place / RECORD).write_text(json.dumps(result._asdict()), "utf-8")
        draft.rename(place / MODEL)


def _last_checkpoint(place: Path) -> Path | None:
    """The newest complete checkpoint: the trainer writes its state last."""
    states = place.glob("checkpoint-*/trainer_state.json")
    whole = [state.parent for state in states if state.stat().st_size]
    return max(whole, key=lambda folder: int(folder.name.rpartition("-")[2]), default=None)


def _measures(stages: Sequence[Stage]) -> list[str]:
    return [MEASURES[one.development.kind] if one.development else "" for one in stages]
