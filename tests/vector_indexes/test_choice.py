"""The choice of the kind of vector index."""

from __future__ import annotations

import faiss
import numpy
import pytest

from semsearch.errors import ArgumentError
from semsearch.vector_indexes import IndexType, chosen_kind, index_class, is_kind_of


@pytest.mark.parametrize(
    ("wanted", "count", "kind"),
    [
        (IndexType(), 0, "flat"),
        (IndexType(), 50_000, "flat"),
        (IndexType(), 50_001, "IVF1,PQ96x4fs"),
        (IndexType(), 250_000, "IVF1,PQ96x4fs"),
        (IndexType(), 250_001, "IVF500,PQ96x4fs"),
        (IndexType(), 1_000_000, "IVF1000,PQ96x4fs"),
        (IndexType(memory=57_488_000), 1_000_000, "IVF1000,PQ96x4fs"),
        (IndexType(memory=57_487_999), 1_000_000, "IVF1000,PQ64x4fs"),
        (IndexType(memory=1), 1_000_000, "IVF1000,PQ1x4fs"),
        (IndexType("flat"), 1_000_000, "flat"),
        (IndexType("hnsw"), 10, "HNSW32,SQ8"),
        (IndexType("hnsw"), 0, "flat"),
        (IndexType("ivf"), 999, "flat"),
        (IndexType("ivf"), 10_000, "IVF100,PQ96x4fs"),
        (IndexType("IVF100,PQ48x4fs"), 10_000, "IVF100,PQ48x4fs"),
        (IndexType("IVF10_HNSW10,PQ10x10"), 10_000, "IVF10_HNSW10,PQ10x10"),
    ],
)
def test_the_chosen_kind(wanted, count, kind):
    assert chosen_kind(wanted.checked(), count, 384) == kind
    assert index_class(kind) is not None


@pytest.mark.parametrize(
    ("dimension", "codes"),
    [(1024, 256), (384, 96), (64, 16), (383, 383), (105, 35), (74, 37), (50, 25), (1, 1)],
)
def test_a_code_stands_for_at_most_four_dimensions(dimension, codes):
    assert chosen_kind(IndexType("ivf"), 10_000, dimension) == f"IVF100,PQ{codes}x4fs"


def test_the_number_of_lists_does_not_change_the_kind():
    assert is_kind_of("IVF400,SQ8", "IVF500,SQ8")
    assert not is_kind_of("IVF400,SQ8", "IVF400,PQ96x4fs")
    assert not is_kind_of("flat", "HNSW32,SQ8")


@pytest.mark.parametrize(
    "kind",
    ["hsnw", "PQ96", "PCA64,IVF100,SQ8", "IVF0,SQ8", "HNSW1,SQ8", "HNSW1000,SQ8", "HNSW32,PQ8"]
    + ["IVF4,PQ8x0", "IVF4,PQ8x8fs", "IVF4(PQ8x0),Flat", None],
)
def test_kinds_that_cannot_be_built_are_refused(kind):
    with pytest.raises(ArgumentError):
        IndexType(kind).checked()


def test_invalid_recalls_and_memories_are_refused():
    for recall in (0, 1.01, float("nan"), "0.9"):
        with pytest.raises(ArgumentError):
            IndexType(recall=recall).checked()
    for memory in (-1, True):
        with pytest.raises(ArgumentError):
            IndexType(memory=memory).checked()
    assert IndexType(recall=1, memory=1).checked() == IndexType(recall=1, memory=1)


def test_a_type_that_can_only_be_opened_becomes_auto():
    kind = "IVF16(Flat),SQ8"
    assert IndexType(kind, 0.9).supported() == IndexType("auto", 0.9)
    assert index_class(kind) is index_class("IVF16,SQ8")


@pytest.mark.parametrize("kind", ["auto", "hnsw", "IVF16,SQ8", "unknown"])
def test_other_types_stay(kind):
    assert IndexType(kind).supported() == IndexType(kind)


@pytest.mark.parametrize(("dimension", "codes"), [(36, 9), (63, 21)])
def test_codes_fit_the_memory(dimension, codes):
    """Lists are filled up to blocks, and an odd number of codes to whole bytes."""
    vectors = numpy.random.default_rng(0).normal(size=(2000, dimension)).astype(numpy.float32)
    limit = (2000 + 45 * 31) * (codes // 2 + 1) + 2000 * 8
    assert chosen_kind(IndexType("ivf", memory=limit), 2000, dimension) == f"IVF45,PQ{codes}x4fs"
    assert codes > int(chosen_kind(IndexType("ivf", memory=limit - 1), 2000, dimension)[8:-4])
    index = faiss.index_factory(dimension, f"IVF45,PQ{codes}x4fs")
    index.train(vectors)
    index.add(vectors)
    lists = faiss.downcast_InvertedLists(index.invlists)
    blocks = sum(-(-lists.list_size(place) // lists.n_per_block) for place in range(45))
    assert 0.8 * limit < blocks * lists.block_size + 2000 * 8 <= limit


def test_too_little_memory_is_reported(caplog):
    assert chosen_kind(IndexType(memory=1), 1_000_000, 384) == "IVF1000,PQ1x4fs"
    (message,) = caplog.messages
    assert " 9,031,000 bytes" in message
    caplog.clear()
    assert chosen_kind(IndexType(memory=9_031_000), 1_000_000, 384) == "IVF1000,PQ2x4fs"
    assert not caplog.messages
