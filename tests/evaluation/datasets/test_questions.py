"""A user's own queries and judgements, in common formats."""

from __future__ import annotations

import re

import pytest

from semsearch.errors import ArgumentError, SemsearchError
from semsearch.evaluation.datasets import RetrievalSet, read_questions

QUERIES = {
    "queries.jsonl": '{"_id": "q1", "text": "cats"}\n{"_id": 2, "text": "no \\"dogs\\""}\n',
    "queries.csv": 'query-id,text\nq1,cats\n2,"no ""dogs"""\n',
    "queries.tsv": 'q1\tcats\n2\tno "dogs"\n',
    "topics.tsv": 'qid\tquestion\n2\tno "dogs"\nq1\tcats\n',
}
QRELS = {
    "qrels.txt": "q1 0 d1 2\nq1 0 d2 1\n2 0 d2 1\n2\t0 d3  0\n",
    "test.tsv": "query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td2\t1\n2\td2\t1\n2\td3\t0\n",
    "judged.csv": "relevance,query,document\n2,q1,d1\n1.0,q1,d2\n1,2,d2\n0,2,d3\n",
}
EXPECTED = ({"q1": "cats", "2": 'no "dogs"'}, {"q1": {"d1": 2, "d2": 1}, "2": {"d2": 1, "d3": 0}})
#: Files of queries and of judgements that are read together.
PAIRS = [(queries, "qrels.txt") for queries in QUERIES] + [("queries.csv", name) for name in QRELS]


def has_document(name):
    return name in {"d1", "d2", "d3"}


@pytest.fixture
def files(tmp_path):
    for name, text in (QUERIES | QRELS).items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize(("queries", "qrels"), PAIRS)
def test_formats(files, queries, qrels):
    found = read_questions(files / queries, files / qrels, has_document)
    assert (found.queries, found.qrels) == EXPECTED
    assert found == RetrievalSet(queries.split(".")[0], {}, *EXPECTED)


def test_queries_without_judgements_are_left_out(files):
    (files / "more.csv").write_text("id,text\nq1,cats\nq8,\nq9,birds\n2,x\n")
    found = read_questions(files / "more.csv", files / "qrels.txt", has_document)
    assert list(found.queries) == ["q1", "2"]


@pytest.mark.parametrize(
    ("name", "text", "place"),
    [
        ("queries.csv", "a,b,c\n1,2,3\n", "queries.csv"),
        ("queries.csv", "id,text\nq1,a\nq1,b\n", "queries.csv:3"),
        ("queries.csv", "id,text\nx,a\n", "judged.csv"),
        ("queries.csv", 'id,text\nq1,a\n2," "\n', "queries.csv"),
        ("judged.csv", "q1,d1,1\n", "judged.csv"),
        ("judged.csv", "qid,docid,rel\nq1,d1,yes\n", "judged.csv:2"),
        ("judged.csv", "q1 0 d1 0.5\n", "judged.csv:1"),
        ("judged.csv", "q1 0 d1 1\nq1 d1 1\n", "judged.csv:2"),
        ("judged.csv", "qid,docid,rel\nq1,d1,1\n2,d8,1\n2,d9,1\n", "judged.csv"),
    ],
)
def test_mistakes(files, name, text, place):
    (files / name).write_text(text)
    with pytest.raises(SemsearchError, match=re.escape(place)):
        read_questions(files / "queries.csv", files / "judged.csv", has_document)


def test_unusable_arguments(files):
    for queries, error in ((3, ArgumentError), (files / "none.csv", SemsearchError)):
        with pytest.raises(error):
            read_questions(queries, files / "qrels.txt", has_document)
