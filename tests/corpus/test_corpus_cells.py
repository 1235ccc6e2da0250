"""The types of CSV cells."""

from __future__ import annotations

import warnings

import pytest

from semsearch.corpus import Corpus
from semsearch.corpus.celltypes import column_type
from tests.corpus.conftest import read


def converted(cells):
    found = column_type(cells)
    return [found.convert(cell) if found else cell for cell in cells if cell]


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["1", "-20", "0", "999999999999999999"], [1, -20, 0, 999_999_999_999_999_999]),
        ([" 7", "8 "], [7, 8]),
        (["1", "2.5", "-.5", "1e3", "3."], [1.0, 2.5, -0.5, 1000.0, 3.0]),
        (["True", "false", "TRUE"], [True, False, True]),
        (['["a", "b"]', "[]", "[1, [2]]"], [["a", "b"], [], [1, [2]]]),
        (["['a', \"it's\"]", "[1, -2.5, None, True]"], [["a", "it's"], [1, -2.5, None, True]]),
        ([r"['a\n\'\x00\u2028']", "[]"], [["a\n'\x00\u2028"], []]),
        (["['a' \"it's\"\n 'b']", "['c']"], [["a", "it's", "b"], ["c"]]),  # as NumPy prints arrays
        (["1", "nan", "NaN"], [1, None, None]),
        (["2001", "NA", "NULL", "None", r"\N", "n/a"], [2001, *[None] * 5]),  # R, databases
        (["true", "NA"], [True, None]),
    ],
)
def test_typed(cells, values):
    assert converted(cells) == values
    assert [type(value) for value in converted(cells)] == [type(value) for value in values]


@pytest.mark.parametrize(
    "cells",
    [
        ["12345", "01234"],  # zip codes
        ["+4912345"],  # a telephone number
        ["1234567890123456789"],  # 19 digits may not fit in 64 bits
        ["1", "2", "x"],
        ["nan", "inf"],  # without numbers, these may be words
        ["NA", "None", "null"],
        ["1.5", "123456789012345678"],  # would lose digits as a float
        ["1e999"],
        ["1_000"],
        ["yes", "no"],
        ["[1 2]"],  # NumPy's arrays of numbers are not parsed
        ["['a', ['b']]"],  # nested: not as pandas writes a flat list
        [r"['\d']"],
        ["['\\N{BULLET}']"],
        ["[__import__('os')]"],
        # Without catastrophic backtracking:
        *(["['" + "a', 'a" * 1000 + "!"], ["[" + "1, " * 3000 + "!"]),
        *(["['" + "a' 'a" * 100_000 + "!"], ["[" * 100_000]),
        ["['a'" + ", 'a'" * 200_000 + "]"],  # more than a million characters
    ],
)
def test_text_stays_text(cells):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert column_type(cells) is None


@pytest.mark.parametrize("place", [0, 500, 1499])
def test_an_odd_cell_changes_no_type_wherever_it_stands(write, place):
    cells = [*range(1500)]
    cells[place] = "abc"
    write("corpus.csv", "\n".join(["text,n", *(f"a text,{cell}" for cell in cells)]))
    documents, _, notices = read("corpus.csv")
    cells[place] = None
    assert [one.metadata["n"] for one in documents] == cells
    assert notices[-1] == "corpus.csv: 'n' holds numbers; 1 other value left empty, such as 'abc'"


def test_columns_that_stay_text(write):
    """One with too many odd cells, and one that is empty at first."""
    cells = ["abc" if number % 15 == 0 else str(number) for number in range(1500)]
    write("corpus.csv", "\n".join(["text,n", *(f"a text,{cell}" for cell in cells)]))
    assert [one.metadata["n"] for one in Corpus("corpus.csv")] == cells
    late = ["01234", "12345", "NA", "7.50"]
    rows = [*["a text,"] * 1000, *(f"a text,{cell}" for cell in late)]
    write("corpus.csv", "\n".join(["text,code", *rows]))
    assert [one.metadata["code"] for one in list(Corpus("corpus.csv"))[1000:]] == late


def test_id_title_and_text_are_never_typed(write):
    write("corpus.csv", "id,title,text,n\n7.50,1984,42,7.50\n")
    (document,) = Corpus("corpus.csv")
    assert (document.id, document.title, document.text) == ("7.50", "1984", "42")
    assert document.metadata == {"n": 7.5}
