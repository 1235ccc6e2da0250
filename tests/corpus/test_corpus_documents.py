"""PDF, DOCX, PPTX and HTML, as pandoc and python-pptx write them."""

from __future__ import annotations

import io
import subprocess
import sys
import zipfile

import pytest

from semsearch.corpus import Corpus, conversion
from semsearch.errors import BadRowError, MissingExtraError
from semsearch.records import Document
from tests.corpus.conftest import pdf, read, rewritten

MARKDOWN = """---
title: The handbook
lang: en
---

# Introduction

Read *this* first: Ärger, 山, 😀.

## Setup

- one item
- another item

| name  | value |
|-------|-------|
| alpha | 1     |

# Methods

They are described at length.[^1]

[^1]: A footnote.
"""
FORMATS = ["docx", "html"]


@pytest.fixture(autouse=True)
def in_this_process(monkeypatch):
    """Documents are converted without another process, which test_corpus_conversion tests."""
    monkeypatch.setattr(conversion.converter, "run", lambda function, *args: function(*args))


@pytest.fixture(scope="session")
def handbook(program, tmp_path_factory):
    """The handbook in the formats that pandoc writes."""
    folder = tmp_path_factory.mktemp("handbook")
    (folder / "handbook.md").write_text(MARKDOWN, "utf-8")
    for suffix in [*FORMATS, "pptx"]:
        command = [program("pandoc"), "--standalone", "handbook.md", "-o", f"handbook.{suffix}"]
        subprocess.run(command, cwd=folder, check=True)
    return {file.suffix[1:]: file.read_bytes() for file in folder.iterdir()}


@pytest.mark.parametrize("suffix", FORMATS)
def test_sections(handbook, write, suffix):
    file = write(f"handbook.{suffix}", handbook[suffix])
    documents, _, notices = read(file)
    texts = {
        "Introduction": "Introduction\nRead this first: Ärger, 山, 😀.",
        "Setup": "Setup\none item\nanother item\nname | value\nalpha | 1",
        "Methods": "Methods\nThey are described at length.",
    }
    first = len(documents) - 2  # HTML has the title as a section
    for number, (section, text) in enumerate(texts.items(), first):
        found = documents[number - 1]
        assert (found.id, found.title) == (f"{file}#section={number}", f"The handbook: {section}")
        assert found.metadata == {"file": file, "section": section}
        assert found.source == f"{file}, section {number}"
        assert found.text.removeprefix("The handbook\n").startswith(text)
    assert "A footnote." in documents[-1].text
    assert notices == [f"{file}: {len(documents)} sections"]
    write("x.bin", handbook[suffix])  # recognised by its content
    assert [one.text for one in Corpus("x.bin")] == [one.text for one in documents]


def test_slides(handbook, write):
    documents, _, notices = read(write("handbook.pptx", handbook["pptx"]))
    assert notices == ["handbook.pptx: 4 slides"]
    text = "Introduction\nRead this first: Ärger, 山, 😀.\nSetup\none item\nanother item\n"
    text += "name | value\nalpha | 1"
    where = {"file": "handbook.pptx", "slide": 2}
    slide = Document("handbook.pptx#slide=2", text, "The handbook, slide 2", where)
    assert documents[1] == slide


@pytest.mark.usefixtures("write")
def test_notes_groups_and_charts_of_slides():
    pptx = pytest.importorskip("pptx")
    pytest.importorskip("pptx.chart.data")
    presentation = pptx.Presentation()
    slide = presentation.slides.add_slide(presentation.slide_layouts[6])
    group = slide.shapes.add_group_shape()
    group.shapes.add_textbox(0, 0, 9, 9).text_frame.text = "In a group"
    chart = pptx.chart.data.CategoryChartData()
    chart.categories = ["North", "South"]
    chart.add_series("Revenue", (1, 2))
    slide.shapes.add_chart(pptx.enum.chart.XL_CHART_TYPE.PIE, 0, 0, 9, 9, chart)
    slide.notes_slide.notes_text_frame.text = "What the speaker says"
    presentation.slides.add_slide(presentation.slide_layouts[6])  # a blank one
    presentation.save("talk.pptx")
    [document], _, notices = read("talk.pptx")
    assert notices == ["talk.pptx: 2 slides"]
    text = "In a group\nRevenue | North | South\nWhat the speaker says"
    assert (document.title, document.text) == ("talk, slide 1", text)


