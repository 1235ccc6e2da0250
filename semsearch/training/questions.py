"""Questions whose answers are known without labels: a title, or a sentence without its context.

The latter is the inverse cloze task (Lee, Chang & Toutanova 2019, section 4): a sentence is taken
out of its document, and what stood around it is to be found.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy

from semsearch.records import Document
from semsearch.training.sentences import sentences

#: A sentence of fewer words asks nothing.
LEAST_WORDS = 4
#: How many sentences around the one taken out are its context, on each side.
AROUND = 4


class Question(NamedTuple):
    """A query, the passage that answers it, and whether the query is a title."""

    query: str
    passage: str
    is_title: bool


def questions(documents: Iterable[Document], seed: int) -> list[Question]:
    """One question a document, of those that have any.

    The title, where the text does not repeat it; or a sentence, drawn by the seed, and what stands
    around it; where a document has both, one of them is drawn.
    """
    found = []
    for place, document in enumerate(documents):
        generator = numpy.random.default_rng([seed, place])
        text = " ".join(document.text.split())
        title = " ".join((document.title or "").split())
        choices = []
        if title and title.casefold() not in text.casefold():
            choices.append(Question(title, text, True))
        parts = sentences(text)
        fit = [number for number, part in enumerate(parts) if len(part.split()) >= LEAST_WORDS]
        if len(parts) > 1 and fit:
            taken = int(generator.choice(fit))
            context = parts[max(0, taken - AROUND) : taken] + parts[taken + 1 : taken + AROUND + 1]
            choices.append(Question(parts[taken], " ".join(context), False))
        if choices:
            found.append(choices[int(generator.integers(len(choices)))])
    return found
