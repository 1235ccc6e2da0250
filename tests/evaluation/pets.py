"""A small set of documents and queries, and systems for it."""

from __future__ import annotations

import numpy

from semsearch.evaluation import Collection, Ranking
from semsearch.evaluation.datasets import RetrievalSet

PETS = RetrievalSet(
    "pets",
    {
        "d1": "the cat sleeps on the warm mat",
        "d2": "a dog barks at the cat",
        "d3": "parrots repeat what they hear",
        "d4": "a dog sleeps",
        "d5": "",
    },
    {"q1": "cat", "q2": "dog sleeps", "q3": "aquarium"},
    {"q1": {"d1": 2, "d2": 1}, "q2": {"d2": 1, "d3": 0}, "q3": {"d3": 1}},
)


class Fixed:
    """A reranker that prefers long passages."""

    spec = "cross-encoder:long"
    precision = "fp32"

    def score(self, query, passages):
        del query
        return numpy.array([len(passage) for passage in passages], numpy.float32)

    def score_pairs(self, pairs):
        return self.score("", [right for _, right in pairs])


class Ranked:
    """A ranker that returns a given run."""

    precision = None

    def __init__(self, spec, run, seconds=0.5):
        self.spec = spec
        self.run = run
        self.seconds = seconds

    def rank(self, collection):
        queries = collection.retrieval.queries
        return Ranking({query: self.run.get(query, {}) for query in queries}, self.seconds)


def ranked(ranker, retrieval=PETS, **options):
    """The run of a ranker over a set."""
    with Collection(retrieval, **options) as collection:
        return ranker.rank(collection).run
