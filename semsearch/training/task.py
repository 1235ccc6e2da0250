"""The interface of all training tasks."""

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

    #: The name in commands and records.
    name: str
    #: The first sentences of the model card.
    description: str
    #: Whether the base model can be tested in the same way as the trained one.
    keeps_its_task = False
    #: The default hyperparameters.
    recipe = Recipe()

    def recipe_for(self, base: str | None) -> Recipe:
        """The default hyperparameters for a base model."""
        del base
        return self.recipe

    def choices(self) -> dict[str, Any]:
        """What determines the result besides data, base model and recipe, as JSON values."""
        return {}

    @abstractmethod
    def stages(self, settings: Settings, notify: Notify) -> tuple[list[Stage], list[Examples]]:
        """The stages of a run, and its test sets."""

    @abstractmethod
    def loss(self, number: int, training: Examples) -> str:
        """The name of a stage's loss."""

    @abstractmethod
    def trainer(self, folder: Path, number: int, stage: Stage) -> StageTrainer:
        """A trainer of the model in a folder for a stage and its number."""

    def load(self, folder: Path) -> Any:
        """The finished model in a folder, to score it on test sets."""
        raise NotImplementedError

    def score(self, model: Any, examples: Examples, dimension: int | None = None) -> float:
        """The score of a finished model, on the first `dimension` dimensions of its vectors."""
        raise NotImplementedError

    def finished(self, folder: Path, base: Path) -> Path:
        """The folder of the model after choices on held-out data, which can be repeated.

        Args:
            folder: the trained model, in a folder of the run.
            base: the base model.
        """
        del base
        return folder

    def measured(
        self, folder: Path, base: Path, tests: Sequence[Examples], last: Stage
    ) -> list[Measured]:
        """The scores of the model in a folder, beside those of the base model if comparable.

        A model with shorter dimensions is scored on each, and on the development set if there is
        no test set.
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
        """Whether to write the model, after it was measured."""
        return True
