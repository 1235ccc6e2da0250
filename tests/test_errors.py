"""Errors: each class has a code, and is raised somewhere."""

from __future__ import annotations

import inspect
import pickle
import re
from pathlib import Path

import pytest

from semsearch import errors
from semsearch.errors import BadRowError, SemsearchError, with_code

PACKAGE = Path(errors.__file__).parent
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


def test_each_class_is_raised_somewhere_and_the_root_nowhere():
    made = set()
    for file in PACKAGE.rglob("*.py"):
        made |= set(re.findall(r"(?<!class )\b(\w+Error)\(", file.read_text("utf-8")))
    assert set(CLASSES) <= made
    assert "SemsearchError" not in made


def test_message_ends_with_the_remedy_and_the_code():
    error = BadRowError("a.csv:3", "duplicate id '7'")
    error.add_remedy("leave it out")
    assert error.reason == "duplicate id '7'; leave it out"
    assert with_code(error) == "a.csv:3: duplicate id '7'; leave it out [bad-row]"
    assert with_code(SemsearchError("of a plugin")) == "of a plugin"


@pytest.mark.parametrize(
    "error",
    [
        errors.FilterError("where: x"),
        errors.BadRowError("a.csv:3", "empty text", "7"),
        errors.UndecodableError("a.csv:3", "text holds byte 0xe9"),
        errors.BadFileError("a.pdf, page 3", "damaged", "a.pdf"),
        errors.NoVectorError("no vector", [3]),
        errors.MissingExtraError("ray", "ray", "a cluster"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_reach_other_processes(error):
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own
    assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))
