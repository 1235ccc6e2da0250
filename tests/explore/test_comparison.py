"""Comparison of systems: shared hits, cosines between sentences, the table of notebooks."""

from __future__ import annotations

import io

import numpy
import pandas
import pytest

from semsearch import Document, Index
from semsearch.errors import ArgumentError
from semsearch.explore.compare import compare_neighbours, compare_sentences

HOSTILE = "<script>alert('$x$')</script> & \u202etxet\" onload=x"
DOCUMENTS = [
    Document("a", "the red fox jumps over the fence"),
    Document("b", "a fox and a hen", f"Hen {HOSTILE}"),
    Document("c", "the hen lays an egg every day"),
    Document("d", "bread and butter for breakfast"),
    Document("e", f"an egg for breakfast {HOSTILE}"),
]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    folder = tmp_path_factory.mktemp("contrast") / "one"
    with Index.create(folder, ["hashing", "hashing:64"]) as index:
        index.add(DOCUMENTS)
    return folder


def test_each_system_answers_as_it_does_alone(path):
    found = compare_neighbours(path, "egg for breakfast", k=3, where="id != 'd'")
    assert list(found.hits) == ["hashing", "hashing-64", "bm25"]
    options = {"where": "id != 'd'"}
    with Index.open(path) as index:
        for name in ("hashing", "hashing-64"):
            assert found.hits[name] == index.search("egg for breakfast", 3, space=name, **options)
        words = index.search("egg for breakfast", 3, mode="bm25", **options)
    assert found.hits["bm25"] == words
    [hybrid, _] = compare_neighbours(path, "egg", ["hybrid:hashing", "bm25"]).hits.values()
    assert hybrid[0].scores.bm25 is not None


def test_shared_hits_are_counted_and_marked(path):
    names = ["hashing", "hashing-64", "bm25"]
    found = compare_neighbours(path, "hen fox", names, k=3)
    ids = {name: {hit.document_id for hit in hits} for name, hits in found.hits.items()}
    assert [tuple(one[:2]) for one in found.agreements()] == [
        ("hashing", "hashing-64"),
        ("hashing", "bm25"),
        ("hashing-64", "bm25"),
    ]
    for left, right, shared in found.agreements():
        assert shared == len(ids[left] & ids[right])
    marks = {1: "", 2: "+ ", 3: "* "}
    for hit in (hit for hits in found.hits.values() for hit in hits):
        assert found.mark(hit) == marks[sum(hit.document_id in one for one in ids.values())]
    assert found.mark(found.hits["bm25"][0]) == "* "


def test_notebooks_show_hits_as_a_table(path):
    with Index.open(path) as index:
        hits = index.search("egg hen", k=5)
    [table] = pandas.read_html(io.StringIO(hits._repr_html_()))
    assert table["id"].tolist() == [hit.document_id for hit in hits]
    assert table["text"].tolist() == [hit.text for hit in hits]
    assert "<script>" not in hits._repr_html_()


def test_notebooks_show_a_comparison_as_tables(path):
    found = compare_neighbours(path, "zebra egg", k=2)
    html = found._repr_html_()
    hits, agreements = pandas.read_html(io.StringIO(html))
    assert list(hits.columns[1:]) == ["hashing", "hashing-64", "bm25"]
    first = found.hits["hashing"][0]
    assert hits["hashing"][0].startswith(f"* {first.score:.3f} {first.document_id}: ")
    assert agreements["documents shared"].tolist() == [one.shared for one in found.agreements()]
    assert "<script>" not in html


@pytest.mark.parametrize(
    "arguments",
    [
        {"k": "3"},
        {"k": 0},
        {"systems": "hashing"},
        {"systems": ["hashing"]},
        {"systems": ["hashing", "bm25", "hashing"]},
        {"systems": ["hashing", "cross-encoder:minilm"]},
        {"systems": ["hashing", "bm25+cross-encoder:minilm"]},
        {"systems": ["hashing", "run:a.run"]},
        {"text": None},
    ],
)
def test_mistakes(path, arguments):
    with pytest.raises(ArgumentError):
        compare_neighbours(**{"path": path, "text": "egg", **arguments})


def test_sentences_are_compared_with_each_other(hashing):
    sentences = ["a red fox", "a red hen", "bread"]
    vectors = hashing.encode_documents(sentences)
    for systems in ("hashing", ["hashing"]):
        [compared] = compare_sentences(sentences, systems)
        assert compared.system == "hashing"
        numpy.testing.assert_allclose(compared.matrix, vectors @ vectors.T, atol=1e-6)


@pytest.mark.parametrize("sentences", [[], ["one"], ["one", " "]])
def test_too_few_sentences(sentences):
    with pytest.raises(ArgumentError):
        compare_sentences(sentences, ["hashing"])