def test_pages(write):
    first = b"BT /F 12 Tf (\xc4rger on the first) Tj 0 -12 Td (page.) Tj ET"
    write("page.pdf", pdf(first, b"", b"BT /F 9 Tf (Last.) Tj ET"))
    documents, _, notices = read("page.pdf")
    assert notices[0].startswith("page.pdf: 3 pages; if pages are scans, recognise their text")
    assert notices[1:] == ["page.pdf: left out: 1 page without text (2)"]
    assert documents == [
        Document(f"page.pdf#page={n}", text, f"A title, page {n}", {"file": "page.pdf", "page": n})
        for n, text in ((1, "Ärger on the first\npage."), (3, "Last."))
    ]
    assert [one.source for one in documents] == ["page.pdf, page 1", "page.pdf, page 3"]


@pytest.mark.parametrize(("blank", "shown"), [(5, "1, 2, 3, 4, 5"), (6, "1, 2, 3, 4, 5, …")])
def test_pages_without_text(write, blank, shown):
    write("page.pdf", pdf(*[b""] * blank, b"BT /F 9 Tf (Last.) Tj ET"))
    assert read("page.pdf")[2][-1] == f"page.pdf: left out: {blank} pages without text ({shown})"


@pytest.mark.parametrize(
    ("name", "content", "more"),
    [
        ("page.pdf", pdf(b""), "; if pages are scans"),
        ("page.html", "<script>x</script><p> \n", "$"),
        ("page.html", " \n", "$"),
    ],
)
def test_documents_without_text(write, name, content, more):
    with pytest.raises(BadRowError, match=f"^{name}: has no text{more}"):
        list(Corpus(write(name, content)))


class TestHtml:
    PAGE = """<!doctype html><html><head><title> A
      page </title><script>no()</script></head><body><nav>Menu</nav>and
      <p>Before <b>any</b> heading.</p>
      <h1>First<br>one</h1><h2>Second</h2>
      <div>A <p>paragraph &amp; more<style>no</style></div> tail
      <pre>  kept
         as it is</pre><h3></h3>
      <table><tr><td><p>a</p><td>b</tr></table><!-- no --></body></html>"""

    def test_a_page(self, write):
        write("page.html", self.PAGE)
        text = "First\none\nSecond\nA\nparagraph & more\ntail\nkept\n         as it is\na | b"
        where = {"file": "page.html"}
        assert list(Corpus("page.html")) == [
            Document("page.html#section=1", "and\nBefore any heading.", "A page", where),
            Document("page.html#section=2", text, "A page: Second", {**where, "section": "Second"}),
        ]

    @pytest.mark.parametrize(
        ("content", "options"),
        [
            ("<meta charset='windows-1252'><p>Ärger".encode("cp1252"), {}),
            ("<p>Ärger".encode("cp1252"), {"encoding": "cp1252"}),
            ("<p>Ärger".encode("utf-16"), {}),
            ("<meta charset='utf-16'><p>Ärger".encode(), {}),
            ("<meta charset='iso-8859-1'><p>\x80rger".encode("latin-1"), {}),
            ("<meta charset='ascii'><p>Ärger".encode(), {"encoding": "utf-8"}),
            ("<?xml version='1.0' encoding='cp1252'?><html><p>Ärger".encode("cp1252"), {}),
        ],
    )
    def test_encodings(self, write, content, options):
        write("page.html", content)
        (document,) = Corpus("page.html", **options)
        assert document.text == ("€rger" if b"\x80" in content else "Ärger")

    def test_headings(self, write):
        """Each of the six levels; the title of a section is said once."""
        page = "".join(f"<h{n}>{n}</h{n}>at {n}" for n in range(1, 7))
        write("page.html", f"<title>1</title>{page}<h7>7</h7>")
        documents, _, notices = read("page.html")
        assert [one.title for one in documents] == ["1", "1: 2", "1: 3", "1: 4", "1: 5", "1: 6"]
        assert [one.text for one in documents][-1] == "6\nat 67"
        assert notices == ["page.html: 6 sections"]

    def test_cells_and_verbatim_text(self, write):
        cells = "<tr><td>a<br>b<th><h2>c</h2><tr><td>d"
        write("page.html", f"<table>{cells}</table>e<pre>  f\n g</pre> h")
        (document,) = Corpus("page.html")
        assert document.text == "a\nb | c\nd\ne\nf\n g\nh"

    def test_nested_and_long_elements(self, write):
        """Beyond 256 elements and texts of 10 MB, which libxml2 allows by default."""
        write("nested.html", "<html><body>" + "<blockquote>reply" * 1500 + "<h2>End</h2>last")
        write("long.html", f"<p>first</p><pre>{'word ' * 2_200_000}</pre><p>last")
        documents = list(Corpus(["nested.html", "long.html"]))
        assert sum(one.text.count("reply") for one in documents) == 1500
        assert [one.text[-4:] for one in documents if one.text.endswith("last")] == ["last"] * 2


