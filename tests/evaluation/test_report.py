"""Report pages, with texts that try to inject markup; labels, provenance and worst results."""

from __future__ import annotations

import math
import shlex
from pathlib import Path

import numpy
import pytest
from lxml.html import fromstring
from pets import Ranked

from semsearch.errors import ArgumentError, MissingExtraError
from semsearch.evaluation import evaluate_retrieval, evaluate_sts
from semsearch.evaluation.datasets import RetrievalSet, ScoredPair, StsSet
from semsearch.evaluation.report import Provenance, check_report, provenance, write_report
from semsearch.evaluation.report import page as page_module
from semsearch.evaluation.report.labels import LABEL_CHARACTERS, rate_cell, short_name, shortened
from semsearch.evaluation.report.worst import worst_pairs, worst_queries

SCRIPT = "<script>alert('a & b')</script>"
FORMULA = "model:/a/very/long/path/to/some/folder/$_x^2$"
PROVENANCE = Provenance("semsearch eval 'a b'", {"date": "2001-02-03", "other": "\x00<b>"})


class Scorer:
    precision = "bf16"

    def __init__(self, spec, scores):
        self.spec = spec
        self.scores = scores

    def score_pairs(self, pairs):
        return numpy.resize(numpy.array(self.scores, numpy.float32), len(pairs))


def within(page, tag):
    """The texts in the elements of a page with this tag."""
    texts = (text.strip() for text in page.xpath(f"//{tag}//text()"))
    return [text for text in texts if text]


@pytest.fixture(scope="module")
def sts():
    """A set with two subsets and one of 500 pairs; a system with undefined correlation."""
    rng = numpy.random.default_rng(0)
    scorers = [
        Scorer(SCRIPT, rng.random(500)),
        Scorer(FORMULA, rng.random(500)),
        Scorer("constant", [0.5]),
    ]
    small = {
        "one": [ScoredPair(f"{SCRIPT} {n}", f"\ud800 \x07 猫 {n}", n % 5) for n in range(6)],
        "two": [ScoredPair(f"left {n}", f"right {n}", n) for n in range(5)],
    }
    large = [ScoredPair(f"a {n}", f"b {n}", gold) for n, gold in enumerate(rng.random(500))]
    return [
        evaluate_sts(StsSet("small", "test", small, unscored=3), scorers),
        evaluate_sts(StsSet("large", "dev", {"all": large}, unscored=0), scorers),
    ]


@pytest.fixture(scope="module")
def ir():
    """A run without a time; documents missing from the collection; queries without results."""
    documents = {f"d{n}": f"{SCRIPT} document {n}" for n in range(9)}
    queries = {"q1": f"{SCRIPT} first", "q2": "second", "q3": "third"}
    qrels = {
        "q1": {"d1": 1, "d2": 0},
        "q2": {"d2": 2, "lost": 1, "d3": 1, "d4": 1, "d5": 1},
        "q3": {"d3": 1},
    }
    rankers = [
        Ranked("bm25", {"q1": {"d1": 2.0, "d0": 1.0}, "q2": {"d2": 1.0}, "q3": {}}),
        Ranked(FORMULA, {"q1": {"d0": 2.0, "d1": 1.0}, "q2": {"gone": 1.0}, "q3": {"d3": 1.0}}),
        Ranked(f"run:{SCRIPT}", {"q1": {}, "q2": {}, "q3": {}}, seconds=float("nan")),
    ]
    return [evaluate_retrieval(RetrievalSet("made", documents, queries, qrels), rankers)]


def written(place, evaluations):
    return fromstring(write_report(place, evaluations, PROVENANCE).read_text("utf-8"))


@pytest.fixture(scope="module", params=["sts", "ir"])
def page(request, tmp_path_factory):
    return written(tmp_path_factory.mktemp("report"), request.getfixturevalue(request.param))


def test_links_ids_and_figures(page):
    ids = page.xpath("//@id")
    assert len(ids) == len(set(ids))
    links = page.xpath("//a/@href")
    assert links
    assert {link.removeprefix("#") for link in links} <= set(ids)
    labels = page.xpath("//*[local-name()='svg']/@aria-label")
    assert len(labels) == len(page.xpath("//*[local-name()='svg'][@role='img']")) > 2
    assert "Estimates on " in labels[0]


def test_page_loads_no_resources_and_texts_are_escaped(page):
    assert not page.xpath("//script | //link | //img | //iframe | //object | //embed | //base")
    for element in page.iter():
        for name, value in element.items():
            if name in ("src", "href", "xlink:href", "srcset", "data"):
                assert value.startswith("#"), value
            assert not name.startswith("on")
    [rules] = within(page, "style")
    assert "url(" not in rules
    assert "@import" not in rules
    assert any(SCRIPT in cell for cell in within(page, "td") + within(page, "li"))
    assert any(SCRIPT in cell for cell in within(page, "th"))
    assert FORMULA in within(page, "th")
    assert "…/$_x^2$" in "".join(within(page, "text"))  # not as a formula
    assert "�<b>" in within(page, "td")  # a control character of the provenance
    assert within(page, "code") == ["semsearch eval 'a b'"]


