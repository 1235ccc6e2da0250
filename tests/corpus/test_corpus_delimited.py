"""CSV and TSV: dialects, malformed rows and their line numbers."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from semsearch.corpus import Corpus
from semsearch.errors import ArgumentError, CorpusError
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


@pytest.mark.parametrize(
    ("lines", "is_said"),
    [
        (["Review", "Good, but slow", "Fine", "Bad, and dear"], True),
        (["Review", '"Good, but slow"', "Fine"], False),
        (["Review", "Good", "Fine; quick"], False),
        (["id,Review", "1,Good", "2,Fine"], False),
    ],
)
def test_commas_that_separate_nothing_are_said(write, lines, is_said):
    write("x.csv", "\n".join(lines))
    documents, bad, [notice] = read("x.csv")
    assert (len(documents), bad) == (len(lines) - 1, [])
    assert notice.endswith("; prose is read whole from a .txt file") is is_said


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


@pytest.mark.parametrize("sign", ["^", "~", ":", "\x01"])
def test_unusual_delimiters(write, sign):
    """A sign that each line holds equally often, if a column has a usual name; else an error."""
    write("corpus.csv", f"id{sign}text\n1{sign}one, two\n2{sign}three\n")
    assert [one.text for one in Corpus("corpus.csv")] == ["one, two", "three"]
    write("corpus.csv", f"a{sign}b\n1{sign}one, two\n2{sign}three\n")
    with pytest.raises(CorpusError, match="--delimiter"):
        list(Corpus("corpus.csv"))
    found = list(Corpus("corpus.csv", delimiter=sign, text_columns="b"))
    assert [one.text for one in found] == ["one, two", "three"]
    write("corpus.csv", f"word\none{sign}two\nthree\n")
    assert len(list(Corpus("corpus.csv"))) == 2
    with pytest.raises(ArgumentError):
        Corpus("corpus.csv", delimiter="||")


FOUND = [("1", "one, two", {"year": 1999}), ("2", "three", {"year": 2001})]
DATA = '1,"one, two",1999\n2,three,2001\n'


@pytest.mark.parametrize(
    ("content", "options", "said"),
    [
        (f"Sales of Q1\nBy Ann, Bob\n\nid,text,year\n{DATA}", {}, "3 lines above the header"),
        (f"# made by hand, today\n# x\nid,text,year\n{DATA}", {}, "2 lines above the header"),
        (f"#id,text,year\n{DATA}", {"id_column": "#id"}, ""),
        (f"id,text,year\n1,no,1\nid,text,year\n{DATA}", {"skip_lines": 2}, ""),
        (f"id,text,year\n# a remark\n{DATA}# the end, too\n", {}, "2 comments (x.csv:2, x.csv:5)"),
        (f"id,text,year\n{DATA}\ufeffid,text,year\n", {}, "1 repeated header (x.csv:4)"),
        (f"# made by x\nid,text,year\n# inner, with, commas\n{DATA}", {}, "1 comment (x.csv:3)"),
        (f"id,text,year\n,,(AD)\n{DATA}", {}, "1 row of units (x.csv:2)"),
        (f"id,text,year\n,,EUR\n{DATA}", {}, "1 row of units (x.csv:2)"),
        ('id,text,year\n1,"one, two",1999,\n2,three,2001,\n', {}, ""),
        (
            "| id | text | year |\n|---:|:----|---|\n| 1 | one, two | 1999 |\n|2|three|2001|\n",
            {},
            "",
        ),
    ],
)
def test_what_is_no_row_is_skipped_and_said(write, content, options, said):
    write("x.csv", content)
    documents, bad, notices = read("x.csv", **options)
    assert [(one.id, one.text, one.metadata) for one in documents] == FOUND
    assert bad == []
    assert said in "\n".join(notices)


def test_a_header_of_one_column_is_no_line_above_others(write):
    for lines in (["Hello, world", "Good morning, all"], ["One, two, three", "Four, five, six"]):
        write("x.csv", "\n".join(["text", *lines]))
        assert [one.text for one in Corpus("x.csv")] == lines


@pytest.mark.parametrize(
    ("cells", "values", "said"),
    [
        (["3,50", "1.234,56", "-2"], [3.5, 1234.56, -2], "n: numbers with decimal comma"),
        (["1'250.50", "3.20"], [1250.5, 3.2], "n: numbers with decimal point"),
        (["$3.50", "-$1,234.00"], [3.5, -1234.0], "decimal point"),
        (["200,50 €", "3 €"], [200.5, 3], "decimal comma"),
        (["1 234,5", "12"], [1234.5, 12], "decimal comma"),
        (["12 %", "5 %"], [12, 5], "n: numbers"),
        (["1,234,567", "12,000"], [1_234_567, 12_000], "decimal point"),
        (["1,234", "2,345"], ["1,234", "2,345"], "--decimal"),
        (["555 123 456", "555 222 111"], ["555 123 456", "555 222 111"], ""),
        (["05.06.2025", "1.2.2024"], ["2025-06-05", "2024-02-01"], "n: dates, day first"),
        (["6/5/2025 9:05", "31/12/2024"], ["2025-05-06T09:05", "2024-12-31"], "day first"),
        (["6/5/2025", "12/31/2024"], ["2025-06-05", "2024-12-31"], "n: dates, month first"),
        (["6/5/2025", "1/2/2024"], ["6/5/2025", "1/2/2024"], "--dates"),
        (
            ["31.06.2025", "1.2.2024"],
            [None, "2024-02-01"],
            "no date (31.06.2025)",
        ),
        (["1.2.3", "10.20.30"], ["1.2.3", "10.20.30"], ""),
    ],
)
def test_numbers_and_dates_as_people_write_them(write, cells, values, said):
    write(
        "x.csv", "\n".join(["id;text;n", *(f"{n};a text;{cell}" for n, cell in enumerate(cells))])
    )
    documents, _, notices = read("x.csv")
    assert [one.metadata["n"] for one in documents] == values
    assert said in "\n".join(notices)


def test_named_notations(write):
    write("x.csv", "id;text;n;on\n1;one;1.234;6/5/2025\n2;two;2,345;1/2/2024\n")
    for decimal, numbers in ((",", [1234, 2.345]), (".", [1.234, 2345])):
        for dates, days in (("day-first", ["2025-05-06", "2024-02-01"]), ("month-first", None)):
            found = list(Corpus("x.csv", decimal=decimal, dates=dates))
            assert [one.metadata["n"] for one in found] == numbers
            assert [one.metadata["on"] for one in found] == (days or ["2025-06-05", "2024-01-02"])
    for wrong in ({"decimal": ";"}, {"dates": "us"}):
        with pytest.raises(ArgumentError):
            Corpus("x.csv", **wrong)


def test_ids_that_look_alike_are_said(write):
    write("x.csv", "id,text\ncafe\u0301,one\n caf\u00e9 ,two\n")
    assert "differ only in blanks" in read("x.csv")[2][0]
