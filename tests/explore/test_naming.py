"""The names of groups of texts."""

from __future__ import annotations

import numpy

from semsearch.explore.naming import group_names

TEXTS = [
    "gulls eat early",
    "a gull eats early",
    "gulls early",
    "carp late",
    "a carp, late",
    "ponds late",
]
GROUPS = [[0, 1, 2], [3, 4, 5]]
BIRDS, FISH, NEITHER = [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]
MEANINGS = {"gulls": BIRDS, "eat": NEITHER, "early": NEITHER, "carp": FISH, "late": NEITHER}
VECTORS = numpy.array([BIRDS] * 3 + [FISH] * 3)


def encode(words):
    return numpy.array([MEANINGS[word] for word in words])


def test_of_frequent_words_the_nearest_in_meaning_name_a_group():
    # "early" and "late" are in all texts of their group, "eat" in two, "ponds" in one.
    first, second = group_names(TEXTS, VECTORS, GROUPS, encode)
    assert first.split(", ")[0] == "gulls"  # the more frequent form
    assert second == "carp, late"


def test_a_form_counts_as_its_word():
    texts = ["freeze", "freezing", "warm", "warm"]
    vectors = numpy.eye(2)[[0, 0, 1, 1]]

    def encode(words):
        return numpy.array([[1.0, 0.0] if word != "warm" else [0.0, 1.0] for word in words])

    assert group_names(texts, vectors, [[0, 1], [2, 3]], encode)[0] in ("freeze", "freezing")


def test_a_value_of_most_texts_names_a_group():
    metadata = [{"kind": "birds"}] * 3 + [{"kind": "fish"}] * 3
    assert group_names(TEXTS, VECTORS, GROUPS, encode, metadata) == ["birds", "fish"]
