"""The choice of the kind of vector index."""

from __future__ import annotations

import pytest

from semsearch.errors import ArgumentError
from semsearch.vector_indexes import IndexType, chosen_kind


@pytest.mark.parametrize(
    ("wanted", "count", "dimension", "kind"),
    [
        ("auto", 0, 384, "flat"),
        ("auto", 50_000, 384, "flat"),
        ("auto", 50_001, 384, "ivf"),
        ("auto", 200_000, 96, "flat"),
        ("auto", 999, 100_000, "flat"),
        ("auto", 1_000, 100_000, "ivf"),
        ("flat", 1_000_000, 384, "flat"),
        ("ivf", 999, 384, "flat"),
        ("ivf", 1_000, 384, "ivf"),
    ],
)
def test_the_chosen_kind(wanted, count, dimension, kind):
    assert chosen_kind(IndexType(wanted).checked(), count, dimension) == kind


@pytest.mark.parametrize("kind", ["hnsw", "IVF100,SQ8", None])
def test_other_kinds_are_refused(kind):
    with pytest.raises(ArgumentError):
        IndexType(kind).checked()


def test_invalid_recalls_are_refused():
    for recall in (-0.01, 1.01, float("nan")):
        with pytest.raises(ArgumentError):
            IndexType(recall=recall).checked()
    assert IndexType(recall=1).checked() == IndexType(recall=1)
    assert IndexType(recall=0).checked() == IndexType("auto", 0)
    assert IndexType() == ("auto", 0.98)
