"""CSV and TSV: dialects, malformed rows and their line numbers."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from semsearch.corpus import Corpus
from semsearch.errors import CorpusError
from semsearch.records import Document
from tests.corpus.conftest import read


def test_repeated_and_missing_names_of_columns_are_numbered(write):
    """Jira exports a column for each comment of an issue, all with the same name."""
    write("issues.csv", "id,text,Comment,id,Comment_2,Comment\na,One.,x,1,y,z\n")
    (document,) = Corpus("issues.csv")
    assert (document.id, document.text) == ("a", "One.")
    assert document.metadata == {"Comment": "x", "id_2": 1, "Comment_2": "y", "Comment_3": "z"}
    (joined,) = Corpus("issues.csv", text_columns=["text", "Comment", "Comment_3"])
    assert joined.text == "One.\nx\nz"
    write("r.csv", ",text,\n0,one,x\n")  # as R and pandas write row names
    assert list(Corpus("r.csv")) == [Document(None, "one", None, {"column_1": 0, "column_3": "x"})]


def test_lines_of_text_below_a_single_column_header(write):
    write("corpus.csv", "text\nFirst, second, third\nNo comma; a semicolon\n")
    documents, _, [notice] = read("corpus.csv")
    assert [one.text for one in documents] == ["First, second, third", "No comma; a semicolon"]
    assert "sep=" not in notice


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends(write, end):
    write("corpus.csv", end.join(["id,text", "1,one", "", ",", "2,two", ""]))
    found = [(one.text, one.source) for one in Corpus("corpus.csv")]
    assert found == [("one", "corpus.csv:2"), ("two", "corpus.csv:5")]


def test_stray_quotes_in_tsv_and_blanks_before_quotes(write):
    # As in STS Benchmark and MSR Paraphrase: a quote may open a cell and never close.
    write("pairs.tsv", 'id\ttext\n1\t"Never," he said.\n2\t"Open\n3\t5" wide\n4\tplain\n')
    texts = ['"Never," he said.', '"Open', '5" wide', "plain"]
    assert [document.text for document in Corpus("pairs.tsv")] == texts
    write("hand.csv", 'id, text\n1, "red, blue"\n2, "a cat"\n')
    assert list(Corpus("hand.csv")) == [Document("1", "red, blue"), Document("2", "a cat")]


@pytest.mark.parametrize(
    ("rows", "reasons"),
    [
        (
            "1,one,1990\n2,two,1991,here\n3\n4,a,1,b,c\n",
            {2: "3 cells where the header has 4", 4: "1 cell where the header has 4"}
            | {5: "5 cells where the header has 4"},
        ),
        (
            '1,"one" more,,\n2,two,,\n3,"three\n4,four,,\n',
            {2: "its quotes do not match (',' expected after '\"', line 2)"}
            | {4: "its quotes do not match (unexpected end of data, line 5)"},
        ),
        ("1,,,\n2,  ,,\n2,two,,\n,four,,\n", {2: "empty text", 3: "empty text", 5: "empty id"}),
        ("2,two,,\n\ufeffid,text,year,place\n", {3: "repeats the header"}),
    ],
)
def test_bad_rows(write, rows, reasons):
    """A wrong number of cells, quotes that do not match, empty texts and ids, joined files."""
    write("corpus.csv", f"id,text,year,place\n{rows}")
    documents, bad, _ = read("corpus.csv")
    assert [document.id for document in documents] == ["2"]
    assert [str(one) for one in bad] == [f"corpus.csv:{n}: {reasons[n]}" for n in reasons]


@pytest.mark.parametrize("content", ["", "\n\n", "id,text\n", "id,text\n\n\n", '"id,text\n1,one\n'])
def test_tables_that_cannot_be_read(write, content):
    with pytest.raises(CorpusError, match=r"^corpus\.csv"):
        read(write("corpus.csv", content))


CELLS = st.text(
    st.characters(codec="utf-8", exclude_characters="\x00").filter(lambda one: one != "\ufeff"),
    max_size=12,
)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_csv_writer_round_trip(write, data):
    delimiter = data.draw(st.sampled_from(",;\t|"))
    quoting = data.draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
    end = data.draw(st.sampled_from(["\n", "\r\n"]))
    cells = data.draw(st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=8))
    # The writer leaves a lone "\r" unquoted unless it is part of its own line ends.
    unquoted = end == "\n" and quoting == csv.QUOTE_MINIMAL
    assume(not (unquoted and any("\r" in cell for row in cells for cell in row)))
    file = io.StringIO(newline="")
    writer = csv.writer(file, delimiter=delimiter, quoting=quoting, lineterminator=end)
    writer.writerow(["note", "text", "number"])
    for number, (note, text) in enumerate(cells):
        writer.writerow([f"n{note}", f"={text}", number])
    write("table.csv", file.getvalue())
    read = [(one.metadata["note"], one.text, one.metadata["number"]) for one in Corpus("table.csv")]
    assert read == [(f"n{note}", f"={text}", number) for number, (note, text) in enumerate(cells)]


@pytest.mark.parametrize("first", ["sep=;", "SEP=;", "\ufeffsep=;"])
def test_excels_line_with_the_delimiter(write, first):
    write("x.csv", f"{first}\r\nid;text\r\n1;Hello, there\r\n2;\r\n3;a;b\r\n")
    documents, bad, _ = read("x.csv")
    assert documents == [Document("1", "Hello, there")]
    assert [error.source for error in bad] == ["x.csv:4", "x.csv:5"]


def test_lines_above_the_header_are_skipped_and_reported(write):
    write("corpus.csv", 'Extracted on 2025-01-06\n\nid,text\n1,"one, two"\n2,three\n')
    documents, _, notices = read("corpus.csv")
    found = [(one.id, one.text, one.source) for one in documents]
    assert found == [("1", "one, two", "corpus.csv:4"), ("2", "three", "corpus.csv:5")]
    assert notices[0].endswith("; 2 lines above the header skipped")


@pytest.mark.parametrize("sign", ["^", "\x01"])
def test_an_unknown_delimiter_is_reported(write, sign):
    write("corpus.csv", f"id{sign}text\n1{sign}one two\n2{sign}three\n")
    assert "sep=" in read("corpus.csv")[2][0]
