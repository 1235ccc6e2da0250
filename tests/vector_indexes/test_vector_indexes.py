"""Every kind of vector index: built, saved, opened, searched."""

from __future__ import annotations

import faiss
import numpy
import pytest

from semsearch.vector_indexes import flat, index_class
from semsearch.vector_indexes.flat import FlatIndex
from semsearch.vector_indexes.refined import QUERIES, RecallTest

IDS = numpy.arange(2000) * 3 + 7
DIMENSION = 16


@pytest.fixture(scope="module")
def matrix():
    vectors = numpy.random.default_rng(1).normal(size=(len(IDS), DIMENSION)).astype(numpy.float32)
    return vectors / numpy.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.fixture(scope="module")
def queries(matrix):
    return matrix[::50] * 0.6 + matrix[1::50] * 0.8


def test_a_file_that_faiss_cannot_open_by_its_name(index, queries, tmp_path, monkeypatch):
    file = tmp_path / "Vögel"
    index.save(file)
    monkeypatch.setattr(flat, "_OPENS_ONLY_ASCII", True)
    monkeypatch.setattr(faiss, "IO_FLAG_MMAP_IFC", None)
    read = type(index).open(str(file))
    numpy.testing.assert_array_equal(read.search(queries, 5)[1], index.search(queries, 5)[1])


def blocks(matrix):
    for start in range(0, len(IDS), 128):
        yield IDS[start : start + 128], matrix[start : start + 128]


KINDS = ["flat", "HNSW16,SQ8", "IVF10,SQ8", "IVF10,Flat", "IVF10,PQ8x4fs"]


def built(kind, matrix, recall=0.98):
    return index_class(kind).build(kind, DIMENSION, len(matrix), lambda: blocks(matrix), recall)


@pytest.fixture(scope="module", params=KINDS)
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def index(kind, matrix, tmp_path_factory):
    """An index that was saved and opened again."""
    file = tmp_path_factory.mktemp("index") / "index"
    built(kind, matrix).save(file)
    assert index_class(kind).is_header(file.read_bytes()[:64])
    return index_class(kind).open(str(file))


def test_it_contains_its_ids_and_vectors(index, matrix):
    assert (len(index), index.dimension) == (len(IDS), DIMENSION)
    assert index.ids.tolist() == IDS.tolist()
    some = IDS[[3, 499, 0]]
    assert (index.vectors(some) == matrix[[3, 499, 0]]).all()


@pytest.mark.parametrize("n", [1, 40, 400])
def test_it_finds_the_nearest(index, kind, matrix, queries, n):
    scores, ids = index.search(queries, n)
    assert scores.shape == ids.shape == (len(queries), n)
    assert (numpy.diff(scores) <= 0).all()
    exact = queries @ matrix.T
    for row in range(len(queries)):
        places = numpy.searchsorted(IDS, ids[row])
        numpy.testing.assert_allclose(scores[row], exact[row, places], atol=1e-6)
        assert len(set(ids[row])) == n
    least = -numpy.sort(-exact)[:, n - 1 : n]
    assert (scores >= least - 1e-6).mean() >= (1 if kind == "flat" else 0.9)


def test_the_exact_search_is_exact(index, matrix, queries):
    scores, _ = index.exact_search(queries, 5)
    numpy.testing.assert_allclose(scores, -numpy.sort(-(queries @ matrix.T))[:, :5], atol=1e-6)


@pytest.mark.parametrize("share", [1.0, 0.1, 0.019, 0.002, 0.0])
def test_only_allowed_ids_are_found(index, kind, matrix, queries, share):
    """All of them if fewer are allowed than requested; unknown ids may be among them."""
    random = numpy.random.default_rng(3)
    places = numpy.flatnonzero(random.random(len(IDS)) < share)
    allowed = numpy.union1d(IDS[places], [1, 8, 10**9])
    scores, ids = index.search(queries, 6, allowed)
    found = min(6, len(places))
    assert numpy.isin(ids[:, :found], IDS[places]).all()
    assert (ids[:, found:] == -1).all()
    if found:
        least = -numpy.sort(-(queries @ matrix[places].T))[:, found - 1 : found]
        assert (scores[:, :found] >= least - 1e-6).mean() >= (1 if kind == "flat" else 0.9)


def test_recall(index, kind):
    recall = index.measured_recall()
    assert recall == 1 if kind == "flat" else 0.95 <= recall <= 1


@pytest.mark.parametrize("kind", ["HNSW16,SQ8", "IVF10,SQ8"])
def test_more_recall_needs_more_effort(kind, matrix, tmp_path):
    """The effort is stored in the file."""
    efforts = []
    for recall in (0.3, 0.999):
        file = tmp_path / f"{recall}"
        built(kind, matrix, recall).save(file)
        efforts.append(index_class(kind).open(str(file))._effort)
    assert efforts[0] < efforts[1]


def test_an_empty_index():
    empty = index_class("flat").build("flat", DIMENSION, 0, list, 0.98)
    assert (len(empty), empty.measured_recall()) == (0, 1)


