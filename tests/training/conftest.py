"""Made-up documents in which words follow each other by rule, so that a tiny model can learn."""

from __future__ import annotations

import json

import numpy
import pytest

from semsearch import Document

TOPICS = {
    "sea": "wave salt harbour sailor tide gull anchor storm deck rope",
    "bread": "flour oven dough baker crust yeast salt dawn shop loaf",
    "stars": "comet orbit night telescope planet moon dust light sky dome",
    "music": "violin stage drum melody singer choir string hall chord note",
}


@pytest.fixture(scope="session")
def documents():
    """120 documents of 4 to 7 sentences, each about one of four topics."""
    generator = numpy.random.default_rng(0)
    made = []
    for number in range(120):
        topic = list(TOPICS)[number % len(TOPICS)]
        words = TOPICS[topic].split()
        sentences = [
            f"The {' '.join(generator.permutation(words)[:5])} of number {number}."
            for _ in range(generator.integers(4, 8))
        ]
        made.append(Document(str(number), " ".join(sentences), title=f"{topic} {number}"))
    return made


@pytest.fixture(scope="session")
def corpus_file(documents, tmp_path_factory):
    """The same documents as a file."""
    file = tmp_path_factory.mktemp("corpus") / "topics.jsonl"
    rows = [{"id": one.id, "title": one.title, "text": one.text} for one in documents]
    file.write_text("\n".join(map(json.dumps, rows)))
    return file