MAIN = {"docx": "word/document.xml", "pptx": "ppt/slides/slide2.xml"}


class TestBroken:
    """A broken file, or a broken part of one, is one bad row; the others are read."""

    @pytest.mark.parametrize("suffix", MAIN)
    def test_truncated_file(self, handbook, bad_file, suffix):
        content = handbook[suffix]
        error = bad_file(f"x.{suffix}", content[: int(0.9 * len(content))])
        assert error.document_id == f"x.{suffix}"

    @pytest.mark.parametrize("suffix", MAIN)
    def test_entities_are_not_expanded(self, handbook, write, suffix):
        write("secret.txt", "hidden")
        fetched = b'?><!DOCTYPE x [<!ENTITY g SYSTEM "secret.txt">]>'

        def change(xml):
            return xml.replace(b"?>", fetched, 1).replace(b"this", b"&g;")

        write(f"x.{suffix}", rewritten(handbook[suffix], MAIN[suffix], change))
        documents, bad, _ = read(f"x.{suffix}")
        assert "hidden" not in "".join([*(one.text for one in documents), *map(str, bad)])

    def test_a_damaged_page(self, write):
        text = b"BT /F 12 Tf (Text.) Tj ET"
        write(
            "x.pdf", pdf(text, text, text).replace(b"7 0 obj <</Type /Page", b"7 0 obj <</Type /X")
        )
        documents, [error], _ = read("x.pdf")
        assert [one.metadata["page"] for one in documents] == [1, 3]
        assert (error.source, error.document_id) == ("x.pdf, page 2", "x.pdf#page=2")

    def test_a_pdf_with_a_password(self, bad_file):
        keys = b"/O <%b> /U <%b>" % (b"00" * 32, b"11" * 32)
        keys = b"trailer <</ID [<00><00>] /Encrypt <</Filter /Standard /V 1 /R 2 /P -4 %b>> " % keys
        error = bad_file("x.pdf", pdf(b"").replace(b"trailer <<", keys))
        assert error.reason == "is encrypted: save it without a password first"


FIELD = b"""/Type /Annot /Subtype /Widget /FT /Tx /F 4 /T (name) /V (Ada) /Rect [9 9 70 30]
 /P 5 0 R /AP <</N 8 0 R>>>> endobj
8 0 obj <</Type /XObject /Subtype /Form /BBox [0 0 61 21] /Length 29
 /Resources <</Font <</F 3 0 R>>>>>> stream
BT /F 12 Tf 2 5 Td (Ada) Tj ET
endstream endobj
trailer"""


def test_the_fields_of_a_form(write):
    form = pdf(b"").replace(b"/Catalog", b"/Catalog /AcroForm <</Fields [7 0 R]>>")
    form = form.replace(b"/Page ", b"/Page /Annots [7 0 R] ")
    write("form.pdf", form.replace(b"trailer", b"7 0 obj <<" + FIELD))
    (document,) = Corpus("form.pdf")
    assert document.text.strip() == "Ada"


