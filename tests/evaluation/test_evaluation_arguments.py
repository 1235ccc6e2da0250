"""Wrong arguments of the evaluation functions."""

from __future__ import annotations

import re

import pytest

from semsearch import load_encoder
from semsearch.datasets import RetrievalSet
from semsearch.errors import ArgumentError
from semsearch.evaluation import (
    evaluate_retrieval,
    evaluate_sts,
    load_pair_scorer,
    load_rankers,
    read_run,
    write_run,
)

SET = RetrievalSet("x", {"d": "red apple"}, {"q": "red"}, {"q": {"d": 1}})
HASHING = load_encoder("hashing")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: load_rankers("hashing"), "specs must be a list of strings, not one string"),
        (lambda: load_rankers(None), "specs must be a list of strings, not None"),
        (lambda: load_rankers([HASHING]), "specs[0] must be a string, not <semsearch"),
        (lambda: load_pair_scorer(None), "the system must be a string, not None"),
        (lambda: load_pair_scorer(HASHING), "the system must be a string, not <semsearch"),
        (lambda: evaluate_retrieval(None, []), "retrieval must be a RetrievalSet, not None"),
        (lambda: evaluate_retrieval(SET, "bm25"), "rankers must be a list of rankers, not one"),
        (lambda: evaluate_retrieval(SET, [HASHING]), "rankers must hold rankers (load_rankers"),
        (
            lambda: evaluate_retrieval(SET, [], "nDCG@10"),
            "names must be a list of strings",
        ),
        (lambda: evaluate_retrieval(SET, [], [3]), "names[0] must be a string, not 3"),
        (lambda: evaluate_retrieval(SET, [], []), "name a measure, such as nDCG@10, "),
        (lambda: evaluate_sts(None, []), "dataset must be an StsSet, not None"),
        (lambda: read_run(3), "file must be a string or a Path, not 3"),
        (lambda: write_run(None, {}, "x"), "file must be a string or a Path, not None"),
    ],
)
def test_wrong_arguments_are_refused(call, message):
    with pytest.raises(ArgumentError, match=re.escape(message)):
        call()


def test_a_run_can_be_named_by_a_string(tmp_path):
    write_run(f"{tmp_path}/run", {"q": {"d": 1.5}}, "mine")
    assert read_run(f"{tmp_path}/run") == {"q": {"d": 1.5}}
