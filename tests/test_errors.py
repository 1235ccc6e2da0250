"""Errors: each class has a code, and is raised somewhere; checks of arguments."""

from __future__ import annotations

import inspect
import math
import pickle
import re
from decimal import Decimal
from pathlib import Path

import numpy
import pytest

from semsearch import errors
from semsearch.errors import (
    ArgumentError,
    BadRowError,
    SemsearchError,
    check_number,
    check_path,
    check_text,
    check_texts,
    with_code,
)
from semsearch.search.options import check_readable, check_whole_number

CLASSES = {
    name: value
    for name, value in inspect.getmembers(errors, inspect.isclass)
    if issubclass(value, SemsearchError) and value is not SemsearchError
}
CODES = {value.code: name for name, value in CLASSES.items()}


def test_each_class_has_its_own_code():
    assert len(CODES) == len(CLASSES)
    for name, value in CLASSES.items():
        assert "code" in vars(value), name
        assert re.fullmatch(r"[a-z]+(-[a-z]+)+", value.code)


def test_messages_end_with_the_code():
    assert with_code(BadRowError("a.csv:3", "empty text")) == "a.csv:3: empty text [bad-row]"
    assert with_code(SemsearchError("of a plugin")) == "of a plugin"


@pytest.mark.parametrize(
    "error",
    [
        errors.FilterError("where: x"),
        errors.BadRowError("a.csv:3", "empty text", "7"),
        errors.BadFileError("a.pdf, page 3", "damaged", "a.pdf"),
        errors.NoVectorError("no vector", [3]),
        errors.MissingExtraError("ray", "ray", "a cluster"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_reach_other_processes(error):
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own
    assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))


@pytest.mark.parametrize(
    ("check", "arguments", "expected"),
    [
        (check_whole_number, [1, 1], 1),
        (check_whole_number, [numpy.int64(7), 1], 7),
        (check_number, [Decimal("0.25")], 0.25),
        (check_number, [math.inf, 0], math.inf),
        (check_number, [0, 0, 1], 0),
        (check_texts, [("a", "é")], ["a", "é"]),
        (check_texts, [iter(["a", "b"])], ["a", "b"]),
        (check_readable, [" é"], " é"),
        (check_path, ["a"], Path("a")),
        (check_path, [Path("/a")], Path("/a")),
    ],
)
def test_accepted_values(check, arguments, expected):
    assert check("x", *arguments) == expected


@pytest.mark.parametrize(
    ("check", "values", "limits"),
    [
        (check_whole_number, [0, "3", None, 3.0], [1]),
        (check_number, [math.nan], []),
        (check_number, [-0.001, 1.001, math.inf], [0, 1]),
        (check_text, [None, 3, b"a"], []),
        (check_readable, ["", " \n", None, "caf\udce9", "\ud800"], []),
        (check_texts, ["ab", None, b"a", [3]], []),
        (check_path, [None, 3, "", ["a"]], []),
    ],
)
def test_refused_values(check, values, limits):
    for value in values:
        with pytest.raises(ArgumentError, match="^x"):
            check("x", value, *limits)
