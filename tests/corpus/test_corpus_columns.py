"""Choice of the text, title and id columns."""

from __future__ import annotations

import json
import re

import pytest

from semsearch.corpus import Corpus
from semsearch.errors import BadRowError, CorpusError


@pytest.fixture
def one_row(write):
    """A function that writes a CSV file whose only row repeats the column names."""

    def one_row(*columns: str) -> str:
        line = ",".join(columns)
        return write("corpus.csv", f"{line}\n{line}\n")

    return one_row


def read(path, **options):
    notices: list[str] = []
    (document,) = Corpus(path, notify=notices.append, **options)
    (line,) = notices
    return document, line


@pytest.mark.parametrize(
    "text",
    [
        *("text", "content", "body", "abstract", "extract", "passage", "sentence", "description"),
        *("summary", "document", "review", "comment", "message", "question", "Text", "BODY"),
    ],
)
def test_text_column_is_guessed_by_name(one_row, text):
    document, line = read(one_row("year", text))
    assert document.text == text
    assert line == (
        f"corpus.csv: text from '{text}', no id column: documents are named by their content; "
        "metadata: year"
    )
    assert document.id is None


def test_first_of_several_candidates(one_row):
    document, line = read(one_row("id", "comment", "Body"))
    assert document.text == "Body"
    assert document.metadata == {"comment": "comment"}
    assert line == (
        "corpus.csv: text from 'Body' rather than 'comment', id from 'id'; metadata: comment"
    )


@pytest.mark.parametrize("column", ["anything", "id", "title"])
def test_the_only_column_is_the_text(one_row, column):
    document, line = read(one_row(column))
    assert (document.id, document.title, document.text) == (None, None, column)
    assert line == (
        f"corpus.csv: text from '{column}', no id column: documents are named by their content"
    )


@pytest.mark.parametrize("title", ["title", "name", "headline", "heading", "subject", "Name"])
@pytest.mark.parametrize("identifier", ["id", "_id", "doc_id", "docid", "document_id", "uuid"])
def test_title_and_id(one_row, title, identifier):
    document, line = read(one_row(title, "text", identifier))
    assert (document.id, document.title, document.text) == (identifier, title, "text")
    assert document.metadata == {}
    assert line == f"corpus.csv: text from 'text', title from '{title}', id from '{identifier}'"


def test_explicit_columns(one_row):
    path = one_row("id", "title", "text", "lemma", "pos")
    document, line = read(path, id_column="lemma", title_column="pos", text_columns="title")
    assert (document.id, document.title, document.text) == ("lemma", "pos", "title")
    assert document.metadata == {"id": "id", "text": "text"}
    assert line == (
        "corpus.csv: text from 'title', title from 'pos', id from 'lemma'; metadata: id, text"
    )


def test_several_text_columns_are_joined(write):
    write("corpus.csv", "title,body,notes,n\nT,B,N,\n,B,,\n,,,1\n")
    bad: list[BadRowError] = []
    corpus = Corpus("corpus.csv", text_columns=["title", "body", "notes"], on_bad_row=bad.append)
    first, second = corpus
    assert (first.title, first.text, first.metadata) == ("T", "T\nB\nN", {})
    assert (second.title, second.text) == (None, "B")
    assert [str(error) for error in bad] == ["corpus.csv:4: empty text"]


def test_a_title_repeated_by_the_body_is_not_duplicated(write):
    write("corpus.csv", "title,body\nGreen tea,Green tea is brewed.\n")
    (document,) = Corpus("corpus.csv", text_columns=["title", "body"])
    assert (document.title, document.text) == ("Green tea", "Green tea is brewed.")


@pytest.mark.parametrize("array", ["['One.' 'Two.']", "['One.', 'Two.']", '["One.", "Two."]'])
def test_lists_of_sentences_are_joined(write, array):
    quoted = array.replace('"', '""')
    write("corpus.csv", f'id,abstract\n1,"{quoted}"\n2,"{quoted}"\n')
    assert [document.text for document in Corpus("corpus.csv")] == ["One. Two."] * 2
    write("corpus.jsonl", '{"id": "1", "abstract": ["One.", "Two."]}\n')
    assert [document.text for document in Corpus("corpus.jsonl")] == ["One. Two."]


def test_brackets_in_a_text_are_kept(write):
    write("corpus.csv", "id,text\n1,['One.']\n2,[sic] plain\n")
    assert [document.text for document in Corpus("corpus.csv")] == ["['One.']", "[sic] plain"]


def test_lists_with_other_values_are_rejected(write):
    write("corpus.jsonl", '{"id": "1", "text": ["One.", 2]}\n')
    with pytest.raises(BadRowError, match=r"'text' is not a string but of type list$"):
        list(Corpus("corpus.jsonl"))


