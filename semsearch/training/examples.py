"""Training, development and test sets in memory: columns of texts with their targets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import TypeVar

import numpy

from semsearch.corpus.texts import split_sentences
from semsearch.errors import ArgumentError, TrainingError, quantity
from semsearch.records import Document

T = TypeVar("T")

#: Called with one line for the user.
Notify = Callable[[str], None]

#: Labels of positive pairs.
POSITIVE_LABELS = {
    *("1", "true", "yes", "entailment", "paraphrase", "duplicate", "match", "relevant"),
    *("related", "same", "similar", "equivalent", "positive"),
}

#: Minimum number of documents or queries for training, and of those that are held out.
MIN_DOCUMENTS, MIN_HELD_OUT = 12, 4


class Kind(Enum):
    """What an example consists of."""

    SCORED = "scored pairs"  #: two texts and how similar they are
    LABELLED = "labelled pairs"  #: two texts and the name of their relation
    POSITIVE = "positive pairs"  #: two texts that belong together
    TRIPLETS = "triplets"  #: an anchor, a positive and a negative text
    TRANSLATIONS = "translations"  #: a sentence and its translation; the label is the language
    TEXTS = "texts"  #: one text
    DOCUMENTS = "documents"  #: a text of several sentences, and its title or ""


@dataclass(frozen=True)
class Examples:
    """A data set in memory.

    Args:
        name: used in messages.
        kind: the kind of its rows.
        texts: columns of the same length.
        targets: gold scores from 0 to 1 of scored pairs, indices into `labels` of labelled ones,
            row numbers of the teacher's vectors of texts; else empty.
        labels: the names of the classes, the positive ones last.
    """

    name: str
    kind: Kind
    texts: tuple[list[str], ...]
    targets: list[float] | list[int]
    labels: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.texts[0])

    @property
    def is_yes_no(self) -> bool:
        """Whether the pairs have two labels, of which one means that they belong together."""
        return [is_positive(label) for label in self.labels] == [False, True]

    def take(self, rows: Iterable[int], name: str | None = None) -> Examples:
        """A subset of the rows, in the order given."""
        rows = list(rows)
        return replace(
            self,
            name=name or self.name,
            texts=tuple([column[row] for row in rows] for column in self.texts),
            targets=[self.targets[row] for row in rows] if self.targets else [],
        )

    def with_labels(self, labels: Sequence[str]) -> Examples:
        """The same examples with targets as indices into `labels`, which must hold theirs."""
        if unknown := sorted({*self.labels} - {*labels}):
            known = ", ".join(labels)
            raise ArgumentError(
                f"{self.name}: label '{unknown[0]}' is not in the training data ({known})"
            )
        targets = [labels.index(self.labels[int(target)]) for target in self.targets]
        return replace(self, targets=targets, labels=tuple(labels))


def labelled(name: str, texts: tuple[list[str], ...], labels: Sequence[str]) -> Examples:
    """Labelled pairs; the classes are the labels that occur, the positive ones last."""
    names = sorted(set(labels), key=lambda label: (is_positive(label), label))
    number = {label: place for place, label in enumerate(names)}
    return Examples(name, Kind.LABELLED, texts, [number[label] for label in labels], tuple(names))


def is_positive(label: str) -> bool:
    """Whether pairs with this label belong together."""
    return label.lower() in POSITIVE_LABELS


def check_yes_no(examples: Examples) -> None:
    """Raise ArgumentError unless labels, if there are any, mean yes and no."""
    if examples.labels and not examples.is_yes_no:
        known = ", ".join(examples.labels)
        raise ArgumentError(f"{examples.name}: labels for yes and no are needed, not {known}")


def without_overlap(training: Examples, held: Iterable[Examples], notify: Notify) -> Examples:
    """The training set without the pairs, in either order, that are also in other sets.

    Texts that differ only in case and white space count as equal. The pair of a triplet is its
    anchor and its positive text.

    Raises:
        ArgumentError: no pair is left, or all have the same class or gold score.
    """
    kept = list(range(len(training)))
    pairs = _pairs(training)
    for other in held:
        known = set(_pairs(other))
        if shared := sum(pair in known for pair in pairs):
            notify(
                f"{training.name}: {quantity(shared, 'pair')} also in {other.name}; left out of "
                "training"
            )
            kept = [row for row in kept if pairs[row] not in known]
    rest = training.take(kept)
    if not kept:
        why = "only pairs that are in a development or test set" if pairs else "no examples"
        raise ArgumentError(f"{training.name} has {why}")
    if rest.targets and len(set(rest.targets)) < 2:
        raise ArgumentError(f"{training.name} has the same label or gold score everywhere")
    return rest


def _pairs(examples: Examples) -> list[frozenset[str]]:
    left, right, *_ = examples.texts
    return [frozenset((text_key(a), text_key(b))) for a, b in zip(left, right, strict=True)]


def text_key(text: str) -> str:
    """A key that is the same for texts that differ only in case and white space."""
    return " ".join(text.casefold().split())


def distinct_documents(documents: Iterable[Document]) -> list[Document]:
    """The documents without duplicate texts, so that no text is on both sides of a split."""
    first: dict[str, Document] = {}
    for document in documents:
        first.setdefault(" ".join(document.text.split()), document)
    return list(first.values())


def split(
    items: Sequence[T], seed: int, what: str, part: float = 0.05, most: int = 1000
) -> tuple[list[T], list[T]]:
    """The documents or queries to train on, and those held out by the seed, in their order.

    At least `MIN_HELD_OUT` and at most `most` items are held out; `what` names them in messages.
    """
    count = len(items)
    if count < MIN_DOCUMENTS:
        raise TrainingError(f"training needs at least {MIN_DOCUMENTS} {what}, not {count}")
    size = min(max(round(part * count), MIN_HELD_OUT), most)
    order = numpy.random.default_rng([seed, count]).permutation(count)
    parts = (sorted(places.tolist()) for places in (order[size:], order[:size]))
    trained, held = ([items[place] for place in places] for places in parts)
    return trained, held


def sentences(text: str) -> list[str]:
    """The sentences of a text, without white space around them."""
    found = (sentence.strip() for sentence in split_sentences(text))
    return [sentence for sentence in found if sentence]
