"""Excel workbooks, as openpyxl and XlsxWriter write them."""

from __future__ import annotations

import datetime
import io
from pathlib import Path

import openpyxl
import openpyxl.chart
import pytest
import xlsxwriter

from semsearch.corpus import Corpus, conversion
from semsearch.errors import BadRowError, CorpusError
from semsearch.records import Document
from tests.corpus.conftest import read, rewritten

ROWS = [
    ["id", "title", "text", "year", "seen"],
    [1, "Heat", "A heist goes wrong.", 1995, datetime.date(2020, 1, 2)],
    [2.0, 1917, "Two soldiers carry a message.", 2019.5, None],
]
DOCUMENTS = [
    Document("1", "A heist goes wrong.", "Heat", {"year": 1995, "seen": "2020-01-02T00:00:00"}),
    Document("2", "Two soldiers carry a message.", "1917", {"year": 2019.5}),
]


@pytest.fixture
def write_book(write):
    def write_book(sheets, name="films.xlsx", *, packed=False):
        book = openpyxl.Workbook()
        book.remove(book.active)
        for title, rows in sheets.items():
            sheet = book.create_sheet(title)
            sheet.sheet_state = "hidden" if title == "Hidden" else "visible"
            for row in rows:
                sheet.append(row)
        file = io.BytesIO()
        book.save(file)
        return write(name, file.getvalue(), packed=packed)

    return write_book


def test_dates_and_durations_as_ids_and_texts(write_book):
    day, hours = datetime.datetime(2024, 1, 5), datetime.timedelta(hours=30)
    write_book({"Log": [["id", "text", day], [day, hours, 1], [hours, day, 2]]})
    iso, shown = day.isoformat(), "1 day, 6:00:00"
    assert list(Corpus("films.xlsx")) == [
        Document(iso, shown, None, {"2024-01-05": 1}),
        Document(shown, iso, None, {"2024-01-05": 2}),
    ]


@pytest.mark.parametrize("name", ["films.xlsx", "films.XLSM", "films", "films.xlsx.gz"])
def test_a_workbook(write_book, name):
    sheets = {"Hidden": [["code", "text"], ["x", "y"]], "Films": ROWS, "Notes": [["x"]]}
    write_book(sheets, name, packed=name.endswith(".gz"))
    documents, _, notices = read(name)
    assert documents == DOCUMENTS
    assert [one.source for one in documents] == [f"{name}, sheet 'Films', row {n}" for n in (2, 3)]
    assert notices == [
        f"{name}: text from 'text', title from 'title', id from 'id'; metadata: year, seen; "
        "sheet 'Films' (others: Hidden, Notes)"
    ]


def test_a_sheet_by_name(write_book):
    films = [["Report"], [], [None, "of 2024"], *ROWS]  # with a heading
    write_book({"Empty": [], "Cover": [["Export"]], "Films": films})
    documents, _, notices = read("films.xlsx", sheet="Films")
    assert documents == DOCUMENTS
    assert notices[0].endswith("; 2 rows with a single cell above it skipped")
    for sheet in (None, "Cover", "films"):
        with pytest.raises(CorpusError, match=r"^films\.xlsx"):
            list(Corpus("films.xlsx", sheet=sheet))


def test_without_a_header(write_book):
    write_book({"S": [[1, "A heist goes wrong."], [2, "Two soldiers carry a message."]]})
    documents, _, notices = read("films.xlsx", text_columns="2")
    assert len(documents) == 2
    assert notices[0].endswith("sheet 'S'; no header")
    write_book({"S": [["Title"], [None, "one"]]})  # a last row of one cell is no heading
    assert [one.text for one in Corpus("films.xlsx", header=False, text_columns="2")] == ["one"]
    write_book({"S": [["text"], ["id"]]})
    assert len(list(Corpus("films.xlsx", header=False))) == 2
    assert [document.text for document in Corpus("films.xlsx", header=True)] == ["id"]


def test_blank_rows_and_error_cells(write_book):
    rows = [[], ["text", "n"], [], ["one", "#N/A"], [None, 3], *[["two", "#REF!"]] * 100]
    write_book({"S": [*rows, ["three", 3, "aside"]]})
    documents, bad, _ = read("films.xlsx")
    assert documents == [Document(None, "one"), *[Document(None, "two")] * 100]
    assert [str(error) for error in bad] == [
        "films.xlsx, sheet 'S', row 5: empty text",
        "films.xlsx, sheet 'S', row 106: 3 cells where the sheet has 2 columns",
    ]


def test_saved_values_of_formulas_and_escaped_carriage_returns(write):
    file = io.BytesIO()
    with xlsxwriter.Workbook(file) as book:
        sheet = book.add_worksheet("S")
        sheet.write_column(0, 0, ["text", "one\r\ntwo"])
        sheet.write(0, 1, "n")
        sheet.write_formula(1, 1, "=1+1", value=2)
    (document,) = Corpus(write("films.xlsx", file.getvalue()))
    assert document == Document(None, "one\r\ntwo", None, {"n": 2})


def test_other_characters_as_excel_escapes_them(write_book):
    """ECMA-376, Part 1, 22.9.2.19: ``_xHHHH_``, and ``_x005F_`` for an underscore before such."""
    write_book({"S": [["text"], ["c_x0007_d"], ["_x005F_x000D_ is a return"]]})
    found = [document.text for document in Corpus("films.xlsx")]
    assert found == ["c\x07d", "_x000D_ is a return"]


def test_a_broken_workbook_is_one_bad_row(write_book, bad_file):
    content = Path(write_book({"Films": ROWS})).read_bytes()
    cut = rewritten(content, "xl/worksheets/sheet1.xml", lambda xml: xml[:500])
    for broken in (content[:-100], cut):
        assert bad_file("films.xlsx", broken).reason.startswith("cannot be read as XLSX: ")


def test_merged_cells_hidden_rows_and_formulas_without_values(write):
    """The value of merged cells is that of each; formulas that were never computed are said."""
    book = openpyxl.Workbook()
    sheet = book.active
    for row in (["id", "text", "region"], [1, "one", "North"], [2, "two"], [3, "three", "=1+1"]):
        sheet.append(row)
    sheet.merge_cells("C2:C3")
    sheet.row_dimensions[3].hidden = True
    file = io.BytesIO()
    book.save(file)
    documents, _, notices = read(write("x.xlsx", file.getvalue()))
    found = [(one.id, one.metadata.get("region")) for one in documents]
    assert found == [("1", "North"), ("2", "North"), ("3", None)]
    assert "1 hidden row read, too" in notices[0]
    assert notices[-1].startswith("x.xlsx: left out: 1 formula without a saved value")


def test_charts_are_said(write):
    book = openpyxl.Workbook()
    for row in (["text", "n"], ["one", 1], ["two", 2]):
        book.active.append(row)
    for place in ("D1", "D20"):
        book.active.add_chart(openpyxl.chart.BarChart(), place)
    file = io.BytesIO()
    book.save(file)
    documents, _, notices = read(write("x.xlsx", file.getvalue()))
    assert [one.text for one in documents] == ["one", "two"]
    assert notices[1:] == ["x.xlsx: left out: 2 charts"]


def test_a_workbook_that_needs_too_much_time(write_book, monkeypatch):
    name = write_book({"A": ROWS})
    monkeypatch.setattr(conversion, "MAX_CONVERSION_SECONDS", 0.0)
    with pytest.raises(BadRowError, match=rf"^{name}: takes longer than 0 s"):
        list(Corpus(name))
