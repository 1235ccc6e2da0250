"""Questions whose answers are known without labels: a title, or a sentence without its context.

The latter is the inverse cloze task (Lee, Chang & Toutanova 2019, section 4): a sentence is taken
out of its document, and the text around it is to be found. An encoder trained on such questions is
tested on others: the most specific words of a document, and half of the words of a sentence that
stays in it.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy

from semsearch.records import Document
from semsearch.training.sentences import sentences

#: Minimum number of words of a sentence that serves as a question.
MIN_WORDS = 4
#: Number of context sentences on each side of the one taken out.
AROUND = 4
#: Number of words in a keyword question.
KEYWORDS = 4
#: Minimum number of words of a sentence that is halved.
MIN_HALVED = 8


class Question(NamedTuple):
    """A query, and the passage that answers it."""

    query: str
    passage: str
    is_title: bool  #: whether the query is a title
    document: str  #: the text of the whole document


def questions(documents: Iterable[Document], seed: int) -> list[Question]:
    """One question per document that allows any.

    It is the title, if the text does not repeat it, or a sentence drawn by the seed, with the text
    around it as the passage; if a document allows both, one of them is drawn.
    """
    found = []
    for place, document in enumerate(documents):
        generator = numpy.random.default_rng([seed, place])
        text = " ".join(document.text.split())
        title = " ".join((document.title or "").split())
        choices = []
        if title and title.casefold() not in text.casefold():
            choices.append(Question(title, text, True, text))
        parts = sentences(text)
        fit = [number for number, part in enumerate(parts) if len(part.split()) >= MIN_WORDS]
        if len(parts) > 1 and fit:
            taken = int(generator.choice(fit))
            context = parts[max(0, taken - AROUND) : taken] + parts[taken + 1 : taken + AROUND + 1]
            choices.append(Question(parts[taken], " ".join(context), False, text))
        if choices:
            found.append(choices[int(generator.integers(len(choices)))])
    return found


def keywords(texts: Sequence[str]) -> list[str]:
    """The most specific words of each text, in text order; empty if there are too few.

    Specific words are frequent in the text and occur in few others (tf-idf, Spärck Jones 1972).
    """
    listed = [
        [word for word in re.findall(r"\w+", text.lower()) if len(word) > 2] for text in texts
    ]
    spread = Counter(word for words in listed for word in set(words))
    found = []
    for words in listed:
        counts = Counter(words)
        ordered = sorted(
            counts, key=lambda word: (-counts[word] * math.log(len(texts) / spread[word]), word)
        )
        best = set(ordered[:KEYWORDS])
        found.append(" ".join(sorted(best, key=words.index)) if len(best) == KEYWORDS else "")
    return found


def fragments(texts: Sequence[str], seed: int) -> list[str]:
    """Half of the words of one sentence per text, both drawn; empty if all sentences are short."""
    found = []
    for place, text in enumerate(texts):
        generator = numpy.random.default_rng([seed, place])
        long = [words for part in sentences(text) if len(words := part.split()) >= MIN_HALVED]
        if not long:
            found.append("")
            continue
        words = long[int(generator.integers(len(long)))]
        kept = numpy.sort(generator.permutation(len(words))[: len(words) // 2])
        found.append(" ".join(words[place] for place in kept.tolist()))
    return found
