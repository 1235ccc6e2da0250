"""Training, development and test sets, from published sets or files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy

from semsearch.datasets import labelled_names, load_labelled_pairs, load_sts_set, sts_names
from semsearch.datasets.translated import is_translated
from semsearch.errors import ArgumentError, DatasetNotFoundError
from semsearch.training.examples import Examples, Kind, Notify
from semsearch.training.files import labelled, read_examples
from semsearch.training.scales import scaled

#: Lowest and highest gold score of published sets; `SCALES` holds the exceptions.
SCALE = (0.0, 5.0)
SCALES = {"sick": (1.0, 5.0)}

#: Sets whose label says whether a pair is a paraphrase.
PARAPHRASES = ("msrp", "quora")
PARAPHRASE = "1"

#: Development sets of published training sets.
DEVELOPMENT_SETS = {
    "stsbenchmark": "stsbenchmark:dev",
    "stsbenchmark:train": "stsbenchmark:dev",
    "sick": "sick:trial",
    "sick:train": "sick:trial",
    "msrp": "msrp:dev",
    "msrp:train": "msrp:dev",
}

#: Fraction of examples held out for development if no set is named, and their maximum number.
HELD_OUT = 0.1
HELD_OUT_MAX = 1000
#: Sets with fewer examples are not split.
HELD_OUT_FROM = 100


def load_examples(
    spec: str,
    wanted: Sequence[Kind],
    *,
    split: str = "train",
    scale: tuple[float, float] | None = None,
    notify: Notify,
) -> Examples:
    """Load a published set by name (``stsbenchmark:train``), or a file.

    Args:
        spec: a published set as ``NAME`` or ``NAME:SPLIT`` (``stsb-multi:pt:SPLIT``), or a file.
        wanted: the usable kinds of examples, the preferred one first.
        split: the split to use if `spec` names none.
        scale: the lowest and the highest gold score of a file; None guesses and reports it.
        notify: called with what was guessed.

    Raises:
        DatasetNotFoundError: there is no such file, or the published set is not on this machine.
        CorpusError: a file cannot be read.
        ArgumentError: the set has no examples of a wanted kind.
    """
    name, _, named_split = spec.partition(":")
    if is_translated(spec):
        languages, _, named_split = named_split.partition(":")
        name = f"{name}:{languages}"
    published = [*sts_names(), *labelled_names()]
    if name in published or is_translated(name):
        examples = _published(name, named_split or split, wanted)
        if examples.kind not in wanted:
            kinds = " or ".join(kind.value for kind in wanted)
            raise ArgumentError(f"{examples.name} has {examples.kind.value}; {kinds} are needed")
        return examples
    path = Path(spec).expanduser()
    if not path.exists():
        names = ", ".join(published)
        raise DatasetNotFoundError(f"no such file: {spec} (published sets: {names})")
    return read_examples(path, wanted, scale, notify)


def found_sts(names: Iterable[str], split: str, notify: Notify) -> list[Examples]:
    """Those of the named sets of scored pairs that are on this machine."""
    found = []
    for name in names:
        try:
            load_sts_set(name, split)
        except (DatasetNotFoundError, ArgumentError) as error:
            notify(f"not tested on {name}: {error}")
        else:
            found.append(load_examples(name, (Kind.SCORED,), split=split, notify=notify))
    return found


def held_out(
    examples: Examples, seed: int, most: int = HELD_OUT_MAX
) -> tuple[Examples, Examples | None]:
    """Split a set at random into the rest and a held-out part; None for a small set."""
    if len(examples) < HELD_OUT_FROM:
        return examples, None
    rows = numpy.random.default_rng(seed).permutation(len(examples)).tolist()
    count = min(most, int(len(rows) * HELD_OUT))
    held = replace(examples.take(sorted(rows[:count])), name=f"{examples.name} (held out)")
    return examples.take(sorted(rows[count:])), held


def _published(name: str, split: str, wanted: Sequence[Kind]) -> Examples:
    """A published set by name; only its paraphrases if labelled pairs cannot be used."""
    known = f"{name}:{split}"
    if name in sts_names() or is_translated(name):
        scored = load_sts_set(name, split).pairs
        texts = [pair.left for pair in scored], [pair.right for pair in scored]
        places = _places(known, len(scored))
        gold = [pair.gold for pair in scored]
        targets, scale = scaled(gold, places, SCALES.get(name, SCALE), known, lambda message: None)
        return Examples(known, Kind.SCORED, texts, places, targets, scale=scale)
    pairs = load_labelled_pairs(name, split)
    are_positive = Kind.LABELLED not in wanted and Kind.POSITIVE in wanted and name in PARAPHRASES
    if are_positive:
        pairs = [pair for pair in pairs if pair.label == PARAPHRASE]
    texts = [pair.left for pair in pairs], [pair.right for pair in pairs]
    places = _places(known, len(pairs))
    if are_positive:
        return Examples(known, Kind.POSITIVE, texts, places, [])
    return labelled(known, texts, places, [pair.label for pair in pairs])


def _places(name: str, count: int) -> list[str]:
    return [f"{name}, pair {number}" for number in range(1, count + 1)]
