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
        name: used in messages: ``stsbenchmark:train``, ``pairs.csv``.
        kind: the kind of its rows.
        texts: columns of the same length.
        targets: gold scores from 0 to 1 of scored pairs, indices into `labels` of labelled ones,
            row numbers of the teacher's vectors of texts; else empty.
        labels: the names of the classes, as `ordered_labels` returns them.
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
        return len(self.labels) == 2 and positive_labels(self.labels) == {self.labels[1]}

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
        """The same examples with targets as indices into `labels`.

        Raises:
            ArgumentError: an example has a label that is not in `labels`.
        """
        if unknown := sorted({self.labels[int(target)] for target in self.targets} - {*labels}):
            known = ", ".join(labels)
            raise ArgumentError(
                f"{self.name}: label '{unknown[0]}' is not in the training data ({known})"
            )
        place = {label: number for number, label in enumerate(labels)}
        targets = [place[self.labels[int(target)]] for target in self.targets]
        return replace(self, targets=targets, labels=tuple(labels))


def labelled(name: str, texts: tuple[list[str], ...], labels: Sequence[str]) -> Examples:
    """Labelled pairs; the classes are the labels that occur, as `ordered_labels` returns them."""
    names = ordered_labels(labels)
    number = {label: place for place, label in enumerate(names)}
    return Examples(name, Kind.LABELLED, texts, [number[label] for label in labels], names)


def ordered_labels(labels: Iterable[str]) -> tuple[str, ...]:
    """The distinct labels in alphabetical order; of two, the positive one is second.

    A single output scores the second one high.
    """
    names = tuple(sorted(set(labels)))
    if len(names) == 2 and names[0] in positive_labels(names):
        names = names[::-1]
    return names


def positive_labels(labels: Iterable[str]) -> set[str]:
    """The labels of positive pairs."""
    return {label for label in labels if label.lower() in POSITIVE_LABELS}


def check_trainable(examples: Examples) -> None:
    """Check that a model can be trained on a set of examples.

    Raises:
        ArgumentError: there are no examples, or all have the same class or gold score.
    """
    if not len(examples):
        raise ArgumentError(f"{examples.name} has no examples")
    if examples.targets and len(set(examples.targets)) < 2:
        raise ArgumentError(f"{examples.name} has the same label or gold score everywhere")


def without_overlap(training: Examples, held: Iterable[Examples], notify: Notify) -> Examples:
    """The training set without the pairs, in either order, that are also in other sets.

    Texts that differ only in case and white space count as equal. The pair of a triplet is its
    anchor and its positive text.

    Args:
        training: the training set.
        held: the development and test sets.
        notify: called with the number of pairs.

    Raises:
        ArgumentError: no pair is left.
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
    if not kept:
        raise ArgumentError(f"{training.name} has only pairs that are in a development or test set")
    return training.take(kept)


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

    Args:
        items: the usable ones.
        seed: of the draw.
        what: name of the items in messages, in the plural.
        part: fraction to hold out, but at least `MIN_HELD_OUT` items.
        most: maximum number of held-out items.

    Raises:
        TrainingError: there are too few items.
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