def test_without_the_extra(write, monkeypatch):
    monkeypatch.setitem(sys.modules, "pypdfium2", None)
    with pytest.raises(MissingExtraError):
        read(write("x.pdf", pdf(b"")))


@pytest.mark.parametrize("title", ["untitled", "Microsoft Word - a.docx", "Document1", "a.indd"])
def test_titles_that_programs_write_are_none(write, title):
    write("page.pdf", pdf(b"BT /F 9 Tf (Text.) Tj ET").replace(b"(A title)", f"({title})".encode()))
    assert next(iter(Corpus("page.pdf"))).title == "page, page 1"


LEFT = ["The committee reviewed the annual", "report and approved the plan for", "the school."]
RIGHT = ["Rain fell on the vineyards all", "week, so the growers waited with", "the harvest."]


def lines(*placed):
    """A content stream with texts at these places."""
    shown = (f"1 0 0 1 {x} {y} Tm ({text}) Tj" for x, y, text in placed)
    return f"BT /F 6 Tf {' '.join(shown)} ET".encode()


def wide(content):
    return pdf(content).replace(b"[0 0 72 72]", b"[0 0 400 200]")


def test_two_columns_are_read_one_after_the_other(write):
    """The lines above them and below keep their places; the cells of a table stay in a line."""
    rows = [
        (x, 100 - 8 * n, text)
        for n, pair in enumerate(zip(LEFT, RIGHT, strict=True))
        for x, text in zip((10, 200), pair, strict=True)
    ]
    write(
        "page.pdf",
        wide(lines((10, 120, "News of the week " * 5), *rows, (10, 60, "The end. " * 20))),
    )
    text = "\n".join(["News of the week " * 5, *LEFT, *RIGHT, "The end. " * 20])
    assert next(iter(Corpus("page.pdf"))).text.split() == text.split()
    cells = [
        (x, 100 - 8 * n, f"{name}{n}") for n in range(4) for x, name in ((10, "a"), (200, "b"))
    ]
    write("page.pdf", wide(lines(*cells)))
    assert next(iter(Corpus("page.pdf"))).text.split()[:3] == ["a0", "b0", "a1"]


def test_notes_and_attachments_of_a_pdf_are_said(write):
    import pypdfium2
    from pypdfium2 import raw

    document = pypdfium2.PdfDocument(pdf(b"BT /F 9 Tf (Text.) Tj ET"))
    for subtype in (raw.FPDF_ANNOT_TEXT, raw.FPDF_ANNOT_LINK):
        raw.FPDFPage_CloseAnnot(raw.FPDFPage_CreateAnnot(document[0], subtype))
    document.new_attachment("data.csv").set_data(b"1")
    document.save("page.pdf")
    assert read("page.pdf")[2][-1] == "page.pdf: left out: 1 attachment, 1 annotation"


WORD = """<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"
 xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"
 xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"><w:body>
<w:p><w:r><w:t>See </w:t></w:r>
<w:hyperlink r:id="rId77"><w:r><w:t>the site</w:t></w:r></w:hyperlink></w:p>
<w:p><w:r><w:t>Then </w:t></w:r><m:oMath><m:r><m:t>E=m</m:t></m:r>
<m:sSup><m:e><m:r><m:t>c</m:t></m:r></m:e></m:sSup></m:oMath></w:p></w:body></w:document>"""
CHART = """<c:chartSpace xmlns:c="http://schemas.openxmlformats.org/drawingml/2006/chart"
 xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"><c:ser><c:tx><c:v>Revenue</c:v></c:tx>
<c:cat><c:pt><c:v>North</c:v></c:pt></c:cat><c:val><c:v>17</c:v></c:val></c:ser></c:chartSpace>"""


def test_links_without_a_target_equations_and_charts_of_word(handbook, write):
    content = rewritten(handbook["docx"], "word/document.xml", lambda _: WORD.encode())
    changed = io.BytesIO(content)
    with zipfile.ZipFile(changed, "a") as archive:
        archive.writestr("word/charts/chart1.xml", CHART)
    documents, bad, _ = read(write("handbook.docx", changed.getvalue()))
    assert bad == []
    assert "\n".join(one.text for one in documents) == ("See the site\nThen E=mc\nRevenue | North")
