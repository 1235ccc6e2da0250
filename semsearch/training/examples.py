"""Training, development and test sets: columns of texts with their targets."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import NamedTuple

from semsearch.errors import ArgumentError

#: Called with one line for the user.
Notify = Callable[[str], None]

#: Labels of positive pairs.
POSITIVE_LABELS = frozenset(
    ("1", "true", "yes", "entailment", "paraphrase", "duplicate", "match", "relevant")
)

#: Before a label, these make its opposite: ``not_equivalent``, ``unrelated``.
NEGATION = re.compile(r"(?:not|non|no|un|in|ir|dis)[ _-]?")


class Callbacks(NamedTuple):
    """Progress callbacks."""

    notify: Notify
    on_progress: Callable[[int, float], None]  #: number of examples done, fraction of all


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
        places: the location of each row, for messages.
        targets: gold scores from 0 to 1 of scored pairs, indices into `labels` of labelled ones,
            row numbers of the teacher's vectors of texts; else empty.
        labels: the names of the classes, as `ordered_labels` returns them.
        scale: the lowest and the highest gold score on the file's own scale.
    """

    name: str
    kind: Kind
    texts: tuple[list[str], ...]
    places: list[str]
    targets: list[float] | list[int]
    labels: tuple[str, ...] = ()
    scale: tuple[float, float] | None = None

    def __len__(self) -> int:
        return len(self.places)

    def take(self, rows: Sequence[int]) -> Examples:
        """A subset of the rows, in the order given."""
        return replace(
            self,
            texts=tuple([column[row] for row in rows] for column in self.texts),
            places=[self.places[row] for row in rows],
            targets=[self.targets[row] for row in rows] if self.targets else [],
        )

    def with_labels(self, labels: Sequence[str]) -> Examples:
        """The same examples with targets as indices into `labels`.

        Raises:
            ArgumentError: an example has a label that is not in `labels`.
        """
        place = {label: number for number, label in enumerate(labels)}
        for row, target in enumerate(self.targets):
            label = self.labels[int(target)]
            if label not in place:
                known = ", ".join(place)
                raise ArgumentError(
                    f"{self.places[row]}: label '{label}' is not in the training data ({known})"
                )
        targets = [place[self.labels[int(target)]] for target in self.targets]
        return replace(self, targets=targets, labels=tuple(labels))


def ordered_labels(labels: Iterable[str]) -> tuple[str, ...]:
    """The distinct labels in alphabetical order; of two, the positive one is second.

    A single output scores the second one high.
    """
    names = tuple(sorted(set(labels)))
    if len(names) == 2 and names[0] in positive_labels(names):
        names = names[::-1]
    return names


def positive_labels(labels: Iterable[str]) -> set[str]:
    """The labels of positive pairs: of two, one is positive if the other is its negation."""
    names = set(labels)
    return {
        name
        for name in names
        if name.lower() in POSITIVE_LABELS
        or (len(names) == 2 and any(_negates(other.lower(), name.lower()) for other in names))
    }


def _negates(label: str, other: str) -> bool:
    """Whether a label is another with a negation before it."""
    return label.endswith(other) and bool(NEGATION.fullmatch(label.removesuffix(other)))


def mixed(sets: Sequence[Examples]) -> Examples:
    """Concatenate sets of one kind.

    Raises:
        ArgumentError: the sets are of different kinds, or some triplets have no negatives.
    """
    first = sets[0]
    for other in sets[1:]:
        if other.kind is not first.kind or len(other.texts) != len(first.texts):
            raise ArgumentError(
                f"{first.name} has {first.kind.value} and {other.name} {other.kind.value}; "
                "such data cannot be mixed, only used in turn"
            )
    labels = ordered_labels(label for one in sets for label in one.labels)
    sets = [one.with_labels(labels) if labels else one for one in sets]
    columns = zip(*(one.texts for one in sets), strict=True)
    return Examples(
        name=" + ".join(one.name for one in sets),
        kind=first.kind,
        texts=tuple([text for part in column for text in part] for column in columns),
        places=[place for one in sets for place in one.places],
        targets=[target for one in sets for target in one.targets],
        labels=labels,
        scale=first.scale,
    )