def test_text_is_not_its_own_title(one_row):
    document, _ = read(one_row("title", "year"), text_columns=("title",))
    assert (document.title, document.text) == (None, "title")
    document, _ = read(one_row("title", "year"), text_columns="title", title_column="title")
    assert (document.title, document.text) == ("title", "title")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {},
            "corpus.csv: cannot tell which column holds the text (columns: a, b, boddy); "
            "name it with --text-column, for example --text-column boddy",
        ),
        (
            {"text_columns": "body"},
            "corpus.csv: no column 'body' (columns: a, b, boddy); nearest: boddy",
        ),
        ({"text_columns": ["a", "xyz"]}, "corpus.csv: no column 'xyz' (columns: a, b, boddy)"),
        (
            {"text_columns": "a", "id_column": "B"},
            "corpus.csv: no column 'B' (columns: a, b, boddy); nearest: b",
        ),
        (
            {"text_columns": "a", "title_column": ""},
            "corpus.csv: no column '' (columns: a, b, boddy)",
        ),
    ],
)
def test_missing_columns(one_row, options, message):
    with pytest.raises(CorpusError) as error:
        list(Corpus(one_row("a", "b", "boddy"), **options))
    assert str(error.value) == message


def test_long_lists_of_columns_are_cut_short(one_row):
    columns = [f"c{number}" for number in range(50)]
    _, line = read(one_row("text", *columns))
    assert line.endswith("metadata: " + ", ".join(columns[:30]) + " and 20 more")


@pytest.mark.parametrize(
    ("header", "example"),
    [
        ("nr,client,notes_of_call", ", for example --text-column notes_of_call"),
        ("nr,client,notes of call", ", for example --text-column 3"),
        ("nr,client,$(rm)", ", for example --text-column 3"),
    ],
)
def test_the_suggested_column_is_the_wordiest(write, header, example):
    write("calls.csv", f"{header}\n1,Mrs Grey,wants her money back\n2,Mr Brown,is content\n")
    with pytest.raises(CorpusError, match=f"name it with --text-column{re.escape(example)}$"):
        list(Corpus("calls.csv"))


def test_without_a_header_it_is_suggested_by_position(write):
    write("pairs.csv", "A man sings.,A man sings a song.,5.0\nA cat.,A cat sleeps there.,1.0\n" * 9)
    with pytest.raises(CorpusError, match=r"name it with --text-column, for example .* 2$"):
        list(Corpus("pairs.csv"))


def test_a_header_in_another_encoding_is_reported(write):
    write("corpus.csv", "编号,内容\n1,今天下雨了，天气很冷，我们都在家里。\n".encode("gb18030"))
    with pytest.raises(CorpusError, match=r"^corpus\.csv:.*not UTF-8; .*--encoding gb18030$"):
        list(Corpus("corpus.csv"))


def test_undecodable_column_names_are_printable(write):
    write("corpus.csv", b"text,caf\xe9\none,two\n")
    notices: list[str] = []
    with pytest.raises(BadRowError, match=r"^corpus\.csv:2: .* byte 0xe9"):
        list(Corpus("corpus.csv", notify=notices.append))
    assert notices[0].encode().endswith(b"metadata: caf\\udce9")


def test_one_notice_per_file(write):
    notices: list[str] = []
    paths = [write("a.csv", "text\none\n"), write("b.csv", "body\none\n")]
    list(Corpus(paths, notify=notices.append))
    assert [line.split(",")[0] for line in notices] == [
        "a.csv: text from 'text'",
        "b.csv: text from 'body'",
    ]


@pytest.mark.parametrize(
    ("identifier", "read_as"),
    [("a", "a"), ("007", "007"), (7, "7"), (-7, "-7"), (12.0, "12"), (10**30, str(10**30))],
)
def test_ids(write, identifier, read_as):
    write("corpus.jsonl", json.dumps({"id": identifier, "text": "x", "title": identifier}))
    (document,) = Corpus("corpus.jsonl")
    assert (document.id, document.title) == (read_as, read_as)


@pytest.mark.parametrize("identifier", [None, "", True, False, 1.5, float("nan"), [1], {}, 1e999])
def test_invalid_ids(write, identifier):
    write("corpus.jsonl", json.dumps({"id": identifier, "text": "x"}))
    with pytest.raises(BadRowError, match=r"^corpus\.jsonl:1: (empty id$|id is not a string)"):
        list(Corpus("corpus.jsonl"))


@pytest.mark.parametrize("title", [None, "", float("nan")])
def test_empty_titles(write, title):
    write("corpus.jsonl", json.dumps({"title": title, "text": "x"}))
    (document,) = Corpus("corpus.jsonl")
    assert document.title is None


def test_non_string_titles_are_bad_rows(write):
    write("corpus.jsonl", '{"title": ["a"], "text": "x"}')
    with pytest.raises(BadRowError, match=r"^corpus\.jsonl:1: title is not a string but \['a'\]$"):
        list(Corpus("corpus.jsonl"))
