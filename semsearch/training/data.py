"""Training, development and test sets, from published sets or files, and the stages they make."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import numpy

from semsearch.corpus import good_rows, open_table
from semsearch.corpus.roles import GRADE, LABEL, NEGATIVE, SCORE, find_column, find_pair, plain_name
from semsearch.corpus.table import Row
from semsearch.errors import (
    ArgumentError,
    BadRowError,
    ColumnNotFoundError,
    DatasetNotFoundError,
    quantity,
)
from semsearch.evaluation.datasets import (
    labelled_names,
    load_labelled_pairs,
    load_sts_set,
    sts_names,
)
from semsearch.evaluation.datasets.sts import is_translated
from semsearch.evaluation.datasets.textlines import cell
from semsearch.training.examples import (
    Examples,
    Kind,
    Notify,
    is_positive,
    labelled,
    without_overlap,
)
from semsearch.training.stages import Settings, Stage, per_stage

#: Lowest and highest gold score of published sets; `SCALES` holds the exceptions.
SCALE = (0.0, 5.0)
SCALES = {"sick": (1.0, 5.0)}
#: The ends of common scales of files; all begin at 0.
HIGHEST_SCORES = (1, 5, 10, 100)

#: Development splits of published training sets.
DEVELOPMENT_SPLITS = {"stsbenchmark": "dev", "sick": "trial", "msrp": "dev"}
#: The name for no development set.
NO_DEVELOPMENT = "none"

#: Fraction of examples held out for development if no set is named, and their maximum number.
HELD_OUT, HELD_OUT_MAX = 0.1, 1000
#: Sets with fewer examples are not split.
HELD_OUT_FROM = 100

NEEDED = {
    Kind.SCORED: "'sentence1', 'sentence2', 'score'",
    Kind.LABELLED: "'sentence1', 'sentence2', 'label'",
    Kind.POSITIVE: "'anchor', 'positive'",
    Kind.TRIPLETS: "'anchor', 'positive', 'negative'",
}

_WHOLE = re.compile(r"^(-?[0-9]+)\.0+$")
_FRACTION = re.compile(r"-?[0-9]*\.[0-9]+")
#: SNLI's label of pairs on which its annotators did not agree.
NO_LABEL = "-"


def load_examples(
    spec: str, wanted: Sequence[Kind], *, split: str = "train", notify: Notify
) -> Examples:
    """Load a published set by name (``stsbenchmark:train``), or a file.

    A file is read by its column names. The preferred one of the wanted kinds of examples is first;
    `split` is for a published set without one.

    Raises:
        ArgumentError: the set has no examples of a wanted kind.
        CorpusError: the file, its columns or a row cannot be read.
        DatasetNotFoundError: there is no such file, or the set is not on this machine.
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
    return _read_file(path, wanted, notify)


def load_tests(settings: Settings, notify: Notify) -> list[Examples]:
    """The test sets that the user names, of pairs that any encoder can be scored on."""
    kinds = (Kind.SCORED, Kind.POSITIVE)
    return [load_examples(spec, kinds, split="test", notify=notify) for spec in settings.tests]


def found_sts(names: Iterable[str], split: str, notify: Notify) -> list[Examples]:
    """Those of the named sets of scored pairs that are on this machine."""
    found = []
    for name in names:
        try:
            found.append(load_examples(name, (Kind.SCORED,), split=split, notify=notify))
        except (DatasetNotFoundError, ArgumentError) as error:
            notify(f"not tested on {name}: {error}")
    return found


def _published(name: str, split: str, wanted: Sequence[Kind]) -> Examples:
    """A published set by name; only its positive pairs if labelled pairs cannot be used."""
    known = f"{name}:{split}"
    if name in sts_names() or is_translated(name):
        scored = load_sts_set(name, split).pairs
        texts = [pair.left for pair in scored], [pair.right for pair in scored]
        low, high = SCALES.get(name, SCALE)
        targets = [(pair.gold - low) / (high - low) for pair in scored]
        return Examples(known, Kind.SCORED, texts, targets)
    pairs = load_labelled_pairs(name, split)
    has_labels = Kind.LABELLED in wanted or Kind.POSITIVE not in wanted
    if not has_labels:
        pairs = [pair for pair in pairs if is_positive(pair.label)]
    texts = [pair.left for pair in pairs], [pair.right for pair in pairs]
    if has_labels:
        return labelled(known, texts, [pair.label for pair in pairs])
    return Examples(known, Kind.POSITIVE, texts, [])


def _read_file(path: Path, wanted: Sequence[Kind], notify: Notify) -> Examples:
    """The examples of a file, as documented at `load_examples`."""
    with open_table(path) as table:
        name, names = table.name, table.columns
        chosen = _columns(names, wanted)
        if chosen is None:
            needed = " or ".join(NEEDED[one] for one in wanted)
            raise ColumnNotFoundError(
                f"{name}: columns {needed} are needed (columns: {', '.join(names)}); rename them"
            )
        rows = list(good_rows(table))
    kind, used, value = chosen
    labels: list[str] = []
    if value and kind is not Kind.SCORED:
        found = [(row, _label(row, value)) for row in rows]
        kept = [(row, label) for row, label in found if label != NO_LABEL]
        if kind is Kind.POSITIVE:
            kept = [(row, label) for row, label in kept if _belong_together(label, value)]
            notify(f"{name}: {len(kept):,} of {len(rows):,} pairs are positive by '{value}'")
        elif len(kept) < len(rows):
            notify(f"{name}: {quantity(len(rows) - len(kept), 'pair')} without a label left out")
        rows, labels = [row for row, _ in kept], [label for _, label in kept]
    elif kind is Kind.POSITIVE and (unused := [one for one in names if one not in used]):
        notify(f"{name}: treating every pair as positive; ignoring columns {', '.join(unused)}")
    texts = tuple([_text(row, column) for row in rows] for column in used)
    if kind is Kind.LABELLED:
        return labelled(name, texts, labels)
    targets = _scaled(rows, value, name, notify) if kind is Kind.SCORED and rows else []
    return Examples(name, kind, texts, targets)


