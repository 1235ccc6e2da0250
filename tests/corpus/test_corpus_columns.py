"""Choice of the text, title and id columns; types of the cells of CSV."""

from __future__ import annotations

import json
import warnings

import pytest

from semsearch.corpus import Corpus, Row, Table
from semsearch.corpus.celltypes import column_type
from semsearch.corpus.roles import Roles, are_ids, resolve
from semsearch.errors import BadRowError, ColumnNotFoundError, CorpusError
from semsearch.records import Document
from tests.corpus.conftest import read


@pytest.fixture
def one_row(write):
    """A function that writes a file whose only row repeats the column names."""

    def one_row(*columns: str) -> str:
        return write("corpus.jsonl", json.dumps(dict(zip(columns, columns, strict=True))))

    return one_row


NAMES = ["text", "content", "body", "abstract", "passage", "sentence", "description", "BODY"]
EXPLICIT = {"id_column": "lemma", "title_column": "pos", "text_columns": "title"}
TWICE = {"text_columns": "title", "title_column": "title"}


@pytest.mark.parametrize(
    ("columns", "options", "roles"),
    [
        *((["year", name], {}, (None, None, name)) for name in NAMES),
        *(([only], {}, (None, None, only)) for only in ("anything", "id", "title")),
        (["title", "comment", "Text", "id"], {}, ("id", "title", "Text")),
        (["name", "comment", "Text", "_id"], {}, ("_id", "name", "Text")),
        (["Name", "comment", "Text", "uuid"], {}, ("uuid", "Name", "Text")),
        (["id", "title", "text", "lemma", "pos"], EXPLICIT, ("lemma", "pos", "title")),
        (["title", "year"], {"text_columns": ("title",)}, (None, None, "title")),
        (["title", "year"], TWICE, (None, "title", "title")),
    ],
)
def test_roles(one_row, columns, options, roles):
    """Guessed by name, or as given; a guessed title is not the text; the rest is metadata."""
    (document,) = Corpus(one_row(*columns), **options)
    assert (document.id, document.title, document.text) == roles
    assert document.metadata == {name: name for name in columns if name not in roles}


def test_several_text_columns_are_joined(write):
    write("corpus.csv", "title,body,notes,n\nT,B,N,\n,B,,\n,,,1\n")
    [first, second], bad, _ = read("corpus.csv", text_columns=["title", "body", "notes"])
    assert (first.title, first.text, first.metadata) == ("T", "T\nB\nN", {})
    assert (second.title, second.text) == (None, "B")
    assert [str(error) for error in bad] == ["corpus.csv:4: empty text"]


@pytest.mark.parametrize("array", ["['One.' 'Two.']", "['One.', 'Two.']", '["One.", "Two."]'])
def test_lists_of_sentences_are_joined(write, array):
    quoted = array.replace('"', '""')
    write("corpus.csv", f'id,abstract\n1,"{quoted}"\n2,"{quoted}"\n')
    assert [document.text for document in Corpus("corpus.csv")] == ["One. Two."] * 2
    write("corpus.jsonl", '{"id": "1", "abstract": ["One.", "Two."]}\n')
    assert [document.text for document in Corpus("corpus.jsonl")] == ["One. Two."]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"text_columns": "body"},
        {"text_columns": ["a", "xyz"]},
        {"text_columns": "a", "id_column": "B"},
        {"text_columns": "a", "title_column": ""},
    ],
)
def test_missing_columns(one_row, options):
    with pytest.raises(CorpusError, match=r"^corpus\.jsonl: .*columns: a, b, boddy"):
        list(Corpus(one_row("a", "b", "boddy"), **options))


@pytest.mark.parametrize(
    ("identifier", "read_as"),
    [("007", "007"), (7, "7"), (-7, "-7"), (12.0, "12"), (10**30, str(10**30))],
)
def test_ids(write, identifier, read_as):
    write("corpus.jsonl", json.dumps({"id": identifier, "text": "x", "title": identifier}))
    (document,) = Corpus("corpus.jsonl")
    assert (document.id, document.title) == (read_as, read_as)


IDS = [None, "", True, False, 1.5, float("nan"), [1], {}, 1e999]


