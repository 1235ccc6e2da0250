"""The types of CSV cells."""

from __future__ import annotations

import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semsearch.corpus import Corpus
from semsearch.corpus.celltypes import cell_type


def converted(cells):
    convert = cell_type(cells)
    return [convert(cell) if convert else cell for cell in cells if cell]


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
        (["1.5", "", "nan", "inf"], [1.5, None, "inf"]),
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
        ["[" * 100_000],
        ["['a'" + ", 'a'" * 200_000 + "]"],  # more than a million characters
    ],
)
def test_text_stays_text(cells):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert cell_type(cells) is None


def test_no_catastrophic_backtracking():
    assert cell_type(["['" + "a', 'a" * 1000 + "!"]) is None
    assert cell_type(["[" + "1, " * 3000 + "!"]) is None
    assert cell_type(["['" + "a' 'a" * 100_000 + "!"]) is None


def test_later_cells_that_do_not_fit_stay_text(write):
    rows = [f"text,{number}" for number in range(1000)]
    write("corpus.csv", "\n".join(["text,year", *rows, "text,c. 1950", "text,", "text,nan"]))
    metadata = [document.metadata for document in Corpus("corpus.csv")]
    assert metadata[0] == {"year": 0}
    assert metadata[1000:] == [{"year": "c. 1950"}, {}, {"year": None}]


def test_numbers_after_the_first_thousand_rows(write):
    rows = [f"text,{number},," for number in range(1000)]
    late = ["text,1.5,4,maybe", "text,007,4.5,3"]
    write("corpus.csv", "\n".join(["text,price,stars,remark", *rows, *late]))
    metadata = [document.metadata for document in Corpus("corpus.csv")]
    assert metadata[999] == {"price": 999}
    assert metadata[1000:] == [
        {"price": 1.5, "stars": 4, "remark": "maybe"},
        {"price": "007", "stars": 4.5, "remark": 3},
    ]


def test_codes_after_a_thousand_empty_cells_stay_text(write):
    late = ["01234", "12345", "NA", "1E5", "None", "7.50", "1.", "3.2e-08", ".5", "1e-3"]
    write(
        "corpus.csv", "\n".join(["text,code", *["a text,"] * 1000, *(f"a text,{c}" for c in late)])
    )
    found = [document.metadata["code"] for document in list(Corpus("corpus.csv"))[1000:]]
    assert found == ["01234", 12345, "NA", "1E5", "None", 7.5, "1.", 3.2e-08, 0.5, 0.001]


def test_id_title_and_text_are_never_typed(write):
    write("corpus.csv", "id,title,text,n\n7.50,1984,42,7.50\n")
    (document,) = Corpus("corpus.csv")
    assert (document.id, document.title, document.text) == ("7.50", "1984", "42")
    assert document.metadata == {"n": 7.5}


@given(st.lists(st.integers(-(10**18) + 1, 10**18 - 1), min_size=1))
def test_integers_round_trip(values):
    assert converted([str(value) for value in values]) == values
