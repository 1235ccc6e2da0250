"""Rankings, their measures against calculations by hand, and their files in TREC's format."""

from __future__ import annotations

import math

import numpy
import pytest
from pets import PETS, Fixed, Ranked, ranked

from semsearch import Document, Index
from semsearch.encoders import load_encoder
from semsearch.errors import ArgumentError, CorpusError, DatasetError
from semsearch.evaluation import (
    Collection,
    evaluate_retrieval,
    index_rankers,
    load_rankers,
    read_run,
    write_run,
)
from semsearch.evaluation.datasets import RetrievalSet
from semsearch.evaluation.rankers import DEPTH, FIRST, QUERIES_AT_ONCE, IndexRanker, RecordedRanker
from semsearch.evaluation.retrieval import measures
from semsearch.records import SearchMode


class Wrapped:
    """Another encoder than the hashing encoder, but for its vectors."""

    spec = fingerprint = "wrapped"

    def __getattr__(self, name):
        return getattr(load_encoder("hashing"), name)


def test_measures_by_hand():
    run = {"q1": {"d3": 3.0, "d1": 2.0, "d2": 1.0}, "q2": {"d2": 1.0, "d1": 0.5}}
    evaluation = evaluate_retrieval(PETS, [Ranked("known", run)], ["nDCG@10", "RR@10", "R@2", "AP"])
    gained = 2 / math.log2(3) + 1 / math.log2(4)  # Järvelin & Kekäläinen 2002, linear gains
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
        assert result.estimate.value == pytest.approx(100 * numpy.mean(expected[result.over]))
        assert (result.n, result.seconds) == (3, 0.5)


def test_err_by_hand():
    """Chapelle et al. 2009 with grades up to 4, for ids of any kind."""
    names = {"d1": "the first", "d2": "the last"}
    judged = {"q1": {names["d1"]: 1, names["d2"]: 4, "d3": -1}, "a-2": {"d4": 1}}
    retrieval = PETS._replace(queries={"q1": "cat", "a-2": "dog"}, qrels=judged)
    run = {"q1": {"d3": 4.0, names["d2"]: 3.0, names["d1"]: 2.0}, "a-2": {"d4": 1.0}}
    found = evaluate_retrieval(retrieval, [Ranked("known", run)], ["ERR@10"]).per_query
    stops = 15 / 16, 1 / 16  # the probability that a document satisfies: (2 ** grade - 1) / 2 ** 4
    expected = [stops[0] / 2 + (1 - stops[0]) * stops[1] / 3, stops[1]]
    numpy.testing.assert_allclose(found["known"]["ERR@10"], 100 * numpy.array(expected), atol=1e-2)


def test_queries_with_operators_are_counted_once_for_all_queries_and_systems(hashing, caplog):
    plain = {f"q{number}": f"old cat {number}" for number in range(QUERIES_AT_ONCE)}
    queries = plain | {"a": 'the "old cat"', "b": "dog -sleeps", "c": '"aquarium"', "d": "-LRB-"}
    retrieval = PETS._replace(queries=queries, qrels={"a": {"d1": 1}})
    for systems, warnings in ((["hashing"], 0), (["bm25", "hybrid:hashing"], 1)):
        evaluate_retrieval(retrieval, load_rankers(systems, {"hashing": hashing}), ["AP"])
        assert len(caplog.messages) == warnings
    assert caplog.messages[0].endswith(f" 2 of {len(queries)} queries")


def test_a_query_without_results_has_a_value_of_0():
    names = ["Judged@10", "Compat(p=0.8)", "IPrec@0.5", "nDCG@10"]
    retrieval = PETS._replace(qrels=PETS.qrels | {"q3": {"d1": 0}})
    run = {"q2": {"d2": 1.0}, "q3": {"d3": 1.0}}  # none for q1, none relevant for q3
    found = evaluate_retrieval(retrieval, [Ranked("known", run)], names).per_query["known"]
    for values in found.values():
        assert values.tolist() == [0, 100, 0]


