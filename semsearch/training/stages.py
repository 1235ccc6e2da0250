"""What a user chooses for a run, and the stages of it: data and hyperparameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from semsearch.errors import ArgumentError, quantity
from semsearch.training.examples import Examples, Kind

T = TypeVar("T")

#: The mutually exclusive lengths of training, all unset.
LENGTHS: dict[str, Any] = dict.fromkeys(("epochs", "steps"))


class Loss(Enum):
    """The losses of a bi-encoder (Reimers & Gurevych 2019, section 3, unless noted)."""

    SOFTMAX = "softmax"  #: classification of u, v and |u - v|
    CONTRASTIVE = "contrastive"  #: yes pairs near, no pairs apart (Hadsell et al. 2006)
    COSINE = "cosine"  #: mean squared error of the cosine to the gold score
    COSENT = "cosent"  #: order of the cosines by gold score (Su 2022, CoSENT)
    RANKING = "ranking"  #: the positive against in-batch negatives (Henderson et al. 2017)
    TRIPLET = "triplet"  #: the positive nearer than the negative, by a margin

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of examples that the loss accepts, the best first."""
        return {
            Loss.SOFTMAX: (Kind.LABELLED,),
            Loss.CONTRASTIVE: (Kind.LABELLED,),
            Loss.COSINE: (Kind.SCORED,),
            Loss.COSENT: (Kind.SCORED,),
            Loss.RANKING: (Kind.TRIPLETS, Kind.POSITIVE),
            Loss.TRIPLET: (Kind.TRIPLETS,),
        }[self]


@dataclass(frozen=True)
class Recipe:
    """Hyperparameters; the defaults are those of Sentence-BERT (Reimers & Gurevych 2019).

    Args:
        epochs: passes over the data; fractions are possible, and 0 leaves the model untrained.
            Without epochs and steps: 4 for scored pairs and 1 for larger sets, as in the paper; 3
            for translations.
        steps: number of training steps, instead of `epochs`.
        batch_size: examples per step.
        learning_rate: the peak, after the warm-up; the rate then falls linearly to 0.
        warmup: fraction of the steps in which the learning rate rises linearly from 0.
        weight_decay: of AdamW; not applied to biases and normalisation layers.
        head_learning_rate: the peak for the softmax loss's classifier. The paper uses that of the
            model, with which a classifier stays nearly random for some thousand pairs.
        embedding_learning_rate: the peak for the word embeddings; None means `learning_rate`.
        seed: of shuffling, dropout, new heads and held-out data.
        evaluate_every: steps between evaluations, each with a checkpoint; None means an epoch or
            a tenth of `steps`, but at most 1,000 steps.
        patience: stop after this many evaluations without a better score; None never does.
        max_tokens: maximum tokens read per text; None means the base model's limit.
    """

    epochs: float | None = None
    steps: int | None = None
    batch_size: int = 16
    learning_rate: float = 2e-5
    warmup: float = 0.1
    weight_decay: float = 0.01
    head_learning_rate: float = 1e-3
    embedding_learning_rate: float | None = None
    seed: int = 1
    evaluate_every: int | None = None
    patience: int | None = None
    max_tokens: int | None = None

    def __post_init__(self) -> None:
        if None not in (self.epochs, self.steps):
            raise ArgumentError("epochs and steps exclude each other; give one of them")
        if self.epochs is not None and self.epochs < 0:
            raise ArgumentError(f"epochs must be at least 0, not {self.epochs:g}")
        for name in ("steps", "batch_size", "learning_rate", "patience"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ArgumentError(f"{name} must be above 0, not {value:g}")
        if not 0 <= self.warmup < 1:
            raise ArgumentError(f"warmup must be at least 0 and below 1, not {self.warmup:g}")

    def changed(self, **given: Any) -> Recipe:
        """The recipe with other values, except those that are None; a length replaces another."""
        values = {name: value for name, value in given.items() if value is not None}
        if values.keys() & LENGTHS.keys():
            values = LENGTHS | values
        return replace(self, **values)

    def for_kind(self, kind: Kind) -> Recipe:
        """The same recipe, with the default number of epochs if no length is given."""
        if self.epochs is not None or self.steps is not None:
            return self
        return replace(self, epochs={Kind.SCORED: 4.0, Kind.TRANSLATIONS: 3.0}.get(kind, 1.0))


@dataclass(frozen=True)
class Settings:
    """A user's settings for a run.

    Args:
        base: the base model, as a spec for `load_encoder`; None starts from scratch.
        output: the folder for the trained model; a run that was stopped there is resumed.
        data: training sets, by name or file, one per stage.
        recipes: one for all, or one for each of `data`.
        development: a set by name or file; ``none`` for none; None takes the published one for
            the data, or holds out a part of the data.
        tests: test sets for the finished model.
    """

    base: str | None
    output: Path
    data: Sequence[str]
    recipes: Sequence[Recipe]
    development: str | None = None
    tests: Sequence[str] = ()

    @property
    def recipe(self) -> Recipe:
        """The recipe of a run of one stage."""
        return self.recipes[0]


class Stage(NamedTuple):
    """One stage of a run: its data, hyperparameters and loss."""

    training: Examples
    development: Examples | None
    recipe: Recipe
    loss: str

    def as_json(self) -> dict[str, Any]:
        """What an interrupted run must have in common with one that continues it."""
        return {
            "data": self.training.name,
            "kind": self.training.kind.value,
            "examples": len(self.training),
            "development": self.development and self.development.name,
            "recipe": asdict(self.recipe),
            "loss": self.loss,
        }


def per_stage(given: Sequence[T], count: int, what: str) -> list[T]:
    """The value for each of `count` stages, from one for all or one per stage."""
    if len(given) not in (1, count):
        times = f"{quantity(len(given), 'time')} for {quantity(count, 'stage')}"
        raise ArgumentError(f"{what} is given {times}; give it once, or once per stage")
    return list(given) if len(given) == count else list(given) * count
