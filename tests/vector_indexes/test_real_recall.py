"""The recall of real queries is at least the measured recall; the reference is exact search."""

from __future__ import annotations

import csv
import json

import numpy
import pytest

from semsearch.vector_indexes import ivf


@pytest.fixture(scope="module")
def definitions(data):
    return (data / "corpora" / "wordnet_definitions.jsonl").read_text("utf-8").splitlines()


@pytest.fixture(scope="module")
def encoded(definitions, minilm):
    """Encodes some definitions, spread over all, once for each number of them."""
    matrices = {}

    def encode(count):
        if count not in matrices:
            lines = definitions[:: len(definitions) // count]
            matrices[count] = minilm.encode_documents([json.loads(one)["text"] for one in lines])
        return matrices[count]

    return encode


def words(data, definitions):
    return [json.loads(line)["lemma"] for line in definitions[::50]]


def questions(data, definitions):
    with (data / "pairs" / "quora_dev.tsv").open(encoding="utf-8") as stream:
        return [row[0] for row in csv.reader(stream, delimiter="\t", quoting=csv.QUOTE_NONE)]


def sentences(data, definitions):
    file = data / "sts" / "stsbenchmark" / "sts-test.csv"
    return [line.split("\t")[5] for line in file.read_text("utf-8").splitlines()]


NIGHTLY = [
    pytest.param(lists, 3000, texts, marks=pytest.mark.nightly)
    for lists in (1, 55)
    for texts in (words, questions, sentences)
]


@pytest.mark.parametrize(("lists", "passages", "texts"), [(1, 500, words), *NIGHTLY])
def test_real_queries(data, minilm, definitions, encoded, monkeypatch, lists, passages, texts):
    monkeypatch.setattr(ivf, "MANY_CANDIDATES", 10)  # so few would all be compared
    if lists > 1:
        monkeypatch.setattr(ivf, "ONE_LIST", 0)
    matrix = encoded(passages)
    ids = numpy.arange(len(matrix))
    index = ivf.IvfIndex.build(matrix.shape[1], len(matrix), [(ids, matrix)], 0.98)
    queries = minilm.encode_queries(texts(data, definitions)[: passages // 10])
    least = numpy.sort(queries @ matrix.T, axis=1)[:, -10]
    scores, _ = index.search(queries, 10)
    real = (scores >= least[:, None] - 1e-5).mean()
    assert real >= index.measured_recall() >= 0.97