def test_what_is_refused():
    """Undefined: Accuracy if all documents are relevant; ERR with a relevance above 4."""
    retrieval = PETS._replace(qrels=PETS.qrels | {"q2": {"d2": 5}})
    for measure in ("Accuracy", "ERR@10"):
        with pytest.raises(DatasetError, match=measure):
            evaluate_retrieval(retrieval, [Ranked("known", {"q1": {"d1": 1.0}})], [measure])
    rankers = [Ranked("mine", {}), Ranked("other", {}), Ranked("mine", {"q1": {"d1": 1.0}})]
    with pytest.raises(ArgumentError, match="'mine'"):
        evaluate_retrieval(PETS, rankers)
    for name in ("P", "BPM", "RR@10.5", "alpha_nDCG@10", "P@0", "nDCG@-1", "x"):
        with pytest.raises(ArgumentError):
            measures([name])
    with pytest.raises(ArgumentError):
        evaluate_retrieval(PETS, [], [])


def test_grades_below_zero_are_not_relevant():
    """trec_eval crashes at -2, which stands for spam in TREC's web tracks, without other grades."""
    run = {"q1": {"d1": 1.0}, "q2": {"d2": 1.0}, "q3": {"d3": 1.0}}
    for grade in (-100, -2, -1):
        retrieval = PETS._replace(qrels=PETS.qrels | {"q2": {"d2": grade}, "q3": {"d3": grade}})
        names = ("nDCG@10", "RR@10", "AP", "R@100", "Bpref")
        found = evaluate_retrieval(retrieval, [Ranked("known", run)], names).per_query["known"]
        assert [values[1:].tolist() for values in found.values()] == [[0, 0]] * 5
        assert found["RR@10"][0] == 100


LONG = RetrievalSet(
    "long",
    {
        "whole": "Cats sleep. " * 10 + "Trains run late in winter. " * 60,
        "short": "Trains are late.",
        "other": "Dogs bark. " * 200,
        "blank": " ",
    },
    {"q1": "trains late", "q2": "dogs", "q3": "cats sleep"},
    {"q1": {"whole": 2, "short": 1}, "q2": {"other": 1}, "q3": {"whole": 1}},
)


def test_what_is_measured_is_what_users_get(tmp_path, hashing):
    """Indexing and searching the documents gives the same ones with the same scores."""
    specs = {"hashing": "semantic", "bm25": "bm25", "hybrid:hashing": "hybrid"}
    runs = [ranked(ranker, LONG) for ranker in load_rankers(list(specs), {"hashing": hashing})]
    with Index.create(tmp_path / "index", hashing) as index:
        index.add(Document(name, text) for name, text in LONG.documents.items() if text.strip())
        assert index.info().passages > 3
        for run, mode in zip(runs, specs.values(), strict=True):
            for name, query in LONG.queries.items():
                hits = index.search(query, k=10, mode=SearchMode(mode))
                assert run[name] == {hit.document_id: hit.score for hit in hits}
                assert hits


def test_whole_documents_are_ranked_by_the_cosine_of_their_beginnings(hashing):
    [ranker] = load_rankers(["hashing"], {"hashing": hashing})
    run = ranked(ranker, LONG, whole_documents=True)
    documents = {name: text for name, text in LONG.documents.items() if text.strip()}
    vectors = hashing.encode_documents(list(documents.values()))
    for name, query in LONG.queries.items():
        scores = vectors @ hashing.encode_queries([query])[0]
        expected = dict(zip(documents, scores.tolist(), strict=True))
        assert run[name] == pytest.approx(expected, abs=1e-6)  # scores have six digits
        assert list(run[name].values()) == sorted(run[name].values(), reverse=True)
    assert ranked(ranker, LONG) != run


def test_rankings_have_a_limited_depth():
    """Ties are broken by the greater id, as in trec_eval, so that no measure depends on it."""
    assert (DEPTH, FIRST) == (1000, 100)
    names = [f"d{n:05}" for n in range(DEPTH + 500)]
    same = RetrievalSet("same", dict.fromkeys(names, "red"), {"q": "red"}, {"q": {"d00000": 1}})
    dense, bm25, hybrid = load_rankers(["hashing", "bm25", "hybrid:hashing"])
    for ranker in (dense, bm25):
        assert list(ranked(ranker, same)["q"]) == names[: -DEPTH - 1 : -1]
    assert len(ranked(hybrid, same)["q"]) == FIRST


def test_an_index_is_made_once_and_removed(hashing, monkeypatch, tmp_path):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    with Collection(PETS) as collection:
        for ranker in load_rankers(["hashing", "bm25", "hybrid:hashing"], {"hashing": hashing}):
            ranker.rank(collection)
        assert len(list(tmp_path.iterdir())) == 1
    assert not list(tmp_path.iterdir())


