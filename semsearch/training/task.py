"""What can be trained: the interface of all tasks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from semsearch.training.examples import Examples, Notify
from semsearch.training.recipe import Recipe
from semsearch.training.scoring import MEASURES, Measured
from semsearch.training.stages import Settings, Stage

if TYPE_CHECKING:
    from semsearch.training.stage_trainer import StageTrainer


class Task(ABC):
    """One kind of training."""

    #: What it is called in commands and records.
    name: str
    #: The first sentences of a model's card.
    description: str
    #: Whether the base model can be tested as the trained one is.
    keeps_its_task = False
    #: The hyperparameters of those who choose none.
    recipe = Recipe()

    def recipe_for(self, base: str | None) -> Recipe:
        """The default hyperparameters for a base model."""
        del base
        return self.recipe

    def choices(self) -> dict[str, Any]:
        """What decides the result besides data, base model and recipe, as JSON values."""
        return {}

    @abstractmethod
    def stages(self, settings: Settings, notify: Notify) -> tuple[list[Stage], list[Examples]]:
        """The stages of a run, and its test sets."""

    @abstractmethod
    def loss(self, number: int, training: Examples) -> str:
        """The name of a stage's loss."""

    @abstractmethod
    def trainer(self, folder: Path, number: int, stage: Stage) -> StageTrainer:
        """The model of a folder with what a stage, by its number, trains it on."""

    def load(self, folder: Path) -> Any:
        """The finished model of a folder, for test sets."""
        raise NotImplementedError

    def score(self, model: Any, examples: Examples, dimension: int | None = None) -> float:
        """How good a finished model is, by so many leading dimensions of its vectors."""
        raise NotImplementedError

    def finished(self, folder: Path, base: Path) -> Path:
        """The folder of the model after choices on held-out data; they can be made again.

        Args:
            folder: the trained model, in a folder of the run.
            base: the base model.
        """
        del base
        return folder

    def measured(
        self, folder: Path, base: Path, tests: Sequence[Examples], last: Stage
    ) -> list[Measured]:
        """The scores of the model of a folder; beside those of the base model where that counts.

        Of a model with shorter dimensions each, and on the development set if there is no test.
        """
        shorter = last.recipe.dimensions
        if shorter and not tests and last.development:
            tests = [last.development]
        if not tests:
            return []
        model = self.load(folder)
        before = self.load(base) if self.keeps_its_task else None
        dimensions: Sequence[int | None] = (None,)
        if shorter:
            dimensions = sorted({model.get_embedding_dimension(), *shorter}, reverse=True)
        return [
            Measured(
                test.name,
                MEASURES[test.kind],
                self.score(model, test, dimension),
                None if before is None else self.score(before, test),
                dimension,
            )
            for test in tests
            for dimension in dimensions
        ]

    def is_worth_keeping(self) -> bool:
        """Whether the measured model is written."""
        return True
