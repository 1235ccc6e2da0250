"""Settings of a run, and its stages, with checked data."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from semsearch.errors import ArgumentError
from semsearch.texts import quantity
from semsearch.training.checks import check_trainable, without_leaks
from semsearch.training.data import DEVELOPMENT_SETS, held_out, load_examples
from semsearch.training.examples import Examples, Kind, Notify, mixed
from semsearch.training.recipe import Recipe

T = TypeVar("T")

#: The name for no development set.
NO_DEVELOPMENT = "none"


@dataclass(frozen=True)
class Settings:
    """A user's settings for a run.

    Args:
        base: the base model, as a spec for `load_encoder`; None starts from scratch.
        output: the folder for the trained model.
        data: training sets, by name or file, one per stage.
        recipes: one for all, or one for each of `data`.
        development: a set by name or file; ``none`` for none; None takes the published one for
            the data, or holds out a part of the data.
        tests: test sets for the finished model.
        mix: train on all data in one stage, shuffled.
        scale: the lowest and the highest possible gold score in files; None guesses them.
        keep_leaks: train also on pairs that are in the development or test sets.
        resume: continue an unfinished run.
        overwrite: replace the model or discard the run that is there.
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
    """One stage of a run: its data and hyperparameters."""

    training: Examples
    development: Examples | None
    recipe: Recipe

    def as_json(self) -> dict[str, Any]:
        """Everything that determines its result, as JSON values."""
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
    *,
    keeps_head: bool = True,
) -> tuple[list[Stage], list[Examples]]:
    """The stages of a run and its test sets, checked and without leaks.

    Args:
        settings: those of the run.
        kinds: the kinds of examples that a stage accepts, by its number, from 0.
        testable: the kinds of examples that a model can be scored on, by its training set.
        notify: called with messages about the data.
        keeps_head: whether the finished model has its classifier, and can be tested on labels.

    Raises:
        ArgumentError: the data are unsuitable.
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
    final = [kind for kind in testable(sets[-1]) if keeps_head or kind is not Kind.LABELLED]
    tests = [
        _matching(
            load_examples(spec, final, split="test", scale=settings.scale, notify=notify), sets[-1]
        )
        for spec in settings.tests
    ]
    parts = []
    for training, name, recipe in zip(sets, names, recipes, strict=True):
        check_trainable(training)
        development = _development(settings, training, name, testable(training), notify)
        rest = training
        if development is None and settings.development != NO_DEVELOPMENT:
            rest, development = held_out(training, recipe.seed)
            if development is not None:
                notify(f"{name}: {len(development):,} of its examples are held out")
        parts.append(Stage(rest, development, recipe))
    developments = [part.development for part in parts if part.development]
    if settings.scale and not any(one.scale for one in [*sets, *tests, *developments]):
        raise ArgumentError("--scale is for gold scores; the data have none")
    # A pair that chooses the checkpoint of a later stage is held out from earlier ones, too.
    held = [*tests, *developments]
    stages = []
    for training, development, recipe in parts:
        rest = without_leaks(training, held, settings.keep_leaks, notify)
        check_trainable(rest)
        stages.append(Stage(rest, development, recipe.for_kind(rest.kind)))
    return stages, tests


def one_each(given: Sequence[T], count: int, what: str) -> list[T]:
    """The value for each of `count` stages, from one for all or one per stage.

    Raises:
        ArgumentError: another number of values is given.
    """
    if len(given) == count:
        return list(given)
    if len(given) == 1:
        return list(given) * count
    raise ArgumentError(
        f"{what} is given {quantity(len(given), 'time')} for "
        f"{quantity(count, 'stage')}; give it once, or once per stage"
    )


def _development(
    settings: Settings, training: Examples, name: str, kinds: Sequence[Kind], notify: Notify
) -> Examples | None:
    """The development set that is named, or the published one for the training set."""
    if settings.development == NO_DEVELOPMENT:
        return None
    spec = settings.development or DEVELOPMENT_SETS.get(name)
    if spec is None:
        return None
    development = load_examples(spec, kinds, split="dev", scale=settings.scale, notify=notify)
    return _matching(development, training)


def _matching(other: Examples, training: Examples) -> Examples:
    """A labelled set with targets by the training set's labels; other sets unchanged."""
    return other.with_labels(training.labels) if other.labels and training.labels else other


def _digest(examples: Examples) -> dict[str, Any]:
    content = json.dumps([examples.texts, examples.targets, examples.labels])
    return {
        "name": examples.name,
        "kind": examples.kind.value,
        "examples": len(examples),
        "labels": list(examples.labels),
        "sha256": hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest(),
    }