def test_queries_are_searched_in_blocks_that_are_reported(hashing, monkeypatch):
    rankers = load_rankers(["hashing", "hybrid:hashing"], {"hashing": hashing})
    whole = evaluate_retrieval(PETS, rankers).runs
    monkeypatch.setattr("semsearch.evaluation.rankers.QUERIES_AT_ONCE", 2)
    calls = []
    found = evaluate_retrieval(PETS, rankers, on_progress=lambda *call: calls.append(call))
    assert found.runs == whole
    assert calls == [
        *[("hashing", "documents", done, 4) for done in (0, 4)],
        *[("hashing", "queries", done, 3) for done in (0, 2, 3)],
        *[("hybrid:hashing", "queries", done, 3) for done in (0, 2, 3)],
    ]


def test_bm25_searches_the_passages_of_the_first_encoder_without_encoding(caplog):
    class Brief(Wrapped):
        max_document_tokens = 40

    _, bm25 = load_rankers(["brief", "bm25"], {"brief": Brief()})
    run = ranked(IndexRanker("bm25", SearchMode.BM25, Brief()), LONG)
    assert run != ranked(load_rankers(["bm25"])[0], LONG)
    Brief.encode_documents = None
    assert ranked(bm25, LONG) == run
    assert len(caplog.messages) == 1
    caplog.clear()
    ranked(bm25, LONG, whole_documents=True)
    assert not caplog.messages


def test_an_existing_index_is_evaluated(tmp_path, hashing):
    texts = {name: text for name, text in PETS.documents.items() if text}
    with Index.create(tmp_path / "index", hashing) as index:
        index.add(Document(name, texts[name]) for name in sorted(texts, reverse=True))
        before = index.info()
        rankers = index_rankers(index)
        assert [ranker.spec for ranker in rankers] == ["hashing", "bm25"]
        found = evaluate_retrieval(PETS._replace(documents={}), rankers, index=index)
        assert index.info() == before
    made = evaluate_retrieval(PETS, load_rankers(["hashing", "bm25"], {"hashing": hashing}))
    assert found.runs == made.runs
    assert [one.estimate for one in found.results] == [one.estimate for one in made.results]


def test_results_include_the_precision(tmp_path):
    class Precise(Wrapped):
        def __init__(self, precision):
            self.precision = precision
            self.description = lambda: {"precision": precision}

    rankers = [
        *load_rankers(["fp32", "bm25", "hybrid:fp32"], {"fp32": Precise("fp32")}),
        IndexRanker("b", SearchMode.SEMANTIC, Precise("bf16"), reranker=Fixed()),
        IndexRanker("c", SearchMode.BM25, None, reranker=Fixed()),
    ]
    assert [one.precision for one in rankers] == ["fp32", None, "fp32", "bf16+fp32", "fp32"]
    with Index.create(tmp_path / "index", Precise("bf16")) as index:
        assert [ranker.precision for ranker in index_rankers(index)] == ["bf16", None]
    known = Ranked("known", {})
    known.precision = "bf16"
    assert evaluate_retrieval(PETS, [known], ["nDCG@10"]).results[0].precision == "bf16"


def test_a_reranker_reorders_what_was_found(hashing):
    ranker = IndexRanker("bm25+long", SearchMode.BM25, hashing, reranker=Fixed())
    run = ranked(ranker)
    assert run["q1"] == {"d1": 30.0, "d2": 22.0}
    assert run["q2"] == {"d1": 30.0, "d2": 22.0, "d4": 12.0}
    assert run["q3"] == {}


def test_each_pair_of_systems_is_compared_by_each_measure():
    systems = [Ranked("a", {"q1": {"d1": 1.0}}), Ranked("b", {}), Ranked("c", {})]
    first, *others = evaluate_retrieval(PETS, systems, ["AP", "RR@10"]).differences
    assert len(others) == 3 * 2 - 1
    assert (first.system, first.other, first.over) == ("b", "a", "AP")
    assert first.difference.value == pytest.approx(-100 * (1 / 2) / 3)


