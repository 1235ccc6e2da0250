"""STS scoring: both aggregations by hand, published figures on the real data."""

from __future__ import annotations

import numpy
import pytest
from scipy.stats import pearsonr, spearmanr

from semsearch.errors import ArgumentError
from semsearch.evaluation import Aggregation, CosineScorer, evaluate_sts, load_pair_scorer
from semsearch.evaluation.datasets import ScoredPair, StsSet, load_sts_set
from semsearch.evaluation.results import published_rows, published_value


class Lengths:
    """Scores pairs by the similarity of their lengths, plus noise."""

    precision = None

    def __init__(self, spec, noise=0.0):
        self.spec = spec
        self.noise = noise

    def score_pairs(self, pairs):
        rng = numpy.random.default_rng(3)
        noise = self.noise * rng.normal(size=len(pairs))
        gaps = numpy.array([-abs(len(left) - len(right)) for left, right in pairs])
        return (gaps + noise).astype(numpy.float32)


def made_set(sizes=(30, 50)):
    rng = numpy.random.default_rng(1)
    subsets = {}
    for number, size in enumerate(sizes):
        lengths = rng.integers(1, 40, (size, 2))
        # The gold scores of the second subset are higher, which affects pooling but not the mean.
        subsets[f"part {number}"] = [
            ScoredPair("a" * left, "b" * right, float(-abs(left - right) + 30 * number + noise))
            for (left, right), noise in zip(lengths, rng.normal(0, 4, size), strict=True)
        ]
    return StsSet("made", "test", subsets, unscored=2)


def test_both_aggregations_equal_scipys():
    dataset = made_set()
    scorer = Lengths("lengths", noise=5)
    evaluation = evaluate_sts(dataset, [scorer])
    scores = evaluation.scores["lengths"]
    gold = [pair.gold for pair in dataset.pairs]
    halves = [(scores[:30], gold[:30]), (scores[30:], gold[30:])]
    pooled, mean = evaluation.results
    assert (pooled.over, mean.over) == (Aggregation.ALL, Aggregation.MEAN)
    assert pooled.estimate.value == pytest.approx(100 * spearmanr(scores, gold)[0])
    assert pooled.pearson == pytest.approx(100 * pearsonr(scores, gold)[0])
    assert mean.estimate.value == pytest.approx(50 * sum(spearmanr(*half)[0] for half in halves))
    assert mean.pearson == pytest.approx(50 * sum(pearsonr(*half)[0] for half in halves))
    assert mean.estimate.value > pooled.estimate.value + 5
    for result in evaluation.results:
        assert result.n == 80
        assert result.estimate.low < result.estimate.value < result.estimate.high
        assert result.published is None


def test_subsets_are_resampled_independently():
    """The mean of n independent values has a standard deviation smaller by sqrt(n).

    In subsets with the same pairs, samples of the same rows would have the same correlation.
    """
    [pairs] = made_set([60]).subsets.values()
    sets = [StsSet("same", "test", dict.fromkeys("abcd"[:count], pairs), 0) for count in (1, 4)]
    one, several = (evaluate_sts(each, [Lengths("lengths")]).results[-1] for each in sets)
    assert several.over is Aggregation.MEAN
    assert several.estimate.value == pytest.approx(one.estimate.value)
    widths = [found.estimate.high - found.estimate.low for found in (one, several)]
    assert widths[1] == pytest.approx(widths[0] / 2, rel=0.15)


def test_each_pair_of_systems_is_compared():
    scorers = [Lengths("good"), Lengths("worse", 3), Lengths("bad", 100)]
    scorers[0].precision = "bf16"
    evaluation = evaluate_sts(made_set(), scorers)
    pooled = [one for one in evaluation.differences if one.over is Aggregation.ALL]
    names = [(one.system, one.other) for one in pooled]
    assert names == [("worse", "good"), ("bad", "good"), ("bad", "worse")]
    first = evaluation.results[:3]
    assert [one.precision for one in first] == ["bf16", None, None]
    value = {one.system: one.estimate.value for one in first}
    for one in pooled:
        assert one.difference.value == pytest.approx(value[one.system] - value[one.other])
        assert one.difference.low <= one.difference.value <= one.difference.high
    assert pooled[1].difference.p < 0.05


