"""Data sets for training, by the name of a published set or by file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy

from semsearch.datasets import read_stsbenchmark
from semsearch.errors import ArgumentError, DatasetNotFoundError
from semsearch.training.examples import Examples, Kind, Notify
from semsearch.training.files import read_examples
from semsearch.training.scales import scaled

__all__ = ["held_out", "load_examples", "published_development_set"]

SPLITS = ("train", "dev", "test")

#: How much is held out for development where no set is named, and how much at most.
HELD_OUT = 0.1
HELD_OUT_MAX = 1000
#: A set that is smaller has nothing to spare.
HELD_OUT_FROM = 100


def load_examples(
    spec: str,
    wanted: Sequence[Kind],
    *,
    split: str = "train",
    scale: tuple[float, float] | None = None,
    notify: Notify,
) -> Examples:
    """A set by its name (``stsbenchmark:train``) or file.

    Args:
        spec: ``NAME``, ``NAME:SPLIT`` or a file.
        wanted: the kinds of examples that can be used, the best first.
        split: the one to take where `spec` names none.
        scale: the lowest and the highest gold score in a file; None finds it out, and tells.
        notify: is told what was taken for what.

    Raises:
        DatasetNotFoundError: there is no such file, or the published set is not on this machine.
        CorpusError: a file cannot be read.
        ArgumentError: the set has other examples than those wanted, or none.
    """
    name, _, named_split = spec.partition(":")
    if name == "stsbenchmark":
        examples = _stsbenchmark(named_split or split)
        if examples.kind not in wanted:
            kinds = " or ".join(kind.value for kind in wanted)
            raise ArgumentError(f"{examples.name} has {examples.kind.value}; {kinds} are needed")
        return examples
    path = Path(spec).expanduser()
    if not path.exists():
        raise DatasetNotFoundError(f"no such file: {spec} (nor a published set: stsbenchmark)")
    return read_examples(path, wanted, scale, notify)


def published_development_set(spec: str) -> str | None:
    """The set that belongs to a published training set."""
    return "stsbenchmark:dev" if spec in ("stsbenchmark", "stsbenchmark:train") else None


def held_out(examples: Examples, seed: int) -> tuple[Examples, Examples | None]:
    """The set without a random part of it, and that part; None if the set is small."""
    if len(examples) < HELD_OUT_FROM:
        return examples, None
    rows = numpy.random.default_rng(seed).permutation(len(examples)).tolist()
    count = min(HELD_OUT_MAX, int(len(rows) * HELD_OUT))
    held = replace(examples.take(sorted(rows[:count])), name=f"{examples.name} (held out)")
    return examples.take(sorted(rows[count:])), held


def _stsbenchmark(split: str) -> Examples:
    if split not in SPLITS:
        raise ArgumentError(f"stsbenchmark has no split '{split}' (splits: {', '.join(SPLITS)})")
    pairs = read_stsbenchmark(split)
    name = f"stsbenchmark:{split}"
    places = [f"{name}, pair {number}" for number in range(1, len(pairs) + 1)]
    gold = [pair.gold for pair in pairs]
    targets, scale = scaled(gold, places, (0.0, 5.0), name, lambda message: None)
    texts = ([pair.left for pair in pairs], [pair.right for pair in pairs])
    return Examples(name, Kind.SCORED, texts, places, targets, scale=scale)
