"""Training, development and test sets: columns of texts with their targets."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import NamedTuple

from semsearch.errors import ExamplesError

#: Called with one line for the user.
Notify = Callable[[str], None]


class Callbacks(NamedTuple):
    """Progress callbacks."""

    notify: Notify
    on_progress: Callable[[int, float], None]  #: how many examples are done, and which part of all


class Kind(Enum):
    """What an example consists of."""

    SCORED = "scored pairs"  #: two texts and how similar they are
    LABELLED = "labelled pairs"  #: two texts and the name of their relation
    POSITIVE = "positive pairs"  #: two texts that belong together
    TRIPLETS = "triplets"  #: an anchor, a text that belongs to it, one that does not
    TRANSLATIONS = "translations"  #: a sentence and its translation; the label is the language
    TEXTS = "texts"  #: one text
    DOCUMENTS = "documents"  #: a text of several sentences, and its title or ""


@dataclass(frozen=True)
class Examples:
    """A data set in memory.

    Args:
        name: for messages: ``stsbenchmark:train``, ``pairs.csv``.
        kind: what its rows are.
        texts: columns of the same length.
        places: where each row stands, for messages.
        targets: of scored pairs the gold score from 0 to 1, of labelled ones the place of the
            label in `labels`; else empty.
        labels: the names of the classes, sorted.
        scale: the lowest and the highest gold score as they stand in the file.
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
        """Some of its rows, in the order given."""
        return replace(
            self,
            texts=tuple([column[row] for row in rows] for column in self.texts),
            places=[self.places[row] for row in rows],
            targets=[self.targets[row] for row in rows] if self.targets else [],
        )

    def with_labels(self, labels: Collection[str]) -> Examples:
        """The same with its targets counted among `labels`.

        Raises:
            ArgumentError: it has a label that is not among them.
        """
        place = {label: number for number, label in enumerate(sorted(labels))}
        for row, target in enumerate(self.targets):
            label = self.labels[int(target)]
            if label not in place:
                known = ", ".join(place)
                raise ExamplesError(
                    f"{self.places[row]}: label '{label}' is not in the training data ({known})"
                )
        targets = [place[self.labels[int(target)]] for target in self.targets]
        return replace(self, targets=targets, labels=tuple(sorted(labels)))


def mixed(sets: Sequence[Examples]) -> Examples:
    """All rows of several sets of one kind as one set.

    Raises:
        ArgumentError: they are of different kinds, or some triplets have no negatives.
    """
    first = sets[0]
    for other in sets[1:]:
        if other.kind is not first.kind or len(other.texts) != len(first.texts):
            raise ExamplesError(
                f"{first.name} has {first.kind.value} and {other.name} {other.kind.value}; "
                "such data cannot be mixed, only used in turn"
            )
    labels = {label for one in sets for label in one.labels}
    sets = [one.with_labels(labels) if labels else one for one in sets]
    columns = zip(*(one.texts for one in sets), strict=True)
    return Examples(
        name=" + ".join(one.name for one in sets),
        kind=first.kind,
        texts=tuple([text for part in column for text in part] for column in columns),
        places=[place for one in sets for place in one.places],
        targets=[target for one in sets for target in one.targets],
        labels=tuple(sorted(labels)),
        scale=first.scale,
    )