def test_wrong_arguments_are_refused():
    class TooMany(Lengths):
        def score_pairs(self, pairs):
            return numpy.append(super().score_pairs(pairs), 0)

    for scorers in ([Lengths("a"), Lengths("b"), Lengths("a")], [TooMany("many")]):
        with pytest.raises(ArgumentError):
            evaluate_sts(made_set([20]), scorers)
    with pytest.raises(ArgumentError, match="^made: 2 pairs .* part 1"):
        evaluate_sts(made_set([20, 2]), [Lengths("lengths")])
    assert evaluate_sts(made_set([20, 3]), [Lengths("lengths")]).results[0].n == 23
    for spec in ("bm25", "hybrid:minilm"):
        with pytest.raises(ArgumentError):
            load_pair_scorer(spec)


def test_pairs_are_scored_in_blocks_that_are_reported(monkeypatch):
    dataset, calls = made_set((40, 45)), []
    whole = evaluate_sts(dataset, [Lengths("lengths")]).scores["lengths"]
    monkeypatch.setattr("semsearch.evaluation.sts.PAIRS_AT_ONCE", 50)
    scorers = [Lengths("lengths")]
    blocks = evaluate_sts(dataset, scorers, on_progress=lambda *call: calls.append(call))
    numpy.testing.assert_array_equal(blocks.scores["lengths"], whole)
    assert calls == [("lengths", "pairs", done, 85) for done in (0, 50, 85)]


def test_a_bi_encoder_scores_by_the_cosine(hashing):
    pairs = [("a cat", "a dog"), ("x", "a dog"), ("a cat",) * 2, ("it is, is it",) * 2]
    vectors = [hashing.encode_documents(list(pair)) for pair in pairs]
    expected = [float(left @ right) for left, right in vectors]
    scorer = CosineScorer(hashing)
    assert (scorer.spec, scorer.precision) == (hashing.spec, None)
    found = scorer.score_pairs(pairs)
    numpy.testing.assert_allclose(found, expected, atol=1e-6)
    assert found[2:].tolist() == [1.0, 1.0]  # tied


def test_published_values_are_for_the_same_pairs_only():
    """MTEB's SICK-R is over all 9,927 pairs of SICK; its test set has 4,927."""
    known = {"sts12", "sts13", "sts14", "sts15", "sts16", "stsbenchmark", "sick:all"}
    assert all(set(row.scores) <= known == set(row.sizes) for row in published_rows("sts"))
    for expected, *key in (
        (82.03, "sts", "minilm", "stsbenchmark", "test", 1379),
        (None, "sts", "minilm", "stsbenchmark", "dev", 1500),
        (None, "sts", "minilm", "stsbenchmark", "test", 20),  # someone's own file
        (77.58, "sts", "minilm", "sick", "all", 9927),
        (None, "sts", "minilm", "sick", "test", 4927),
        (64.5, "ir", "minilm", "scifact", "test", 300),
    ):
        assert published_value(*key) == expected
    of_means = evaluate_sts(made_set([2000, 1108])._replace(name="sts12"), [Lengths("minilm")])
    assert [result.published for result in of_means.results] == [72.37, None]


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["stsbenchmark", "sts13"])
def test_minilm_has_its_published_values(data, minilm, name):
    """MTEB's results for the model; the yearly sets with all pairs pooled."""
    del data
    evaluation = evaluate_sts(load_sts_set(name, "test"), [CosineScorer(minilm)])
    result = evaluation.results[0]
    assert result.over is Aggregation.ALL
    assert result.estimate.value == pytest.approx(result.published, abs=0.1)
