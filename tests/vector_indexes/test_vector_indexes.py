"""Every kind of vector index: built, saved, opened, searched."""

from __future__ import annotations

import faiss
import numpy
import pytest

from semsearch.vector_indexes import KINDS, measured_recall
from semsearch.vector_indexes.flat import FlatIndex

IDS = numpy.arange(500) * 3 + 7
DIMENSION = 16


@pytest.fixture(scope="module")
def matrix():
    vectors = numpy.random.default_rng(1).normal(size=(len(IDS), DIMENSION)).astype(numpy.float32)
    return vectors / numpy.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.fixture(scope="module")
def queries(matrix):
    return matrix[::50] * 0.6 + matrix[1::50] * 0.8


def blocks(matrix):
    for start in range(0, len(IDS), 128):
        yield IDS[start : start + 128], matrix[start : start + 128]


@pytest.fixture(params=KINDS)
def index(request, matrix, tmp_path):
    """Saved and opened again."""
    kind = KINDS[request.param]
    file = tmp_path / "index"
    kind.build(DIMENSION, blocks(matrix)).save(file)
    assert kind.is_header(file.read_bytes()[:64])
    return kind.open(str(file))


def test_it_has_what_it_was_built_of(index, matrix):
    assert (len(index), index.dimension) == (500, DIMENSION)
    assert index.ids.tolist() == IDS.tolist()
    some = IDS[[3, 499, 0]]
    assert (index.vectors(some) == matrix[[3, 499, 0]]).all()


def test_it_finds_the_nearest(index, matrix, queries):
    scores, ids = index.search(queries, 5)
    assert scores.shape == ids.shape == (len(queries), 5)
    assert (numpy.diff(scores) <= 0).all()
    exact = queries @ matrix.T
    for row in range(len(queries)):
        places = numpy.searchsorted(IDS, ids[row])
        numpy.testing.assert_allclose(scores[row], exact[row, places], atol=1e-6)
    found = numpy.mean(scores[:, -1] >= -numpy.sort(-exact)[:, 4] - 1e-6)
    assert found >= (1 if index.kind == "flat" else 0.8)


def test_only_what_is_allowed_is_found(index, queries):
    allowed = IDS[100:104]
    ids = index.search(queries, 6, allowed)[1]
    assert set(ids[:, :4].ravel()) == set(allowed)
    assert (ids[:, 4:] == -1).all()
    assert not numpy.isin(index.search(queries, 3, IDS[:0])[1], IDS).any()


def test_recall(index):
    assert measured_recall(index) == 1 if index.kind == "flat" else measured_recall(index) >= 0.8


def test_an_empty_one(index):
    empty = type(index).build(DIMENSION, [])
    assert len(empty) == 0
    assert measured_recall(empty) == 1


def test_what_it_costs(index, tmp_path):
    index.save(tmp_path / "again")
    size = (tmp_path / "again").stat().st_size
    assert index.memory_bytes(500, DIMENSION) == pytest.approx(size, rel=0.1)


def test_another_file_is_none(index, tmp_path):
    assert not index.is_header(b"IxFI" + bytes(60))
    other = faiss.IndexIDMap(faiss.IndexFlatL2(DIMENSION))
    faiss.write_index(other, str(tmp_path / "other"))
    with pytest.raises(ValueError, match="is not a"):
        index.open(str(tmp_path / "other"))


class LosesHalf(FlatIndex):
    """Finds only vectors whose place is even."""

    def search(self, queries, n, allowed=None):
        return super().search(queries, n, self.ids[::2])


def test_a_lossy_one_is_measured(matrix):
    assert measured_recall(LosesHalf.build(DIMENSION, blocks(matrix))) == pytest.approx(
        0.5, abs=0.06
    )


@pytest.mark.parametrize(("limit", "threads"), [(10**6, 1), (10, 3)])
def test_a_small_search_has_one_thread(monkeypatch, limit, threads):
    monkeypatch.setattr("semsearch.vector_indexes.flat.ONE_THREAD_PRODUCTS", limit)
    before, seen = faiss.omp_get_max_threads(), []
    faiss.omp_set_num_threads(3)

    def search(*arguments, **options):
        seen.append(faiss.omp_get_max_threads())
        return None, None

    inner = faiss.IndexIDMap(faiss.IndexFlatIP(32))
    inner.add_with_ids(numpy.zeros((100, 32), numpy.float32), numpy.arange(100))
    index = FlatIndex(inner)
    monkeypatch.setattr(inner, "search", search)
    try:
        index.search(numpy.zeros((1, 32), numpy.float32), 1)
        assert (seen, faiss.omp_get_max_threads()) == ([threads], 3)
    finally:
        faiss.omp_set_num_threads(before)