def _columns(names: Sequence[str], wanted: Sequence[Kind]) -> tuple[Kind, list[str], str] | None:
    """The first wanted kind that a table has, its columns of texts, and of a label or score."""
    pair = find_pair(names)
    if pair is None:
        return None
    # 'paraphrase' is a text or, beside two texts, a label.
    label = find_column([name for name in names if name not in pair], (*LABEL, *GRADE))
    negative, score = find_column(names, NEGATIVE), find_column(names, SCORE)
    found: list[tuple[Kind, list[str], str]] = []
    if score:
        found.append((Kind.SCORED, [*pair], score))
    if label:
        found.append((Kind.LABELLED, [*pair], label))
    if negative:
        found.append((Kind.TRIPLETS, [*pair, negative], ""))
    if not score and not negative:  # scored pairs are not positive pairs; some labelled pairs are
        found.append((Kind.POSITIVE, [*pair], label or ""))
    return next((one for kind in wanted for one in found if one[0] is kind), None)


def _text(row: Row, column: str) -> str:
    value = row.fields.get(column)
    if not isinstance(value, str) or not value.strip():
        raise BadRowError(row.source, f"no text in column '{column}'")
    return value


def _scaled(rows: Sequence[Row], column: str, name: str, notify: Notify) -> list[float]:
    """The gold scores, from 0 to 1; the smallest known scale is assumed."""
    scores = [_number(row, column) for row in rows]
    least, most = min(scores), max(scores)
    found = f"{name}: gold scores from {least:g} to {most:g}"
    high = next((high for high in HIGHEST_SCORES if most <= high), None)
    if least < 0 or high is None:
        raise ArgumentError(f"{found} are on no known scale; rescale them to 0 to 1")
    notify(f"{found}, assumed to be on the scale 0 to {high}")
    return [score / high for score in scores]


def _number(row: Row, column: str) -> float:
    with suppress(ValueError):
        if math.isfinite(number := float(cell(row, column))):
            return number
    raise BadRowError(row.source, f"no number in column '{column}'")


def _label(row: Row, column: str) -> str:
    """A label, with whole numbers as pandas writes them beside missing values (1.0)."""
    label = _WHOLE.sub(r"\1", cell(row, column).strip())
    if _FRACTION.fullmatch(label):
        reason = f"{label} in column '{column}' is a score, not a label; rename it to 'score'"
        raise BadRowError(row.source, reason)
    return label or NO_LABEL


def _belong_together(label: str, column: str) -> bool:
    """Whether a label means a positive pair, or a grade of relevance is above 0."""
    if plain_name(column) in GRADE and label.isdecimal():
        return int(label) > 0
    return is_positive(label)


def held_out(
    examples: Examples, seed: int, most: int = HELD_OUT_MAX
) -> tuple[Examples, Examples | None]:
    """Split a set at random into the rest and a held-out part; None for a small set."""
    if len(examples) < HELD_OUT_FROM:
        return examples, None
    rows = numpy.random.default_rng(seed).permutation(len(examples)).tolist()
    count = min(most, int(len(rows) * HELD_OUT))
    held = examples.take(sorted(rows[:count]), f"{examples.name} (held out)")
    return examples.take(sorted(rows[count:])), held


def load_stages(
    settings: Settings,
    kinds: Sequence[Sequence[Kind]],
    scorable: Sequence[Kind],
    notify: Notify,
) -> tuple[list[Stage], list[Examples]]:
    """The stages of a run, whose losses are to be named, and its test sets, without overlap.

    Each set has one of its `kinds`. Models are scored on that kind or on those in `scorable`; a
    classifier's labels are not tested, as it is lost at the end.
    """

    def load(spec: str, wanted: Sequence[Kind], split: str, like: Examples | None) -> Examples:
        found = load_examples(spec, wanted, split=split, notify=notify)
        return found.with_labels(like.labels) if like and found.labels and like.labels else found

    named = zip(settings.data, kinds, strict=True)
    sets = [load(spec, wanted, "train", None) for spec, wanted in named]
    recipes = per_stage(settings.recipes, len(sets), "recipe")
    last = sets[-1]
    is_classifier = last.kind is Kind.LABELLED and not last.is_yes_no
    wanted = scorable if is_classifier else (last.kind, *scorable)
    tests = [load(spec, wanted, "test", last) for spec in settings.tests]
    stages = []
    for training, spec, recipe in zip(sets, settings.data, recipes, strict=True):
        rest, development = training, None
        name, _, split = spec.partition(":")
        chosen = settings.development
        if chosen is None and name in DEVELOPMENT_SPLITS and split in ("", "train"):
            chosen = f"{name}:{DEVELOPMENT_SPLITS[name]}"
        if chosen is None:
            rest, development = held_out(training, recipe.seed)
            if development is not None:
                notify(f"{spec}: {len(development):,} of its examples are held out")
        elif chosen != NO_DEVELOPMENT:
            development = load(chosen, (training.kind, *scorable), "dev", training)
        stages.append(Stage(rest, development, recipe, ""))
    # A pair that chooses the checkpoint of a later stage is held out from earlier ones, too.
    held = [*tests, *(stage.development for stage in stages if stage.development)]
    for number, stage in enumerate(stages):
        rest = without_overlap(stage.training, held, notify)
        recipe = stage.recipe.for_kind(rest.kind)
        stages[number] = stage._replace(training=rest, recipe=recipe)
    return stages, tests