class LosesHalf(FlatIndex):
    """Finds only vectors at even positions."""

    def search(self, queries, n, allowed=None):
        return super().search(queries, n, self.ids[::2])


def test_the_recall_of_a_lossy_index(matrix):
    lossy = LosesHalf.build("flat", DIMENSION, len(IDS), lambda: blocks(matrix), 1)
    assert RecallTest.of(lossy).recall(lossy) == pytest.approx(0.5, abs=0.06)


def test_the_recall_is_the_lower_bound_of_its_interval():
    """Half of 400 queries find all: 0.5 - 1.645 * 0.5 / sqrt(400)."""

    class FindsEverySecond:
        def __len__(self):
            return 10

        def search(self, queries, n):
            scores = numpy.ones((len(queries), n), numpy.float32)
            scores[::2] = 0
            return scores, numpy.zeros((len(queries), n), numpy.int64)

    test = RecallTest(numpy.zeros((400, 2)), numpy.ones(400, numpy.float32))
    assert test.recall(FindsEverySecond()) == pytest.approx(0.458875)


@pytest.mark.parametrize(("enough", "effort"), [(1, 1), (5, 6), (9, 10), (11, 10)])
@pytest.mark.parametrize(("least", "candidates"), [(1, 20), (21, 40), (80, 80), (81, 80)])
def test_tuning_chooses_the_least_effort(matrix, monkeypatch, enough, effort, least, candidates):
    """1, 2, 3, 4, 6, 8 and 10 lists are tried, then 20, 40 and 80 candidates per neighbour."""
    index = built("IVF10,PQ8x4fs", matrix)
    index._candidates = 20
    monkeypatch.setattr(index, "_reach", lambda seed: lambda effort: float(effort >= enough))
    monkeypatch.setattr(RecallTest, "recall", lambda test, index: float(index._candidates >= least))
    index.tune(0.98)
    assert (index._effort, index._candidates) == (effort, candidates)


@pytest.mark.parametrize("kind", ["IVF10,Flat", "IVF30_HNSW8,PQ8x4fs"])
def test_the_reach_of_lists(matrix, kind):
    """The same share as FAISS's own search of exact vectors finds in these lists."""
    index = built(kind, matrix)
    reach = index._reach(seed=0)
    random = numpy.random.default_rng(0)
    queries = random.standard_normal((QUERIES, DIMENSION)).astype(numpy.float32)
    quantizer = faiss.downcast_index(index._base.quantizer)
    whole = faiss.IndexIVFFlat(quantizer, DIMENSION, quantizer.ntotal, faiss.METRIC_INNER_PRODUCT)
    whole.add(matrix)
    nearest = numpy.argsort(-queries @ matrix.T, axis=1)[:, :10]
    before = 0
    for lists in (1, 3, 6, quantizer.ntotal):
        whole.nprobe = lists
        _, found = whole.search(queries, 10)
        shares = (found[:, :, None] == nearest[:, None]).any(axis=1).mean(axis=1)
        expected = shares.mean() - 1.645 * shares.std() / 20
        assert reach(lists) == pytest.approx(expected, abs=1e-6)
        assert reach(lists) > before
        before = reach(lists)


def test_a_single_list_has_all_vectors(matrix, monkeypatch):
    index = built("IVF1,PQ8x4fs", matrix)
    monkeypatch.setattr(index._exact, "search", lambda *_: pytest.fail("an exact search"))
    assert index._reach(seed=0)(1) == 1


def test_the_recall_is_that_of_the_weaker_part(matrix, monkeypatch):
    index = built("IVF10,PQ8x4fs", matrix)
    monkeypatch.setattr(RecallTest, "recall", lambda test, index: 0.9)
    for reached in (0.8, 0.95):
        monkeypatch.setattr(index, "_reach", lambda seed, found=reached: lambda effort: found)
        assert index.measured_recall() == min(reached, 0.9)


@pytest.mark.parametrize(("queries", "limit", "threads"), [(2, 10**6, 1), (2, 10, 3), (1, 10, 1)])
def test_small_searches_and_single_queries_use_one_thread(monkeypatch, queries, limit, threads):
    monkeypatch.setattr("semsearch.vector_indexes.flat.ONE_THREAD_PRODUCTS", limit)
    before, seen = faiss.omp_get_max_threads(), []
    faiss.omp_set_num_threads(3)

    def search(*arguments, **options):
        seen.append(faiss.omp_get_max_threads())
        return numpy.zeros((queries, 1), numpy.float32), numpy.zeros((queries, 1), numpy.int64)

    inner = faiss.IndexIDMap(faiss.IndexFlatIP(32))
    inner.add_with_ids(numpy.zeros((100, 32), numpy.float32), numpy.arange(100))
    index = FlatIndex(inner)
    monkeypatch.setattr(index._exact.flat, "search", search)
    try:
        index.search(numpy.zeros((queries, 32), numpy.float32), 1)
        assert (seen, faiss.omp_get_max_threads()) == ([threads], 3)
    finally:
        faiss.omp_set_num_threads(before)
