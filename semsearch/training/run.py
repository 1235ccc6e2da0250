"""A training run from the data to the finished folder, whatever is trained."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from semsearch.encoders.model_folder import find_model
from semsearch.encoders.torch_models import quiet_transformers
from semsearch.errors import ArgumentError, MissingExtraError
from semsearch.runs import Workspace
from semsearch.training.card import model_card
from semsearch.training.curve import draw_curve
from semsearch.training.examples import Examples, Notify
from semsearch.training.lessons import Course, Lesson
from semsearch.training.scoring import MEASURES, Measured
from semsearch.training.stage_folder import StageFolder

if TYPE_CHECKING:
    from semsearch.training.stage import Stage

#: What the extra `train` brings.
NEEDED = ("accelerate", "datasets", "matplotlib")

RECORD = "training.json"
CURVE = "training.png"


class Pupil(Protocol):
    """What can be trained: a bi-encoder, a cross-encoder, a bi-encoder in other languages."""

    @property
    def name(self) -> str:
        """What it is called."""

    @property
    def keeps_its_task(self) -> bool:
        """Whether the base model can be tested as the trained one is."""

    def lessons(self, course: Course, notify: Notify) -> tuple[list[Lesson], list[Examples]]:
        """The stages of a run, and its test sets."""

    def loss(self, number: int, training: Examples) -> str:
        """What the loss of a stage is called."""

    def begin(self, folder: Path, number: int, lesson: Lesson) -> Stage:
        """The model of a folder, ready to learn."""

    def load(self, folder: Path) -> Any:
        """The finished model of a folder."""

    def score(self, model: Any, examples: Examples, dimension: int | None = None) -> float:
        """How good a finished model is, by so many leading dimensions of its vectors."""


class Trained(NamedTuple):
    """A finished run."""

    folder: Path
    tests: list[Measured]


def train(
    pupil: Pupil, course: Course, notify: Notify, on_progress: Callable[[int, int], None]
) -> Trained:
    """Train, and put the finished model where it is wanted.

    Args:
        pupil: what is trained.
        course: on what, how and where to.
        notify: is told what a person should know.
        on_progress: is told how many examples of the stage are done, and in all.

    Raises:
        ArgumentError: the data are not fit, or the output folder is taken.
        CorpusError: a file cannot be read.
        DatasetNotFoundError: a published set is not on this machine.
        EncoderError: the base model cannot be loaded.
        MissingExtraError: what trains is not installed.
        TrainingError: the loss is not finite, or another process trains there.
        TrainingStoppedError: it was interrupted and can be resumed.
    """
    for package in NEEDED:
        if find_spec(package) is None:
            raise MissingExtraError(package, "train", "training")
    workspace = Workspace(course.output, resume=course.resume, overwrite=course.overwrite)
    base = find_model(course.base)
    base.check_whole()
    if base.pooling:
        raise ArgumentError(f"'{course.base}': a base model is trained with its own pooling")
    lessons, tests = pupil.lessons(course, notify)
    plan = {
        "trained": pupil.name,
        "base": course.base,
        "fingerprint": base.fingerprint,
        "stages": [
            lesson.as_json() | {"loss": pupil.loss(number, lesson.training)}
            for number, lesson in enumerate(lessons)
        ],
    }
    with workspace.opened(plan):
        folder = base.path
        for number, lesson in enumerate(lessons):
            stage = _stage_folder(workspace, number)
            if not stage.model.is_dir():
                _learn(pupil, folder, number, lesson, stage, notify, on_progress)
            folder = stage.model
        measured = _tested(pupil, folder, tests, base.path, lessons[-1])
        records = [
            json.loads((_stage_folder(workspace, number).path / RECORD).read_text("utf-8"))
            for number in range(len(lessons))
        ]
        record = plan | {"results": records, "tests": [test._asdict() for test in measured]}
        (folder / RECORD).write_text(json.dumps(record, indent=2) + "\n", "utf-8")
        (folder / "README.md").write_text(model_card(course.output.name, record), "utf-8")
        histories = [one["history"] for one in records]
        draw_curve(histories, _measures(lessons), measured, folder / CURVE)
        workspace.publish(folder)
    return Trained(course.output, measured)


def _stage_folder(workspace: Workspace, number: int) -> StageFolder:
    return StageFolder(workspace.folder / f"stage-{number}")


def _learn(
    pupil: Pupil,
    folder: Path,
    number: int,
    lesson: Lesson,
    place: StageFolder,
    notify: Notify,
    on_progress: Callable[[int, int], None],
) -> None:
    """Teach the model of a folder a lesson, and save what comes of it."""
    from semsearch.training.stage import Hooks

    training, development = lesson.training, lesson.development
    notify(
        f"{training.name}: {len(training):,} {training.kind.value}, "
        f"{pupil.loss(number, training)} loss; scored on "
        + (f"{development.name} ({MEASURES[development.kind]})" if development else "nothing")
    )
    stage = pupil.begin(folder, number, lesson)
    checkpoint = place.last_checkpoint()
    if checkpoint is not None:
        notify(f"going on from step {checkpoint.name.rpartition('-')[2]}")
    result = stage.run(place.path, checkpoint, Hooks(notify, on_progress))
    with place.finishing() as draft, quiet_transformers():
        stage.model.save_pretrained(str(draft), create_model_card=False)
        (place.path / RECORD).write_text(json.dumps(result._asdict()), "utf-8")


def _tested(
    pupil: Pupil, folder: Path, tests: Sequence[Examples], before: Path, last: Lesson
) -> list[Measured]:
    """The scores of the model of a folder; beside those of the base model where that counts.

    Of a model with shorter dimensions each, and on the development set if there is no test.
    """
    shorter = last.recipe.dimensions
    if shorter and not tests and last.development:
        tests = [last.development]
    if not tests:
        return []
    model = pupil.load(folder)
    base = pupil.load(before) if pupil.keeps_its_task else None
    dimensions: Sequence[int | None] = (None,)
    if shorter:
        dimensions = sorted({model.get_embedding_dimension(), *shorter}, reverse=True)
    return [
        Measured(
            test.name,
            MEASURES[test.kind],
            pupil.score(model, test, dimension),
            None if base is None else pupil.score(base, test),
            dimension,
        )
        for test in tests
        for dimension in dimensions
    ]


def _measures(lessons: Sequence[Lesson]) -> list[str]:
    return [MEASURES[one.development.kind] if one.development else "" for one in lessons]