def test_ties_keep_the_order_of_the_ranking():
    """Whatever computes a measure: trec_eval's ties are in another order than MS MARCO's."""
    retrieval = PETS._replace(queries={"q1": "cat"}, qrels={"q1": {"d1": 1}})
    names = ("RR", "RR@10", "P@1", "nDCG@10", "AP")
    first, second = [100] * 5, [50, 50, 0, 100 / math.log2(3), 50]
    for order, values in ((("d1", "d2"), first), (("d2", "d1"), second)):
        ranker = Ranked("tied", {"q1": dict.fromkeys(order, 1.0)})
        results = evaluate_retrieval(retrieval, [ranker], names).results
        assert [one.estimate.value for one in results] == pytest.approx(values)


def test_runs_are_read_and_written(tmp_path):
    run = {"q1": {"d2": 0.1 + 0.2, "d1": 1e-12}, "q2": {"d3": 5.0}}
    write_run(tmp_path / "a.run", run, "my system")
    lines = (tmp_path / "a.run").read_text().splitlines()
    assert lines[:2] == ["q1 Q0 d2 1 0.30000000000000004 my_system", "q1 Q0 d1 2 1e-12 my_system"]
    assert read_run(tmp_path / "a.run") == run
    # As in trec_eval: by score, whatever the ranks are, and ties by the greater id.
    (tmp_path / "a.run").write_text("q Q0 a 1 1 x\nq Q0 b 2 1 x\nq Q0 c 3 2 x\n\n")
    assert list(read_run(tmp_path / "a.run")["q"]) == ["c", "b", "a"]


def test_written_ties_keep_their_order(tmp_path):
    """trec_eval orders ties by id, and reads scores in single precision."""
    scores = [4.0, 3.0, 3.0, 3.0, 3 - 1e-12, 0.5, 0.0, 0.0, -1.0]
    run = {"q": {f"d{number}": score for number, score in enumerate(scores)}}
    write_run(tmp_path / "a.run", run, "x")
    found = read_run(tmp_path / "a.run")["q"]
    assert list(found) == list(run["q"])
    assert (numpy.diff(numpy.float32(list(found.values()))) < 0).all()
    assert list(found.values()) == pytest.approx(scores)
    assert [found[name] for name in ("d0", "d1", "d5", "d6", "d8")] == [4.0, 3.0, 0.5, 0.0, -1.0]


def test_a_recorded_run_is_a_system(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    first = evaluate_retrieval(PETS, load_rankers(["bm25"]))
    write_run(tmp_path / "a.run", first.runs["bm25"], "bm25")
    again = evaluate_retrieval(PETS, load_rankers([f"run:{tmp_path}/a.run", "run:~/a.run"]))
    wanted = [result.estimate for result in first.results]
    assert [result.estimate for result in again.results] == 2 * wanted
    assert math.isnan(again.results[0].seconds)


def test_queries_missing_from_a_run_are_counted(tmp_path, caplog):
    """trec_eval leaves them out of its means, unless called with -c."""
    file = tmp_path / "a.run"
    for queries in (PETS.queries, ["q1"]):
        assert not caplog.messages
        file.write_text("".join(f"{query} Q0 d1 1 1.0 x\n" for query in queries))
        run = ranked(RecordedRanker("a", file))
    assert run == {"q1": {"d1": 1.0}, "q2": {}, "q3": {}}
    assert " 2 of the 3 queries " in caplog.messages[0]


def test_wrong_runs_are_reported(tmp_path):
    for content, place in (
        ("q1 Q0 d 1 0.5\n", "a.run:1: "),
        ("q1 Q0 d 1 1 x\nq1 Q0 e 2 high x\n", "a.run:2: "),
        ("q1 Q0 d 1 1 x\nq1 Q0 d 2 1 x\n", "a.run:2: "),
        ("other Q0 d 1 1 x\n", "a.run has no query of pets"),
    ):
        (tmp_path / "a.run").write_text(content)
        with pytest.raises(DatasetError, match=place):
            evaluate_retrieval(PETS, load_rankers([f"run:{tmp_path}/a.run"]))


def test_a_run_that_its_format_does_not_allow_is_not_begun(tmp_path):
    for run in ({"q 1": {"d": 1.0}}, {"q": {"a": 1.0, "b c": 0.5}}):
        with pytest.raises(ArgumentError):
            write_run(tmp_path / "x.run", run, "x")
        assert not (tmp_path / "x.run").exists()
    with pytest.raises(CorpusError):
        read_run(tmp_path / "x.run")
