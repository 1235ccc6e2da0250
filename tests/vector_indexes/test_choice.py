"""The choice of the kind of vector index."""

from __future__ import annotations

import pytest

from semsearch.errors import ArgumentError
from semsearch.vector_indexes import IndexType, chosen_kind


@pytest.mark.parametrize(
    ("wanted", "count", "kind"),
    [
        ("auto", 0, "flat"),
        ("auto", 50_000, "flat"),
        ("auto", 50_001, "ivf"),
        ("flat", 1_000_000, "flat"),
        ("ivf", 999, "flat"),
        ("ivf", 1_000, "ivf"),
    ],
)
def test_the_chosen_kind(wanted, count, kind):
    assert chosen_kind(IndexType(wanted).checked(), count, 384) == kind


@pytest.mark.parametrize("kind", ["hnsw", "IVF100,SQ8", None])
def test_other_kinds_are_refused(kind):
    with pytest.raises(ArgumentError):
        IndexType(kind).checked()


def test_invalid_recalls_are_refused():
    for recall in (-0.01, 1.01, float("nan")):
        with pytest.raises(ArgumentError):
            IndexType(recall=recall).checked()
    assert IndexType(recall=1).checked() == IndexType(recall=1)