def test_every_set_and_system_is_on_the_sts_page(sts, tmp_path):
    page = written(tmp_path, sts)
    captions = within(page, "caption")
    for name in ("small test", "large dev"):
        assert name in within(page, "td")
        assert {f"{name}, {system}" for system in (SCRIPT, FORMULA, "constant")} <= set(captions)
    assert within(page, "text").count("all") == 2
    assert within(page, "text").count("mean") == 1
    spearman = sts[0].results[0].estimate
    assert spearman.shown in within(page, "td")
    assert "Spearman undefined" in within(page, "text")  # for the constant scores
    assert "3" in within(page, "td")  # pairs without gold


def test_systems_and_worst_queries_are_on_the_ir_page(ir, tmp_path):
    page = written(tmp_path, ir)
    assert {"bm25", FORMULA, f"run:{SCRIPT}"} <= set(within(page, "th"))
    # BM25 has nDCG 100 for q1, and finds the first of five for q2 and nothing for q3.
    assert "q3: third" in within(page, "th")
    assert "not found" in within(page, "td")
    assert {"gone:", "lost:", "and 2 more"} <= set(within(page, "li"))
    # The second system has a higher nDCG for q3 only.
    assert "minus bm25: better 1, same 0, worse 2" in within(page, "text")


def test_an_old_report_is_replaced_and_another_page_is_not(ir, tmp_path):
    place = tmp_path / "new" / "folder"
    check_report(place)
    page = write_report(place, ir, PROVENANCE)
    page.write_text(page.read_text("utf-8") + "old", "utf-8")
    check_report(place)
    assert not write_report(place, ir, PROVENANCE).read_text("utf-8").endswith("old")
    assert [file.name for file in place.iterdir()] == ["index.html"]
    page.write_text("<h1>Mine</h1>", "utf-8")
    with pytest.raises(ArgumentError):
        check_report(place)


def test_without_the_extra(tmp_path, monkeypatch):
    monkeypatch.setattr(page_module, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'semsearch\[plot\]'"):
        check_report(tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_what_labels_and_cells_show():
    names = {
        "minilm": "minilm",
        "glove:/home/me/vectors/glove.6B.300d.txt": "glove:…/glove.6B.300d.txt",
        "hybrid:glove:/home/me/vectors/g.txt": "hybrid:glove:…/g.txt",
        "a/model/of/mine+cross-encoder:b/c/d": "…/mine+cross-encoder:…/d",
    }
    assert {name: short_name(name) for name in names} == names
    assert len(short_name("x" * 200)) <= LABEL_CHARACTERS
    assert [rate_cell(10, seconds) for seconds in (math.nan, 0.005, 4)] == ["", "2,000", "2.5"]
    assert shortened("a\n b\t c", 5) == "a b c"
    assert shortened("猫" * 10, 5) == "猫猫猫猫…"


def test_command_is_quoted_for_the_shell():
    arguments = ["eval", "sts", "--data", "my pairs.csv", "--system", "it's $HOME"]
    found = provenance(arguments, {"minilm": "0123456789abcdef0123"})
    assert shlex.split(found.command) == ["semsearch", *arguments]
    assert found.facts["fingerprint of minilm"] == "0123456789abcdef"
    assert found.facts["torch"].startswith("2.13.0")
    assert found.facts["bootstrap"] == "1,000 resamples, seed 0"
    assert int(found.facts["cores"]) >= 1
    assert f": {found.facts['processor']}\n" in Path("/proc/cpuinfo").read_text("utf-8")
    assert found.facts["ir-measures"] != "not installed"


def worst_of(golds, scores, count=10):
    """The worst of the pairs a, b, c …: their names, and the percentiles of gold and score."""
    pairs = [ScoredPair(name, name, gold) for name, gold in zip("abcde", golds, strict=False)]
    worst = worst_pairs(pairs, numpy.array(scores), count=count)
    return [(one.pair.left, one.score, one.gold_percentile, one.score_percentile) for one in worst]


def test_worst_pairs_by_hand():
    # Ranks by gold 1 2 3 4 5, by score 4 2 3 5 1: distances 3 0 0 1 4, at most 4 possible.
    found = worst_of(range(5), [0.8, 0.2, 0.3, 0.9, 0.1], count=3)
    assert found == [("e", 0.1, 100, 0), ("a", 0.8, 0, 75), ("d", 0.9, 75, 100)]
    # Equal values share a rank: by gold 2 2 2 4, by score 1 2 3 4. Ties keep their order.
    found = worst_of((0, 0, 0, 1), [0.1, 0.2, 0.3, 0.4])
    assert [name for name, *_ in found] == ["a", "c", "b", "d"]
    assert found[0][2] == found[1][2] == pytest.approx(100 / 3)


def test_worst_queries_by_hand():
    queries = {name: name for name in ("good", "late", "never", "later", "unanswered")}
    qrels = {name: {"right": 1, "wrong": 0} for name in queries}
    run = {
        "good": {"right": 1.0},
        "late": {"wrong": 3.0, "right": 2.0},
        "never": {"wrong": 1.0},
        "later": {"wrong": 3.0, "other": 2.0, "right": 1.0},
    }
    values = numpy.array([100.0, 0, 0, 0, 0])
    worst = worst_queries(RetrievalSet("made", {}, queries, qrels), run, values, count=4)
    found = [(one.query, one.first_relevant) for one in worst]
    assert found == [("never", None), ("unanswered", None), ("later", 3), ("late", 2)]
