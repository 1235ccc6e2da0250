"""What is requested of Milvus for exactly k passages, with a connection that answers as told."""

from __future__ import annotations

import pytest

from semsearch.storage.milvus.reader import MAX_ROWS, VECTORS, Search
from semsearch.storage.milvus.schema import LISTS


class Answers:
    """A connection that answers searches with the given scores of passages, best first.

    Only half of the passages are in the lists that an approximate search searches.
    """

    is_file = False

    def __init__(self, scores):
        self.hits = [_Hit(passage, score) for passage, score in scores]
        self.requests = []

    def call(self, method, collection, *, data, limit, search_params, **options):
        lists = search_params["params"]["nprobe"]
        self.requests.append((len(data), limit, lists))
        reached = self.hits if lists == LISTS else self.hits[::2]
        return [reached[:limit] for _ in data]


class _Hit(dict):
    def __init__(self, passage, score):
        super().__init__(distance=score)
        self.id = passage


def first_passages(scores):
    """The first passages of documents 1, 2, …"""
    return [((number << 24), score) for number, score in enumerate(scores, start=1)]


class TestRequests:
    """How many rows of how many lists are requested for the best passages."""

    @pytest.mark.parametrize(
        ("k", "scores", "lists", "requests"),
        [
            (2, [0.9, 0.8, 0.7], LISTS, [(12, LISTS)]),
            (2, [0.9] * 12 + [0.8], LISTS, [(12, LISTS), (48, LISTS)]),
            (1, [0.9] + [0.8] * 99, LISTS, [(10, LISTS)]),
            (1, [0.9] * 99, LISTS, [(10, LISTS), (40, LISTS), (160, LISTS)]),
            (2, [0.9, 0.8, 0.7, 0.6, 0.5, 0.4], 64, [(12, 64)]),
            (2, [0.9, 0.8], 64, [(12, 64), (12, LISTS)]),
            (1, [0.9, 0.8], 64, [(10, 64)]),
            (9000, [0.9, 0.8], LISTS, [(MAX_ROWS, LISTS)]),
            (3000, [0.9] * MAX_ROWS, LISTS, [(6008, LISTS), (MAX_ROWS, LISTS)]),
        ],
    )
    def test_one_query(self, k, scores, lists, requests):
        answers = Answers(first_passages(scores))
        [best] = Search(answers, "c", VECTORS, "", lists).best(["q"], k, 1)
        assert answers.requests == [(1, *request) for request in requests]
        known = scores if requests[-1][1] == LISTS else scores[::2]
        assert [one.score for one in best] == known[:k]
        assert [one.document_id for one in best] == sorted(one.document_id for one in best)

    def test_queries_are_sent_together(self):
        answers = Answers(first_passages([0.9, 0.8]))
        assert len(Search(answers, "c", VECTORS, "").best(["q"] * 20, 508, 1)) == 20
        assert answers.requests == [(8, 1024, LISTS), (8, 1024, LISTS), (4, 1024, LISTS)]
