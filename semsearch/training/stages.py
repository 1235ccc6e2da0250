"""Settings of a run, and the stages that follow from them, their data checked."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from semsearch.errors import ArgumentError
from semsearch.training.checks import check_trainable, without_leaks
from semsearch.training.data import DEVELOPMENT_SETS, held_out, load_examples
from semsearch.training.examples import Examples, Kind, Notify, mixed
from semsearch.training.recipe import Recipe

T = TypeVar("T")

#: The name of a development set that stands for none.
NO_DEVELOPMENT = "none"


@dataclass(frozen=True)
class Settings:
    """What a user chooses for a run.

    Args:
        base: the model to begin with, as `load_encoder` names it; None begins from scratch.
        output: the folder for the trained model.
        data: training sets, by name or file, one a stage.
        recipes: one for all, or one for each of `data`.
        development: a set by name or file; ``none`` for none; None takes the published one that
            belongs to the data, or holds out a part of the data.
        tests: sets that the finished model is tested on.
        mix: train on all data in one stage, shuffled.
        scale: the lowest and the highest gold score in files; None finds it out.
        keep_leaks: train on pairs that also stand in the development or test sets.
        resume: go on with an unfinished run.
        overwrite: replace what is in the output folder.
    """

    base: str | None
    output: Path
    data: Sequence[str]
    recipes: Sequence[Recipe]
    development: str | None = None
    tests: Sequence[str] = ()
    mix: bool = False
    scale: tuple[float, float] | None = None
    keep_leaks: bool = False
    resume: bool = False
    overwrite: bool = False


class Stage(NamedTuple):
    """One stage of a run: its data, and how the model is trained on them."""

    training: Examples
    development: Examples | None
    recipe: Recipe

    def as_json(self) -> dict[str, Any]:
        """What decides its result, as JSON values."""
        development = self.development
        return {
            "data": _digest(self.training),
            "development": development and _digest(development),
            "recipe": self.recipe.as_json(),
        }


def stages_of(
    settings: Settings,
    kinds: Callable[[int], Sequence[Kind]],
    testable: Callable[[Examples], Sequence[Kind]],
    notify: Notify,
) -> tuple[list[Stage], list[Examples]]:
    """The stages of a run and its test sets, checked and without leaks.

    Args:
        settings: those of the run.
        kinds: the examples that the stage of a number, counted from 0, can learn from.
        testable: the examples that a model can be scored on, by what it is trained on.
        notify: called with what was done to the data.

    Raises:
        ArgumentError: the data are not fit.
        CorpusError: a file cannot be read.
        DatasetNotFoundError: a published set is not on this machine.
    """
    sets = [
        load_examples(spec, kinds(number), scale=settings.scale, notify=notify)
        for number, spec in enumerate(settings.data)
    ]
    names = list(settings.data)
    if settings.mix and len(sets) > 1:
        sets, names = [mixed(sets)], [" + ".join(names)]
    recipes = one_each(settings.recipes, len(sets), "recipe")
    final = testable(sets[-1])
    tests = [
        _matching(
            load_examples(spec, final, split="test", scale=settings.scale, notify=notify), sets[-1]
        )
        for spec in settings.tests
    ]
    stages = []
    for training, name, recipe in zip(sets, names, recipes, strict=True):
        check_trainable(training)
        development = _development(settings, training, name, testable(training), notify)
        rest = training
        if development is None and settings.development != NO_DEVELOPMENT:
            rest, development = held_out(training, recipe.seed)
            if development is not None:
                notify(f"{name}: {len(development):,} of its examples are held out")
        held = [*tests, *([development] if development else [])]
        rest = without_leaks(rest, held, settings.keep_leaks, notify)
        check_trainable(rest)
        stages.append(Stage(rest, development, recipe.for_kind(rest.kind)))
    return stages, tests


def one_each(given: Sequence[T], count: int, what: str) -> list[T]:
    """The values for each of `count` stages: one for all, or as many as there are.

    Raises:
        ArgumentError: it is another number.
    """
    if len(given) == count:
        return list(given)
    if len(given) == 1:
        return list(given) * count
    raise ArgumentError(
        f"{what} is given {len(given)} times for {count} stages; give it once, or once a stage"
    )


def _development(
    settings: Settings, training: Examples, name: str, kinds: Sequence[Kind], notify: Notify
) -> Examples | None:
    """The set that is named, or the one that belongs to the training set."""
    if settings.development == NO_DEVELOPMENT:
        return None
    spec = settings.development or DEVELOPMENT_SETS.get(name)
    if spec is None:
        return None
    development = load_examples(spec, kinds, split="dev", scale=settings.scale, notify=notify)
    return _matching(development, training)


def _matching(other: Examples, training: Examples) -> Examples:
    """A labelled set by the training set's labels."""
    return other.with_labels(training.labels) if other.labels and training.labels else other


def _digest(examples: Examples) -> dict[str, Any]:
    content = json.dumps([examples.texts, examples.targets, examples.labels])
    return {
        "name": examples.name,
        "kind": examples.kind.value,
        "examples": len(examples),
        "sha256": hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest(),
    }
