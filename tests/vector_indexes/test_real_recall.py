"""The recall of real queries, compared with the measured recall."""

from __future__ import annotations

import csv
import json

import numpy
import pytest

from semsearch.vector_indexes import index_class

pytestmark = pytest.mark.slow

PASSAGES, QUERIES = 3000, 300


@pytest.fixture(scope="module")
def definitions(data):
    lines = (data / "corpora" / "wordnet_definitions.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines[:: len(lines) // PASSAGES]]


@pytest.fixture(scope="module")
def matrix(minilm, definitions):
    return minilm.encode_documents([one["text"] for one in definitions])


def words(data, definitions):
    return [one["lemma"] for one in definitions]


def questions(data, definitions):
    with (data / "pairs" / "quora_dev.tsv").open(encoding="utf-8") as stream:
        return [row[0] for row in csv.reader(stream, delimiter="\t", quoting=csv.QUOTE_NONE)]


def sentences(data, definitions):
    file = data / "sts" / "stsbenchmark" / "sts-test.csv"
    return [line.split("\t")[5] for line in file.read_text("utf-8").splitlines()]


@pytest.mark.parametrize("kind", ["IVF1,PQ96x4fs", "IVF77,PQ96x4fs"])
@pytest.mark.parametrize("texts", [words, questions, sentences])
def test_real_queries_reach_the_measured_recall(data, minilm, definitions, matrix, kind, texts):
    """The reference is exact search."""
    ids = numpy.arange(len(matrix))
    index = index_class(kind).build(
        kind, matrix.shape[1], len(matrix), lambda: [(ids, matrix)], 0.98
    )
    queries = minilm.encode_queries(texts(data, definitions)[:QUERIES])
    least = numpy.sort(queries @ matrix.T, axis=1)[:, -10]
    scores, _ = index.search(queries, 10)
    real = (scores >= least[:, None] - 1e-5).mean()
    assert real >= index.measured_recall() >= 0.97
