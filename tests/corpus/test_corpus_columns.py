"""Choice of the text, title and id columns."""

from __future__ import annotations

import json

import pytest

from semsearch.corpus import Corpus, Row, Table
from semsearch.corpus.roles import Roles, are_ids, resolve
from semsearch.errors import BadRowError, ColumnNotFoundError, CorpusError


@pytest.fixture
def one_row(write):
    """A function that writes a file whose only row repeats the column names."""

    def one_row(*columns: str) -> str:
        return write("corpus.jsonl", json.dumps(dict(zip(columns, columns, strict=True))))

    return one_row


def read(path, **options):
    (document,) = Corpus(path, **options)
    return document


@pytest.mark.parametrize(
    "text", ["text", "content", "body", "abstract", "passage", "sentence", "description", "BODY"]
)
def test_text_column_is_guessed_by_name(one_row, text):
    document = read(one_row("year", text))
    assert document.text == text
    assert document.id is None


@pytest.mark.parametrize("column", ["anything", "id", "title"])
def test_the_only_column_is_the_text(one_row, column):
    document = read(one_row(column))
    assert (document.id, document.title, document.text) == (None, None, column)


@pytest.mark.parametrize(
    ("title", "identifier"), [("title", "id"), ("name", "_id"), ("Name", "uuid")]
)
def test_title_and_id(one_row, title, identifier):
    document = read(one_row(title, "comment", "Text", identifier))
    assert (document.id, document.title, document.text) == (identifier, title, "Text")
    assert document.metadata == {"comment": "comment"}


def test_explicit_columns(one_row):
    path = one_row("id", "title", "text", "lemma", "pos")
    document = read(path, id_column="lemma", title_column="pos", text_columns="title")
    assert (document.id, document.title, document.text) == ("lemma", "pos", "title")
    assert document.metadata == {"id": "id", "text": "text"}


def test_several_text_columns_are_joined(write):
    write("corpus.csv", "title,body,notes,n\nT,B,N,\n,B,,\n,,,1\n")
    bad: list[BadRowError] = []
    corpus = Corpus("corpus.csv", text_columns=["title", "body", "notes"], on_bad_row=bad.append)
    first, second = corpus
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


def test_text_is_not_its_own_title(one_row):
    document = read(one_row("title", "year"), text_columns=("title",))
    assert (document.title, document.text) == (None, "title")
    document = read(one_row("title", "year"), text_columns="title", title_column="title")
    assert (document.title, document.text) == ("title", "title")


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


@pytest.mark.parametrize("identifier", [None, "", True, False, 1.5, float("nan"), [1], {}, 1e999])
def test_invalid_ids(write, identifier):
    write("corpus.jsonl", json.dumps({"id": identifier, "text": "x"}))
    with pytest.raises(BadRowError, match=r"^corpus\.jsonl:1"):
        list(Corpus("corpus.jsonl"))


@pytest.mark.parametrize("row", ['{"title": ["a"], "text": "x"}', '{"text": ["One.", 2]}'])
def test_values_of_other_types_are_bad_rows(write, row):
    with pytest.raises(BadRowError, match=r"^corpus\.jsonl:1"):
        list(Corpus(write("corpus.jsonl", row)))


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
    with pytest.raises(ColumnNotFoundError, match=r"no column 'Boddy' .*; nearest: body$"):
        read(one_row("a", "body"), text_columns="Boddy")
    with pytest.raises(ColumnNotFoundError, match=r"\(columns: a, body\)$"):
        read(one_row("a", "body"), text_columns="xyz")
