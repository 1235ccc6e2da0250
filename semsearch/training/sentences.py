"""Corpora without labels: distinct documents, held-out documents, sentences."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy

from semsearch.errors import TrainingError
from semsearch.records import Document
from semsearch.texts import split_sentences

HELD_OUT_PART = 0.05
MIN_HELD_OUT = 4
MAX_HELD_OUT = 1000
#: Minimum number of documents for training.
MIN_DOCUMENTS = 12


class HeldOut(NamedTuple):
    """Positions of the documents to train on, and of those to evaluate on."""

    trained: list[int]
    held_out: list[int]


def distinct_documents(documents: Iterable[Document]) -> list[Document]:
    """The documents without duplicate texts, so that no text is on both sides of a split."""
    first: dict[str, Document] = {}
    for document in documents:
        first.setdefault(" ".join(document.text.split()), document)
    return list(first.values())


def check_count(count: int, what: str) -> None:
    """Refuse to train on fewer than `MIN_DOCUMENTS` documents or queries.

    Raises:
        TrainingError: there are too few.
    """
    if count < MIN_DOCUMENTS:
        raise TrainingError(f"training needs at least {MIN_DOCUMENTS} {what}, not {count}")


def held_out(
    count: int, seed: int, what: str, part: float = HELD_OUT_PART, most: int = MAX_HELD_OUT
) -> HeldOut:
    """Hold out a part of documents or queries, drawn by the seed.

    Args:
        count: number of usable items.
        seed: of the draw.
        what: name of the items in messages, in the plural.
        part: fraction to hold out, but at least `MIN_HELD_OUT` items.
        most: maximum number of held-out items.

    Raises:
        TrainingError: there are too few items.
    """
    check_count(count, what)
    size = min(max(round(part * count), MIN_HELD_OUT), most)
    order = numpy.random.default_rng([seed, count]).permutation(count)
    return HeldOut(sorted(order[size:].tolist()), sorted(order[:size].tolist()))


def sentences(text: str) -> list[str]:
    """The sentences of a text, without white space around them."""
    found = (sentence.strip() for sentence in split_sentences(text))
    return [sentence for sentence in found if sentence]
