"""Rankings and their measures, against scikit-learn and calculations by hand."""

from __future__ import annotations

import math

import numpy
import pytest
from sklearn.metrics import ndcg_score

from semsearch import Document, Index, Retriever
from semsearch.datasets import RetrievalSet, load_retrieval_set
from semsearch.encoders import load_encoder
from semsearch.errors import ArgumentError, DatasetError
from semsearch.evaluation import evaluate_retrieval, load_rankers, read_run, write_run
from semsearch.evaluation.rankers import DEPTH, DenseRanker, RerankedRanker
from semsearch.evaluation.retrieval import measures

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
    """A system whose ranking is known."""

    precision = None

    def __init__(self, spec, run):
        self.spec = spec
        self.run = run

    def rank(self, retrieval):
        from semsearch.evaluation import Ranking

        return Ranking({query: self.run.get(query, {}) for query in retrieval.queries}, 0.5)


def test_measures_by_hand():
    run = {
        "q1": {"d3": 3.0, "d1": 2.0, "d2": 1.0},
        "q2": {"d2": 1.0, "d1": 0.5},
    }
    evaluation = evaluate_retrieval(PETS, [Ranked("known", run)], ["nDCG@10", "RR@10", "R@2", "AP"])
    gained = 2 / math.log2(3) + 1 / math.log2(4)  # Järvelin & Kekäläinen 2002, gains as they are
    ideal = 2 / math.log2(2) + 1 / math.log2(3)
    expected = {
        "nDCG@10": [gained / ideal, 1, 0],
        "RR@10": [1 / 2, 1, 0],
        "R@2": [1 / 2, 1, 0],
        "AP": [(1 / 2 + 2 / 3) / 2, 1, 0],
    }
    for measure, values in expected.items():
        found = evaluation.per_query["known"][measure]
        numpy.testing.assert_allclose(found, 100 * numpy.array(values), atol=1e-9)
    for result in evaluation.results:
        assert result.mean.value == pytest.approx(100 * numpy.mean(expected[result.measure]))
        assert (result.n, result.seconds) == (3, 0.5)


def test_a_run_over_scifact_against_scikit_learn(data):
    """To 1e-6 of an independent implementation; SciFact's judgements are 0 or 1."""
    del data
    retrieval = load_retrieval_set("scifact")
    rankers = load_rankers(["bm25"])
    evaluation = evaluate_retrieval(retrieval, rankers, ["nDCG@10"])
    run = rankers[0].rank(retrieval).run
    ids = list(retrieval.documents)
    expected = []
    for query in retrieval.queries:
        gains = [retrieval.qrels[query].get(name, 0) for name in ids]
        scores = [run[query].get(name, 0.0) for name in ids]
        expected.append(ndcg_score([gains], [scores], k=10, ignore_ties=True))
    assert evaluation.results[0].mean.value == pytest.approx(100 * numpy.mean(expected), abs=1e-6)
    numpy.testing.assert_allclose(
        evaluation.per_query["bm25"]["nDCG@10"], 100 * numpy.array(expected), atol=1e-6
    )


def test_dense_ranking_is_the_order_of_cosines(hashing):
    run = DenseRanker(hashing).rank(PETS).run
    documents = hashing.encode_documents(list(PETS.documents.values()))
    for name, query in PETS.queries.items():
        scores = documents @ hashing.encode_queries([query])[0]
        expected = dict(zip(PETS.documents, scores.tolist(), strict=True))
        assert run[name] == pytest.approx(expected)
        ranked = list(run[name].items())
        assert ranked == sorted(ranked, key=lambda item: (item[1], item[0]), reverse=True)


def test_only_the_first_documents_are_kept(hashing):
    rng = numpy.random.default_rng(0)
    words = ["red", "green", "blue", "grey", "pink", "black", "white", "brown"]
    texts = {f"d{n:05}": " ".join(rng.choice(words, 5)) for n in range(DEPTH + 500)}
    retrieval = RetrievalSet("many", texts, {"q": "red green grey"}, {"q": {"d00000": 1}})
    found = list(DenseRanker(hashing).rank(retrieval).run["q"].values())
    scores = (
        hashing.encode_documents(list(texts.values()))
        @ hashing.encode_queries(["red green grey"])[0]
    )
    numpy.testing.assert_allclose(found, numpy.sort(scores)[::-1][:DEPTH], atol=1e-6)


def test_bm25_ranks_as_an_index_does(tmp_path):
    """One passage a document, so that both rank the same texts."""
    run = load_rankers(["bm25"])[0].rank(PETS).run
    with Index.create(tmp_path / "pets", ["hashing"]) as index:
        index.add([Document(name, text) for name, text in PETS.documents.items() if text])
    with Retriever.open(tmp_path / "pets") as retriever:
        for name, query in PETS.queries.items():
            hits = retriever.search(query, mode="bm25")
            assert list(run[name]) == [hit.document_id for hit in hits]
    assert run["q3"] == {}


def test_results_say_in_which_numbers_they_were_computed():
    class Auto:
        spec, precision = "auto", "bf16"

    encoders = {"minilm": load_encoder("minilm", precision="fp32")}
    rankers = load_rankers(["minilm", "bm25", "hybrid:minilm"], encoders)
    rankers.append(RerankedRanker("minilm+long", rankers[0], Fixed()))
    rankers.append(RerankedRanker("auto+long", Auto(), Fixed()))
    found = [ranker.precision for ranker in rankers]
    assert found == ["fp32", None, "fp32", "fp32", "bf16+fp32"]
    results = evaluate_retrieval(PETS, rankers[:2], ["nDCG@10"]).results
    assert [(one.precision, one.split) for one in results] == [("fp32", "test"), (None, "test")]