@pytest.mark.parametrize(
    "row",
    [
        *({"id": identifier, "text": "x"} for identifier in IDS),
        {"title": ["a"], "text": "x"},
        {"text": ["One.", 2]},
    ],
)
def test_values_of_other_types_are_bad_rows(write, row):
    with pytest.raises(BadRowError, match=r"^corpus\.jsonl:1"):
        list(Corpus(write("corpus.jsonl", json.dumps(row))))


def table(**columns):
    """A table with the cells of each column."""
    rows = [
        Row(f"t:{number}", dict(zip(columns, cells, strict=True)))
        for number, cells in enumerate(zip(*columns.values(), strict=True), 1)
    ]
    return Table("t", [*columns], iter(rows))


PROSE = [f"This is a sentence of words, number {number}." for number in range(10, 20)]
CODES = [
    f"https://shop.example/a/long/path/to/the/article/with/a/name/{number}" for number in range(10)
]
JSON = [f'{{"item": {number}, "colour": "a dark shade of blue"}}' for number in range(10)]
THIRD = [f"a b c {sentence[: len(sentence) // 3 - 6]}" for sentence in PROSE]


@pytest.mark.parametrize(
    ("cells", "others", "is_text"),
    [
        (PROSE, {"site": CODES, "cart": JSON}, True),
        ([*PROSE[:7], *CODES[:3]], {"site": CODES}, True),
        ([*PROSE[:6], *CODES[:4]], {"site": CODES}, False),  # less than two thirds are prose
        ([*PROSE[:8], *PROSE[:2]], {}, True),
        ([*PROSE[:7], *PROSE[:3]], {}, False),  # less than 80 % are distinct
        (PROSE, {"reply": THIRD}, True),
        (PROSE, {"reply": [f"{cell}xx" for cell in THIRD]}, False),  # more than a third as long
        ([""] * 10, {}, False),
    ],
)
def test_by_far_the_longest_texts_are_the_text(cells, others, is_text):
    read_from = table(**others, why=cells, country=["Peru", "Chad"] * 5)
    if is_text:
        assert resolve(read_from, Roles((), None, None)).text == ("why",)
    else:
        with pytest.raises(ColumnNotFoundError):
            resolve(read_from, Roles((), None, None))


@pytest.mark.parametrize(
    ("values", "texts", "expected"),
    [
        (["a", "b"], ["x", "y"], True),
        (["a", " a"], ["x", "y"], False),
        (["a", ""], ["x", "y"], False),
        (["a", None], ["x", ""], True),  # a total has no text
        (["a", "b"], ["", None], False),
    ],
)
def test_ids_are_distinct_and_present_in_rows_with_a_text(values, texts, expected):
    assert are_ids(table(key=values, text=texts), "key", ["text"]) is expected


def test_the_nearest_name_is_proposed(one_row):
    for name, ends in (("Boddy", "; nearest: body"), ("xyz", r"\(columns: a, body\)")):
        with pytest.raises(ColumnNotFoundError, match=f"no column '{name}' .*{ends}$"):
            list(Corpus(one_row("a", "body"), text_columns=name))


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
    assert notices[-1] == "corpus.csv: left out: 1 value of 'n' that is no number (abc)"


def test_columns_that_stay_text(write):
    """One with too many odd cells, and one that is empty at first."""
    cells = ["abc" if number % 15 == 0 else str(number) for number in range(1500)]
    write("corpus.csv", "\n".join(["text,n", *(f"a text,{cell}" for cell in cells)]))
    assert [one.metadata["n"] for one in Corpus("corpus.csv")] == cells
    late = ["01234", "12345", "NA", "7.50"]
    rows = [*["a text,"] * 1000, *(f"a text,{cell}" for cell in late)]
    write("corpus.csv", "\n".join(["text,code", *rows]))
    assert [one.metadata["code"] for one in list(Corpus("corpus.csv"))[1000:]] == late
    write("corpus.csv", "id,title,text,n\n7.50,1984,42,7.50\n")  # all but metadata
    assert list(Corpus("corpus.csv")) == [Document("7.50", "42", "1984", {"n": 7.5})]
