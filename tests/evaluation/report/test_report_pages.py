"""The HTML of report pages, with texts that try to inject markup."""

from __future__ import annotations

from html.parser import HTMLParser

import numpy
import pytest

from semsearch.errors import ArgumentError, MissingExtraError
from semsearch.evaluation import Ranking, evaluate_retrieval, evaluate_sts
from semsearch.evaluation.datasets import RetrievalSet, ScoredPair, StsSet
from semsearch.evaluation.report import Provenance, check_report, page, write_report

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


class Ranked:
    precision = "bf16"

    def __init__(self, spec, run, seconds=0.5):
        self.spec = spec
        self.ranking = Ranking(run, seconds)

    def rank(self, retrieval):
        del retrieval
        return self.ranking


class PageReader(HTMLParser):
    """Checks that elements are nested, and collects elements and texts."""

    def __init__(self, text):
        super().__init__()
        self.open, self.elements, self.texts = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag != "meta":  # the only one without an end tag
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if data.strip():
            self.texts.append((self.open[-1] if self.open else "", data.strip()))

    def all(self, *tags):
        return [attributes for tag, attributes in self.elements if tag in tags]

    def within(self, tag):
        return [text for parent, text in self.texts if parent == tag]


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


@pytest.fixture(scope="module", params=["sts", "ir"])
def text(request, tmp_path_factory):
    """A page, as HTML."""
    evaluations = request.getfixturevalue(request.param)
    place = tmp_path_factory.mktemp(request.param)
    return write_report(place, evaluations, PROVENANCE).read_text("utf-8")


def test_elements_are_nested_and_ids_are_unique(text):
    page = PageReader(text)
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    links = [attributes["href"] for attributes in page.all("a")]
    assert links
    assert {link.removeprefix("#") for link in links} <= set(ids)


def test_page_loads_no_resources(text):
    page = PageReader(text)
    assert not page.all("script", "link", "img", "iframe", "object", "embed", "base")
    for tag, attributes in page.elements:
        for name in ("src", "href", "xlink:href", "srcset", "data"):
            assert attributes.get(name, "#").startswith("#"), (tag, attributes)
        assert not any(name.startswith("on") for name in attributes)
    (rules,) = page.within("style")
    assert "url(" not in rules
    assert "@import" not in rules


def test_texts_are_escaped(text):
    assert "<script" not in text
    page = PageReader(text)
    assert any(SCRIPT in cell for cell in page.within("td") + page.within("li"))
    assert any(SCRIPT in cell for cell in page.within("th"))
    assert FORMULA in page.within("th")
    assert "…/$_x^2$" in "".join(page.within("text"))  # not as a formula
    assert "�<b>" in page.within("td")  # a control character of the provenance
    assert page.within("code") == ["semsearch eval 'a b'"]


def test_every_set_and_system_is_on_the_sts_page(sts, tmp_path):
    page = PageReader(write_report(tmp_path, sts, PROVENANCE).read_text("utf-8"))
    captions = page.within("caption")
    for name in ("small test", "large dev"):
        assert name in page.within("td")
        assert {f"{name}, {system}" for system in (SCRIPT, FORMULA, "constant")} <= set(captions)
    assert page.within("text").count("all") == 2
    assert page.within("text").count("mean") == 1
    spearman = sts[0].results[0].estimate
    assert spearman.shown in page.within("td")
    assert "Spearman undefined" in page.within("text")  # for the constant scores
    assert "3" in page.within("td")  # pairs without gold


def test_systems_and_worst_queries_are_on_the_ir_page(ir, tmp_path):
    page = PageReader(write_report(tmp_path, ir, PROVENANCE).read_text("utf-8"))
    assert {"bm25", FORMULA, f"run:{SCRIPT}"} <= set(page.within("th"))
    # BM25 has nDCG 100 for q1, and finds the first of five for q2 and nothing for q3.
    assert "q3: third" in page.within("th")
    assert "not found" in page.within("td")
    assert {"gone:", "lost:", "and 2 more"} <= set(page.within("li"))
    # The second system has a higher nDCG for q3 only.
    assert "minus bm25: better 1, same 0, worse 2" in page.within("text")
    texts = " ".join(page.within("text"))
    assert "documents and queries per second" in texts


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
    monkeypatch.setattr(page, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'semsearch\[plot\]'"):
        check_report(tmp_path / "new")
    assert not (tmp_path / "new").exists()
