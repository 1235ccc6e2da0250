"""Checks of arguments, and where public functions make them."""

from __future__ import annotations

import math
from decimal import Decimal
from pathlib import Path

import numpy
import pandas
import pytest

from semsearch import Corpus, Document, Index, load_encoder, load_reranker
from semsearch.arguments import (
    check_callable,
    check_choice,
    check_number,
    check_pairs,
    check_path,
    check_readable,
    check_text,
    check_texts,
    check_unordered,
    check_whole_number,
)
from semsearch.errors import ArgumentError
from semsearch.records import SearchMode

#: The largest number of SQLite.
LARGEST = 2**63 - 1


@pytest.mark.parametrize(
    ("check", "arguments", "expected"),
    [
        (check_whole_number, [1, 1], 1),
        (check_whole_number, [numpy.int64(7), 1], 7),
        (check_whole_number, [LARGEST, 1], LARGEST),
        (check_whole_number, [10**400, 1], LARGEST),
        (check_number, [-2], -2),
        (check_number, [numpy.float32(0.5)], 0.5),
        (check_number, [Decimal("0.25")], 0.25),
        (check_number, [math.inf, 0], math.inf),
        (check_number, [0, 0, 1], 0),
        (check_number, [1, 0, 1], 1),
        (check_choice, [SearchMode, "bm25"], SearchMode.BM25),
        (check_choice, [SearchMode, SearchMode.BM25], SearchMode.BM25),
        (check_texts, [("a", "é")], ["a", "é"]),
        (check_texts, [numpy.array(["a", "b"])], ["a", "b"]),
        (check_texts, [iter(["a", "b"])], ["a", "b"]),
        (check_texts, [pandas.Series(["a"], index=[7])], ["a"]),
        (check_unordered, [{"b", "a"}], ["a", "b"]),
        (check_unordered, [["b", "a"]], ["b", "a"]),
        (check_pairs, [[["a", "b"]]], [("a", "b")]),
        (check_readable, [" é"], " é"),
        (check_path, [Path("/a")], Path("/a")),
    ],
)
def test_accepted_values(check, arguments, expected):
    assert check("x", *arguments) == expected


@pytest.mark.parametrize(
    ("check", "values", "limits"),
    [
        (check_whole_number, [0, "3", None, 3.0, True], [1]),
        (check_number, [math.nan, 10**400, "0", b"0", True, None], []),
        (check_number, [-0.001, 1.001, math.inf], [0, 1]),
        (check_text, [None, 3, b"a"], []),
        (check_readable, ["", " \n", None, "caf\udce9", "\ud800"], []),
        (check_texts, ["ab", None, {"a"}, {"a": 1}, b"a", str, pandas.DataFrame({"a": ["b"]})], []),
        (check_unordered, ["ab", {"a": 1}], []),
        (check_path, [None, 3, b"a", "", "a\0b", ["a"]], []),
        (check_callable, [None, "f"], []),
    ],
)
def test_refused_values(check, values, limits):
    for value in values:
        with pytest.raises(ArgumentError, match="^x ") as caught:
            check("x", value, *limits)
        assert "\n" not in str(caught.value)


def test_no_member_of_an_enum():
    with pytest.raises(ArgumentError):
        check_choice("x", SearchMode, "sematic")


@pytest.fixture
def index(tmp_path):
    with Index.create(tmp_path / "x", "hashing:8") as index:
        index.add([Document("a", "red apple"), Document("ab", "blue sky")])
        yield index


@pytest.mark.parametrize(
    "call",
    [
        lambda index: Index.create(b"x"),
        lambda index: Index.create(index.path, precision="fp16"),
        lambda index: Index.create(index.path, dtype="float64"),
        lambda index: Index.open(None),
        lambda index: index.search_many("red"),
        lambda index: index.search("red", where={}),
        lambda index: index.count({"n": 1}),
        lambda index: index.get(1),
        lambda index: index.delete("ab"),  # not the ids a and b
        lambda index: index.delete([3]),
        lambda index: index.add("a text"),
        lambda index: index.add([None]),
        lambda index: index.add([Document("new", "text")], text_columns="text"),
        lambda index: index.add([Document("new", "text")], on_batch=None),
        lambda index: index.add([Document("new", "text")], wait=-1),
        lambda index: load_encoder(["minilm"]),
        lambda index: load_encoder("hashing", precision=None),
        lambda index: load_reranker(b"minilm"),
        lambda index: load_encoder("hashing").encode_documents("red"),
        lambda index: load_encoder("hashing").token_spans(3),
        lambda index: Corpus([b"c.csv"]),
        lambda index: Corpus("c.csv", on_bad_row=None),
        lambda index: Corpus("c.csv", text_columns=3),
    ],
)
def test_invalid_calls_are_refused_and_change_nothing(index, call):
    with pytest.raises(ArgumentError):
        call(index)
    assert [document.id for document in index] == ["a", "ab"]


def test_columns_may_be_named_by_numbers(index):
    frame = pandas.DataFrame([["z", "zebra", "striped"]], index=[7])
    assert index.add(frame, id_column=0, text_columns=[1, 2]).added == 1
    assert index.get("z").text == "zebra\nstriped"


def test_ids_and_queries_come_in_any_ordered_collection(index):
    queries = pandas.Series(["red apple", "blue sky"], index=[7, 5])
    for several in (queries, queries.to_numpy(), iter(queries)):
        found = index.search_many(several, k=1)
        assert [hits[0].document_id for hits in found] == ["a", "ab"]
    assert index.delete(pandas.Series(["a", "ab"], index=[7, 5])) == 2