def test_hybrid_fuses_reciprocal_ranks(hashing):
    """Cormack, Clarke & Büttcher 2009: the sum of 1 / (60 + rank)."""
    encoders = {"hashing": hashing}
    dense, words, hybrid = (
        ranker.rank(PETS).run
        for ranker in load_rankers(["hashing", "bm25", "hybrid:hashing"], encoders)
    )
    for query, found in hybrid.items():
        expected = {}
        for ranked in (dense[query], words[query]):
            for rank, name in enumerate(ranked, start=1):
                expected[name] = expected.get(name, 0) + 1 / (60 + rank)
        assert found == pytest.approx(expected)
        assert list(found.values()) == sorted(found.values(), reverse=True)


def test_a_reranker_reorders_what_was_found():
    [words] = load_rankers(["bm25"])
    run = RerankedRanker("bm25+long", words, Fixed()).rank(PETS).run
    assert run["q1"] == {"d1": 30.0, "d2": 22.0}
    assert run["q2"] == {"d1": 30.0, "d2": 22.0, "d4": 12.0}
    assert run["q3"] == {}


def test_what_nobody_can_read_is_not_reranked(tmp_path):
    (tmp_path / "a.run").write_text("q1 Q0 gone 1 3 x\nq1 Q0 d2 2 2 x\nq1 Q0 d1 3 1 x\n")
    [recorded] = load_rankers([f"run:{tmp_path}/a.run"])
    run = RerankedRanker("a+long", recorded, Fixed()).rank(PETS).run
    assert list(run["q1"]) == ["d1", "d2"]
    assert run["q2"] == {}


def test_every_two_systems_are_compared_by_every_measure():
    systems = [Ranked("a", {"q1": {"d1": 1.0}}), Ranked("b", {}), Ranked("c", {})]
    evaluation = evaluate_retrieval(PETS, systems, ["AP", "RR@10"])
    assert len(evaluation.differences) == 3 * 2
    first = evaluation.differences[0]
    assert (first.system, first.other, first.measure) == ("b", "a", "AP")
    assert first.difference.value == pytest.approx(-100 * (1 / 2) / 3)


def test_runs_are_read_and_written(tmp_path):
    run = {"q1": {"d2": 0.1 + 0.2, "d1": 1e-12}, "q2": {"d3": 5.0}}
    write_run(tmp_path / "a.run", run, "my system")
    lines = (tmp_path / "a.run").read_text().splitlines()
    assert lines[0] == "q1 Q0 d2 1 0.30000000000000004 my_system"
    assert lines[1] == "q1 Q0 d1 2 1e-12 my_system"
    assert read_run(tmp_path / "a.run") == run


def test_a_run_is_ordered_as_trec_eval_orders_it(tmp_path):
    """By score, whatever the ranks say; of equal scores the greater id first."""
    (tmp_path / "a.run").write_text("q Q0 a 1 1 x\nq Q0 b 2 1 x\nq Q0 c 3 2 x\n\n")
    assert list(read_run(tmp_path / "a.run")["q"]) == ["c", "b", "a"]


def test_a_recorded_run_is_a_system(tmp_path):
    rankers = load_rankers(["bm25"])
    first = evaluate_retrieval(PETS, rankers)
    write_run(tmp_path / "a.run", first.runs["bm25"], "bm25")
    again = evaluate_retrieval(PETS, load_rankers([f"run:{tmp_path}/a.run"]))
    values = [[result.mean for result in one.results] for one in (first, again)]
    assert values[0] == values[1]
    assert math.isnan(again.results[0].seconds)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("q Q0 d 1 0.5\n", "a.run:1: not 'query Q0 document rank score tag'"),
        ("q Q0 d 1 high x\n", "a.run:1: not"),
        ("q Q0 d 1 1 x\nq Q0 d 2 1 x\n", "a.run:2: d is there already"),
        ("other Q0 d 1 1 x\n", "none of its queries is in pets"),
    ],
)
def test_wrong_runs_are_told(tmp_path, content, message):
    (tmp_path / "a.run").write_text(content)
    with pytest.raises(DatasetError, match=message):
        evaluate_retrieval(PETS, load_rankers([f"run:{tmp_path}/a.run"]))


def test_other_mistakes_are_told(tmp_path):
    with pytest.raises(ArgumentError, match=r"cannot keep the id 'd 1'"):
        write_run(tmp_path / "a.run", {"q": {"d 1": 1.0}}, "x")
    with pytest.raises(DatasetError, match=r"missing\.run: No such file"):
        read_run(tmp_path / "missing.run")
    with pytest.raises(ArgumentError, match=r"ENCODER\+cross-encoder:x"):
        load_rankers(["cross-encoder:x"])
    with pytest.raises(ArgumentError, match="no measure 'nDGC@10'"):
        measures(["nDGC@10"])


@pytest.mark.timeout(600)
def test_minilm_on_scifact(data, minilm):
    """The published nDCG@10 is 64.5 over the same claims and abstracts."""
    del data
    rankers = load_rankers(["minilm"], {"minilm": minilm})
    evaluation = evaluate_retrieval(load_retrieval_set("scifact"), rankers, ["nDCG@10"])
    result = evaluation.results[0]
    assert (result.n, result.published) == (300, 64.5)
    assert result.mean.value == pytest.approx(64.5, abs=0.2)
