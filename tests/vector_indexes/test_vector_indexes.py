"""Both kinds of vector index: built, saved, opened, searched."""

from __future__ import annotations

import faiss
import numpy
import pytest

from semsearch.vector_indexes import flat, ivf
from semsearch.vector_indexes.flat import VectorIndex
from semsearch.vector_indexes.ivf import QUERIES, IvfIndex, RecallTest

IDS = numpy.arange(2000) * 3 + 7
DIMENSION = 16


def unit(matrix):
    return matrix / numpy.linalg.norm(matrix, axis=1, keepdims=True)


@pytest.fixture(scope="module")
def matrix():
    vectors = numpy.random.default_rng(1).normal(size=(len(IDS), DIMENSION)).astype(numpy.float32)
    return unit(vectors)


@pytest.fixture(scope="module", autouse=True)
def searched_by_codes():
    """Otherwise, so few vectors would all be compared."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ivf, "MANY_CANDIDATES", 10)
        yield


@pytest.fixture(scope="module")
def queries(matrix):
    return matrix[::50] * 0.6 + matrix[1::50] * 0.8


def blocks(matrix):
    for start in range(0, len(IDS), 128):
        yield IDS[start : start + 128], matrix[start : start + 128]


def built(kind, matrix, recall=0.98):
    """An index; ``lists`` is IVF with 45 lists."""
    with pytest.MonkeyPatch.context() as patch:
        if kind == "lists":
            patch.setattr(ivf, "ONE_LIST", 0)
        cls = VectorIndex if kind == "flat" else IvfIndex
        return cls.build(DIMENSION, len(matrix), blocks(matrix), recall)


@pytest.fixture(scope="module", params=["flat", "ivf", "lists"])
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def index(kind, matrix, tmp_path_factory):
    """An index that was saved and opened again."""
    file = tmp_path_factory.mktemp("index") / "index"
    index = built(kind, matrix)
    index.save(file)
    return type(index).open(file)


def test_a_file_that_faiss_cannot_open_by_its_name(index, queries, tmp_path, monkeypatch):
    file = tmp_path / "Vögel"
    index.save(file)
    monkeypatch.setattr(flat, "_OPENS_ONLY_ASCII", True)
    monkeypatch.setattr(faiss, "IO_FLAG_MMAP_IFC", None)
    read = type(index).open(file)
    numpy.testing.assert_array_equal(read.search(queries, 5)[1], index.search(queries, 5)[1])


def test_it_contains_its_ids_and_vectors(index, matrix):
    assert index.ids.tolist() == IDS.tolist()
    some = IDS[[3, 499, 0]]
    assert (index.vectors(some) == matrix[[3, 499, 0]]).all()


@pytest.mark.parametrize("n", [1, 40, 200])
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


@pytest.mark.parametrize("share", [1.0, 0.3, 0.015])
def test_of_equal_vectors_the_first_are_found(kind, matrix, share):
    """For every n: a third of the vectors are those of two texts, which are searched for."""
    random = numpy.random.default_rng(5)
    texts, repeated = matrix[:2], matrix.copy()
    rows = random.permutation(len(IDS))[:600].reshape(2, 300)
    repeated[rows] = texts[:, None]
    index = built(kind, repeated)
    allowed = numpy.sort(random.permutation(IDS)[: int(share * len(IDS))])
    for text in texts:
        own = numpy.flatnonzero((repeated == text).all(axis=1))
        query = unit(text[None] + 0.1 * matrix[3])
        scores = repeated @ query[0]
        better = IDS[scores > scores[own[0]] + 1e-6]
        expected = numpy.intersect1d(IDS[own], allowed)
        first = numpy.isin(better, allowed).sum()
        for n in range(1, first + len(expected) + 3):
            _, ids = index.search(query, n, None if share == 1 else allowed)
            assert (
                ids[0, first:].tolist()[: len(expected)] == expected[: max(0, n - first)].tolist()
            )


def test_equal_scores_are_ordered_by_id_and_missing_ones_come_last():
    scores = numpy.array([[0.5, 0.5000004, 0.700001, 9]], numpy.float32)
    rounded, ids = flat.ranked(scores, numpy.array([[4, 2, 9, -1]]))
    assert ids.tolist() == [[9, 2, 4, -1]]
    numpy.testing.assert_allclose(rounded, [[0.700001, 0.5, 0.5, -numpy.inf]], atol=2e-7)


@pytest.mark.parametrize(
    ("many", "allowed", "by_codes"),
    [(0.1, None, False), (0.1001, None, True), (10, 41, True), (10, 40, False), (0.21, 950, False)],
)
def test_all_are_compared_where_codes_save_nothing(matrix, monkeypatch, many, allowed, by_codes):
    """If a tenth would be candidates, here 200 of 2000; and if up to 2 % are allowed."""
    index = built("ivf", matrix, 0)
    refined = []
    original = index._refined
    monkeypatch.setattr(index, "_refined", lambda *args: refined.append(1) or original(*args))
    monkeypatch.setattr(ivf, "MANY_CANDIDATES", many)
    index.search(matrix[:1], 1, None if allowed is None else IDS[:allowed])
    assert bool(refined) == by_codes


def test_queries_whose_lists_have_too_few_allowed_vectors(matrix, queries):
    """They are compared with all of them."""
    index = built("lists", matrix)
    index._codes.nprobe = 1
    allowed = IDS[::40]
    scores, ids = index.search(queries, 6, allowed)
    exact_scores, exact_ids = index.exact_search(queries, 6, allowed)
    assert (ids >= 0).all()
    assert (ids == exact_ids).all()
    numpy.testing.assert_array_equal(scores, exact_scores)


@pytest.mark.parametrize(
    ("n", "factor", "candidates"),
    [(1, 20, 200), (10, 20, 200), (11, 20, 214), (100, 20, 1003), (100, 40, 2005)],
)
def test_the_number_of_candidates(matrix, n, factor, candidates):
    index = built("ivf", matrix)
    index._refine.k_factor = factor
    assert index._candidates_of(n) == candidates


@pytest.mark.parametrize(("most", "lists"), [(2000, 1), (1999, 45)])
def test_many_vectors_are_divided_into_lists(matrix, monkeypatch, most, lists):
    tuned = []
    monkeypatch.setattr(ivf, "ONE_LIST", most)
    monkeypatch.setattr(IvfIndex, "tune", lambda self, recall: tuned.append(recall))
    assert IvfIndex.build(DIMENSION, len(IDS), blocks(matrix))._codes.nlist == lists
    assert tuned == [0.98]


def test_recall(index, kind):
    recall = index.measured_recall()
    assert recall == 1 if kind == "flat" else 0.95 <= recall <= 1


def test_more_recall_needs_more_lists(matrix, tmp_path):
    """Their number is stored in the file."""
    lists = []
    for recall in (0.3, 0.999):
        file = tmp_path / f"{recall}"
        built("lists", matrix, recall).save(file)
        lists.append(IvfIndex.open(file)._codes.nprobe)
    few, many = lists
    assert few < many


def test_an_empty_index():
    empty = VectorIndex.build(DIMENSION, 0, [])
    assert (len(empty), empty.measured_recall()) == (0, 1)
    assert empty.search(numpy.ones((1, DIMENSION), numpy.float32), 2)[1].tolist() == [[-1, -1]]


def test_its_queries_lie_between_vectors_and_beside_them(matrix):
    """Halfway between two, and 1.2 aside: at a cosine of about sqrt(1/2) / sqrt(1 + 1.2²)."""
    index = built("flat", matrix)
    random = numpy.random.default_rng(7)
    pairs = [index.vectors(random.choice(IDS, QUERIES)) for _ in range(2)]
    test = RecallTest.of(index, seed=7)
    for vectors in pairs:
        assert (test.queries * vectors).sum(axis=1).mean() == pytest.approx(0.453, abs=0.02)
    exact = numpy.sort(test.queries @ matrix.T, axis=1)[:, -10]
    numpy.testing.assert_allclose(test.least, exact, atol=1e-6)


def test_the_measured_recall_is_that_of_other_queries(matrix, monkeypatch):
    index, seeds, original = built("lists", matrix), [], RecallTest.of
    monkeypatch.setattr(
        RecallTest, "of", lambda index, seed=0: seeds.append(seed) or original(index, seed)
    )
    index.tune(0.9)
    index.measured_recall()
    assert seeds == [0, 1]


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
    test.least[1:] = 2  # and now none
    assert test.recall(FindsEverySecond()) == 0


@pytest.mark.parametrize(("enough", "lists"), [(1, 1), (5, 6), (40, 45), (46, 45)])
@pytest.mark.parametrize(("least", "candidates"), [(1, 20), (21, 40), (80, 80), (81, 80)])
def test_tuning_chooses_the_least_effort(matrix, monkeypatch, enough, lists, least, candidates):
    """1, 2, 3, 4, 6 … and 45 lists are tried, then 20, 40 and 80 candidates per neighbour."""
    index = built("lists", matrix)
    coverage = lambda number: float(number >= enough)  # noqa: E731
    monkeypatch.setattr(index, "_list_coverage", lambda seed: coverage)
    monkeypatch.setattr(
        RecallTest, "recall", lambda test, index: float(index._refine.k_factor >= least)
    )
    index.tune(0.98)
    assert (index._codes.nprobe, index._refine.k_factor) == (lists, candidates)


def test_the_coverage_of_lists(matrix):
    """The same share as FAISS's own search of exact vectors finds in these lists."""
    index = built("lists", matrix)
    coverage = index._list_coverage(seed=0)
    random = numpy.random.default_rng(0)
    queries = random.standard_normal((QUERIES, DIMENSION)).astype(numpy.float32)
    quantizer = faiss.downcast_index(index._codes.quantizer)
    whole = faiss.IndexIVFFlat(quantizer, DIMENSION, quantizer.ntotal, faiss.METRIC_INNER_PRODUCT)
    whole.add(matrix)
    nearest = numpy.argsort(-queries @ matrix.T, axis=1)[:, :10]
    before = 0
    for lists in (1, 3, 6, quantizer.ntotal):
        whole.nprobe = lists
        _, found = whole.search(queries, 10)
        shares = (found[:, :, None] == nearest[:, None]).any(axis=1).mean(axis=1)
        expected = shares.mean() - 1.645 * shares.std() / 20
        assert coverage(lists) == pytest.approx(expected, abs=1e-6)
        assert coverage(lists) > before
        before = coverage(lists)


def test_the_recall_is_that_of_the_weaker_part(matrix, monkeypatch):
    index = built("ivf", matrix)
    monkeypatch.setattr(RecallTest, "recall", lambda test, index: 0.9)
    for reached in (0.8, 0.95):
        monkeypatch.setattr(
            index, "_list_coverage", lambda seed, found=reached: lambda number: found
        )
        assert index.measured_recall() == min(reached, 0.9)
