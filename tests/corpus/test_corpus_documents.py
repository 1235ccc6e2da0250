"""PDF, DOCX, PPTX, EPUB and HTML, as pandoc, Chromium and python-pptx write them."""

from __future__ import annotations

import io
import random
import re
import shutil
import subprocess
import zipfile

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from semsearch.corpus import Corpus
from semsearch.corpus.archives import check_archive
from semsearch.errors import BadRowError, CorpusError, MissingExtraError
from semsearch.limits import MAX_PART_BYTES
from semsearch.records import Document

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
FORMATS = ["docx", "epub", "html"]


@pytest.fixture(scope="session")
def handbook(program, tmp_path_factory):
    """A folder with the handbook in the formats that pandoc writes."""
    folder = tmp_path_factory.mktemp("handbook")
    (folder / "handbook.md").write_text(MARKDOWN, "utf-8")
    for suffix in [*FORMATS, "pptx"]:
        command = [program("pandoc"), "--standalone", "handbook.md", "-o", f"handbook.{suffix}"]
        subprocess.run(command, cwd=folder, check=True)
    return folder


@pytest.fixture(scope="session")
def printed(program, tmp_path_factory):
    """A PDF printed by a browser: two pages with text, and a blank one between."""
    folder = tmp_path_factory.mktemp("printed")
    (folder / "page.html").write_text(
        "<!doctype html><meta charset=utf-8><title>Printed page</title>"
        "<style>div { break-after: page; min-height: 1px }</style>"
        "<div><p>Ärger on the first page,<br>and Spaß.</div><div></div>"
        "<p>The last page has this sentence.</p>",
        "utf-8",
    )
    command = [program("chromium"), "--headless", "--no-sandbox", "--disable-gpu"]
    command += [f"--user-data-dir={folder}/profile", "--no-pdf-header-footer"]
    command += ["--print-to-pdf=page.pdf", "page.html"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=120)
    return folder / "page.pdf"


@pytest.fixture
def here(handbook, tmp_path, monkeypatch):
    """A temporary working directory with copies of those files."""
    for file in handbook.iterdir():
        shutil.copy(file, tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def read(name, **options):
    notices = []
    return list(Corpus(name, notify=notices.append, **options)), notices


def part(number, title, text, section=None, name="handbook", suffix="docx"):
    file = f"{name}.{suffix}"
    where = {"section": section} if section else {}
    return Document(f"{file}#section={number}", text, title, {"file": file, **where})


@pytest.mark.parametrize("suffix", FORMATS)
def test_sections(here, suffix):
    documents, notices = read(f"handbook.{suffix}")
    texts = {
        "Introduction": "Introduction\nRead this first: Ärger, 山, 😀.",
        "Setup": "Setup\none item\nanother item\nname | value\nalpha | 1",
        "Methods": "Methods\nThey are described at length.",
    }
    first = len(documents) - 2  # EPUB and HTML have the title as a section
    for number, (section, text) in enumerate(texts.items(), first):
        found = documents[number - 1]
        assert found.id == f"handbook.{suffix}#section={number}"
        assert found.title == f"The handbook: {section}"
        assert found.metadata == {"file": f"handbook.{suffix}", "section": section}
        assert found.source == f"handbook.{suffix}, section {number}"
        assert found.text.removeprefix("The handbook\n").startswith(text)
    assert "A footnote." in documents[-1].text
    count = "3 chapters" if suffix == "epub" else f"{len(documents)} sections"
    assert notices == [f"handbook.{suffix}: {count}"]


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("packed", [False, True])
def test_formats_are_detected_by_content(here, write, suffix, packed):
    expected = [one.text for one in read(f"handbook.{suffix}")[0]]
    write("x.bin", (here / f"handbook.{suffix}").read_bytes(), packed=packed)
    assert [one.text for one in Corpus("x.bin")] == expected


def test_slides(here):
    documents, notices = read("handbook.pptx")
    assert notices == ["handbook.pptx: 4 slides"]
    assert documents[1] == Document(
        "handbook.pptx#slide=2",
        "Introduction\nRead this first: Ärger, 山, 😀.\nSetup\none item\nanother item\n"
        "name | value\nalpha | 1",
        "The handbook, slide 2",
        {"file": "handbook.pptx", "slide": 2},
    )


def test_slide_notes_and_grouped_shapes(tmp_path, monkeypatch):
    pptx = pytest.importorskip("pptx")
    monkeypatch.chdir(tmp_path)
    presentation = pptx.Presentation()
    slide = presentation.slides.add_slide(presentation.slide_layouts[6])
    group = slide.shapes.add_group_shape()
    group.shapes.add_textbox(0, 0, 9, 9).text_frame.text = "In a group"
    slide.notes_slide.notes_text_frame.text = "What the speaker says"
    presentation.slides.add_slide(presentation.slide_layouts[6])  # a blank one
    presentation.save("talk.pptx")
    (document,) = Corpus("talk.pptx")
    assert document.text == "In a group\nWhat the speaker says"
    assert document.title == "talk, slide 1"


def test_pages(printed, write, monkeypatch):
    write("page.pdf", printed.read_bytes())
    documents, notices = read("page.pdf")
    assert notices == ["page.pdf: 3 pages"]
    assert documents == [
        Document(
            f"page.pdf#page={number}",
            text,
            f"Printed page, page {number}",
            {"file": "page.pdf", "page": number},
        )
        for number, text in (
            (1, "Ärger on the first page,\nand Spaß."),
            (3, "The last page has this sentence."),
        )
    ]
    assert [one.source for one in documents] == ["page.pdf, page 1", "page.pdf, page 3"]


class TestHtml:
    PAGE = """<!doctype html><html><head><title> A
      page </title><script>no()</script></head><body><nav>Menu</nav>
      <p>Before <b>any</b> heading.</p>
      <h1>First<br>one</h1><h2>Second</h2>
      <div>A <p>paragraph &amp; more<style>no</style></div> tail
      <pre>  kept
         as it is</pre><h3></h3>
      <table><tr><td><p>a</p><td>b</tr></table><!-- no --></body></html>"""

    def test_a_page(self, write):
        write("page.html", self.PAGE)
        documents, _ = read("page.html")
        assert documents == [
            part(1, "A page", "Before any heading.", None, "page", "html"),
            part(
                2,
                "A page: Second",
                "First\none\nSecond\nA\nparagraph & more\ntail\nkept\n         as it is\na | b",
                "Second",
                "page",
                "html",
            ),
        ]

    @pytest.mark.parametrize(
        ("content", "options"),
        [
            ("<meta charset='windows-1252'><p>Ärger".encode("cp1252"), {}),
            ("<?xml version='1.0' encoding='cp1252'?><html><p>Ärger</p>".encode("cp1252"), {}),
            ("<p>Ärger".encode("cp1252"), {"encoding": "cp1252"}),
            ("<meta charset='nonsense'><p>Ärger".encode(), {}),
            ("<p>Ärger".encode("utf-16"), {}),
            ("<meta charset='utf-16'><p>Ärger".encode(), {}),
        ],
    )
    def test_encodings(self, write, content, options):
        write("page.html", content)
        assert [one.text for one in Corpus("page.html", **options)] == ["Ärger"]

    @pytest.mark.parametrize(
        ("declared", "encoded", "text"),
        [
            ("gb2312", "gb18030", "镕"),
            ("shift_jis", "cp932", "①"),
            ("us-ascii", "cp1252", "It’s"),
            ("iso-8859-1", "cp1252", "It’s"),
            ("iso-8859-9", "cp1254", "It’s ş"),
            ("euc-kr", "cp949", "똠"),
        ],
    )
    def test_encodings_as_browsers_understand_them(self, write, declared, encoded, text):
        """The names of https://encoding.spec.whatwg.org/#names-and-labels."""
        write("page.html", f"<meta charset={declared}><p>{text}".encode(encoded))
        assert [one.text for one in Corpus("page.html")] == [text]

    def test_a_wrong_encoding(self, write):
        write("page.html", "<p>Ärger".encode("cp1252") * 20)
        with pytest.raises(
            BadRowError, match=r"^page\.html: text holds byte 0xc4, which is not UTF"
        ):
            list(Corpus("page.html"))

    @pytest.mark.parametrize("content", ["<html></html>", "<p> \n", "<script>x</script>"])
    def test_pages_without_text(self, write, content):
        write("page.html", content)
        with pytest.raises(BadRowError, match=r"^page\.html: has no text$"):
            list(Corpus("page.html"))

    def test_nested_and_long_elements(self, write):
        """Beyond 256 elements and texts of 10 MB, which libxml2 allows by default."""
        write("nested.html", "<html><body>" + "<blockquote>reply" * 1500 + "<h2>End</h2>last")
        write("long.html", f"<p>first</p><pre>{'word ' * 2_200_000}</pre><p>last")
        documents = list(Corpus(["nested.html", "long.html"]))
        assert sum(one.text.count("reply") for one in documents) == 1500
        assert [one.text[-4:] for one in documents if one.text.endswith("last")] == ["last"] * 2

    def test_a_page_that_is_nested_too_deeply(self, write):
        nested = "<div>" * 50_000 + "deep" + "<b>" * 50_000 + "<table>" * 10_000
        write("page.html", f"first{nested}")
        write("good.txt", "Good.")
        bad = []
        documents = list(Corpus(["page.html", "good.txt"], on_bad_row=bad.append))
        assert [one.id for one in documents] == ["good.txt"]
        assert [str(one) for one in bad] == ["page.html: its elements are nested too deeply"]


def rewritten(content, name, change):
    """The archive with one member changed, or omitted."""
    before, after = zipfile.ZipFile(io.BytesIO(content)), io.BytesIO()
    with zipfile.ZipFile(after, "w", zipfile.ZIP_DEFLATED) as archive:
        for stored in before.namelist():
            data = before.read(stored)
            data = change(data) if stored == name else data
            if data is not None:
                archive.writestr(stored, data)
    return after.getvalue()


MAIN = {
    "docx": "word/document.xml",
    "pptx": "ppt/slides/slide2.xml",
    "epub": "EPUB/text/ch001.xhtml",
}
LAUGHS = b'<!DOCTYPE x [<!ENTITY a "%s">' % (b"ha" * 1000) + b"".join(
    b'<!ENTITY %c "%s">' % (letter, b"&%c;" % (letter - 1) * 50) for letter in b"bcdefg"
)
FETCHED = b'<!DOCTYPE x [<!ENTITY g SYSTEM "secret.txt">'


def test_further_titles_of_a_word_document_are_headings(here, write):
    def change(data):
        return data.replace(b'w:pStyle w:val="Heading1"', b'w:pStyle w:val="Title"')

    write("x.docx", rewritten((here / "handbook.docx").read_bytes(), MAIN["docx"], change))
    assert [(one.title, one.text) for one in Corpus("x.docx")] == [
        (one.title, one.text) for one in Corpus("handbook.docx")
    ]


CHAPTER = (
    "<html xmlns='http://www.w3.org/1999/xhtml'><body><p>Ärger <![CDATA[a < b]]></p></body></html>"
)


@pytest.mark.parametrize(
    "content",
    [
        CHAPTER.encode(),
        CHAPTER.encode("utf-16"),
        f"<?xml version='1.0' encoding='iso-8859-1'?>{CHAPTER}".encode("latin-1"),
        f"\n<?xml version='1.0' encoding='UTF-16'?>{CHAPTER}".encode(),
        f"<?xml version='1.0' encoding='x-unknown'?>{CHAPTER}".encode(),
        f"<!-- <?xml version='1.0' encoding='iso-8859-2'?> -->{CHAPTER}".encode(),
    ],
)
def test_encodings_of_chapters(here, write, content):
    book = (here / "handbook.epub").read_bytes()
    write("x.epub", rewritten(book, MAIN["epub"], lambda data: content))
    assert [one.text for one in Corpus("x.epub")][1] == "Ärger a < b"


def test_a_chapter_is_decoded_as_browsers_do(here, write):
    """By ISO-8859-1 they mean windows-1252."""
    content = "<?xml version='1.0' encoding='iso-8859-1'?><html><p>“Ja”</p></html>".encode("cp1252")
    book = (here / "handbook.epub").read_bytes()
    write("x.epub", rewritten(book, MAIN["epub"], lambda data: content))
    assert "“Ja”" in [one.text for one in Corpus("x.epub")]


@pytest.mark.parametrize("count", [1, 200_000])
def test_unclosed_cdata_sections(here, write, count):
    content = f"<html><p>{'<![CDATA[' * count}Read.</p></html>".encode()
    book = (here / "handbook.epub").read_bytes()
    write("x.epub", rewritten(book, MAIN["epub"], lambda data: content))
    assert list(Corpus("x.epub"))


def test_a_chapter_by_a_link_with_a_fragment(here, write):
    def change(data):
        return data.replace(b"ch001.xhtml", b"ch001.xhtml#top")

    book = (here / "handbook.epub").read_bytes()
    write("x.epub", rewritten(book, "EPUB/content.opf", change))
    assert [one.text for one in Corpus("x.epub")] == [one.text for one in Corpus("handbook.epub")]


def test_a_chapter_in_two_items_is_read_once(here, write):
    def change(data):
        item = re.search(rb'<item id="(ch001[^"]*)"[^>]*href="([^"]+)"[^>]*>', data)
        again = item[0].replace(item[1], b"again").replace(item[2], item[2] + b"#part")
        reference = b'<itemref idref="again" />'
        data = data.replace(item[0], item[0] + again)
        return data.replace(b"</spine>", reference + b"</spine>")

    book = (here / "handbook.epub").read_bytes()
    write("x.epub", rewritten(book, "EPUB/content.opf", change))
    assert [one.text for one in Corpus("x.epub")] == [one.text for one in Corpus("handbook.epub")]


class TestBroken:
    """A broken file, or a broken part of one, is one bad row; the others are read."""

    @pytest.fixture
    def one_bad_row(self, write):
        write("good.txt", "Good.")

        def one_bad_row(name, content, rest=None):
            write(name, content)
            bad: list[BadRowError] = []
            found = [one.id for one in Corpus([name, "good.txt"], on_bad_row=bad.append)]
            assert found[-1] == "good.txt"
            if rest is None:
                assert found == ["good.txt"]
            assert len(bad) == 1
            assert bad[0].source.startswith(name)
            assert (bad[0].document_id or bad[0].file).startswith(name)
            assert "\n" not in str(bad[0])
            return bad[0].reason

        return one_bad_row

    @pytest.mark.parametrize("suffix", ["pdf", "docx", "pptx", "epub", "html"])
    def test_random_bytes(self, one_bad_row, suffix):
        assert one_bad_row(f"x.{suffix}", random.Random(7).randbytes(2000)).startswith(
            "looks like binary"
        )
        encrypted = one_bad_row(f"x.{suffix}", b"\xd0\xcf\x11\xe0" + bytes(2000))
        assert encrypted.startswith("looks like an encrypted or old office document")

    @pytest.mark.parametrize("suffix", MAIN)
    @pytest.mark.parametrize("share", [0.1, 0.9, 0.999])
    def test_truncated_file(self, here, one_bad_row, suffix, share):
        content = (here / f"handbook.{suffix}").read_bytes()
        reason = one_bad_row(f"x.{suffix}", content[: int(share * len(content))])
        assert reason == f"cannot be read as {suffix.upper()}: File is not a zip file"

    def test_a_chapter_in_another_encoding(self, here, one_bad_row):
        def change(data):
            return CHAPTER.encode("latin-1")

        content = rewritten((here / "handbook.epub").read_bytes(), MAIN["epub"], change)
        reason = one_bad_row("x.epub", content, "the others")
        assert reason.startswith("chapter ch001.xhtml: byte 0xc4 is not UTF-8; ")

    @pytest.mark.parametrize("suffix", MAIN)
    def test_misnamed_document(self, here, one_bad_row, suffix):
        other = "epub" if suffix == "docx" else "docx"
        reason = one_bad_row(f"x.{suffix}", (here / f"handbook.{other}").read_bytes())
        assert reason.endswith(f": add --input-format {other}")

    @pytest.mark.parametrize("suffix", MAIN)
    def test_missing_part(self, here, one_bad_row, suffix):
        content = rewritten(
            (here / f"handbook.{suffix}").read_bytes(), MAIN[suffix], lambda x: None
        )
        reason = one_bad_row(f"x.{suffix}", content, rest="chapters")
        assert "cannot be read" in reason or "chapter ch001.xhtml: " in reason

    @pytest.mark.parametrize("suffix", MAIN)
    def test_zip_bomb(self, here, one_bad_row, suffix):
        content = (here / f"handbook.{suffix}").read_bytes()
        bomb = rewritten(content, MAIN[suffix], lambda xml: xml + b" " * MAX_PART_BYTES)
        assert len(bomb) < len(content) + 50_000
        reason = f"its part {MAIN[suffix]!r} is longer than 32 MiB"
        assert one_bad_row(f"x.{suffix}", bomb) == reason

    def test_zip_bomb_of_several_parts(self, here, monkeypatch):
        monkeypatch.setattr("semsearch.corpus.archives.MAX_UNPACKED_BYTES", 1000)
        with (here / "handbook.docx").open("rb") as file:
            with pytest.raises(CorpusError, match=r"^unpacks to more than 0 MiB$"):
                check_archive(file, has_trees=True)

    @pytest.mark.parametrize("suffix", MAIN)
    def test_zip_bomb_with_a_false_size(self, here, one_bad_row, suffix):
        content = (here / f"handbook.{suffix}").read_bytes()
        size = len(zipfile.ZipFile(io.BytesIO(content)).read(MAIN[suffix]))
        bomb = rewritten(content, MAIN[suffix], lambda xml: xml + b" " * (2 << 20))
        true, false = ((size + more).to_bytes(4, "little") for more in (2 << 20, 0))
        assert bomb.count(true) == 2  # in the local header, and in the central directory
        reason = one_bad_row(f"x.{suffix}", bomb.replace(true, false), rest="chapters")
        assert "CRC" in reason

    @pytest.mark.parametrize("suffix", MAIN)
    @pytest.mark.parametrize("entity", [LAUGHS, FETCHED])
    def test_entities_are_not_expanded(self, here, write, suffix, entity):
        write("secret.txt", "hidden")
        write("good.txt", "Good.")

        def change(xml):
            declaration, _, rest = xml.rpartition(b"?>")
            rest = re.sub(rb"<!DOCTYPE[^>]*>", b"", rest)
            return declaration + b"?>" + entity + b"]>" + rest.replace(b"this", b"&g;")

        content = (here / f"handbook.{suffix}").read_bytes()
        write(f"x.{suffix}", rewritten(content, MAIN[suffix], change))
        bad = []
        texts = [one.text for one in Corpus([f"x.{suffix}", "good.txt"], on_bad_row=bad.append)]
        assert texts[-1] == "Good."
        assert not any("hidden" in text or "haha" in text for text in (*texts, *map(str, bad)))

    def test_encrypted(self, here, one_bad_row):
        """By ZIP's flag; for files encrypted by office programs, see `test_random_bytes`."""
        content = bytearray((here / "handbook.docx").read_bytes())
        for mark, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
            content[content.index(mark) + place] |= 1
        assert one_bad_row("x.docx", bytes(content)) == "is encrypted"

    def test_epub_with_an_encrypted_chapter(self, here, one_bad_row):
        encryption = (
            '<encryption xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><EncryptedData>'
            f'<CipherData><CipherReference URI="{MAIN["epub"]}"/></CipherData></EncryptedData>'
            "</encryption>"
        )
        file = io.BytesIO((here / "handbook.epub").read_bytes())
        with zipfile.ZipFile(file, "a") as archive:
            archive.writestr("META-INF/encryption.xml", encryption)
        reason = one_bad_row("x.epub", file.getvalue(), rest="chapters")
        assert reason == "chapter ch001.xhtml: is encrypted"

    def test_archive_that_is_not_an_epub(self, one_bad_row):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("META-INF/container.xml", "<container/>")
        reason = one_bad_row("x.epub", file.getvalue())
        assert reason == "is not an EPUB: its package document is missing"

    def test_a_pdf_with_a_password(self, one_bad_row):
        reason = one_bad_row("x.pdf", ENCRYPTED_PDF)
        assert reason == "is encrypted: save it without a password first"

    def test_invalid_pdf(self, one_bad_row):
        reason = one_bad_row("x.pdf", b"%PDF-1.4\nnothing\n%%EOF")
        assert reason.startswith("cannot be read as PDF: Failed to load document")

    def test_scanned_pdf(self, write):
        write("x.pdf", PDF % b"")
        with pytest.raises(BadRowError, match=r"^x\.pdf: has no text; if it is a scan, recognise"):
            list(Corpus("x.pdf"))


PDF = b"""%%PDF-1.4
1 0 obj <</Type /Catalog /Pages 2 0 R>> endobj
2 0 obj <</Type /Pages /Kids [3 0 R] /Count 1>> endobj
3 0 obj <</Type /Page /Parent 2 0 R /MediaBox [0 0 72 72]>> endobj
%strailer <</Root 1 0 R>>
%%%%EOF
"""
ENCRYPTED_PDF = (PDF % b"").replace(
    b"/Root 1 0 R",
    b"/Root 1 0 R /ID [<00><00>] /Encrypt <</Filter /Standard /V 1 /R 2 /P -4 "
    b"/O <" + b"00" * 32 + b"> /U <" + b"11" * 32 + b">>>",
)


def test_without_the_extra(write, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pypdfium2", None)
    write("x.pdf", PDF % b"")
    with pytest.raises(MissingExtraError, match=r"^reading PDF needs pypdfium2: pip install 'sems"):
        list(Corpus("x.pdf", on_bad_row=lambda error: None))


@pytest.fixture(scope="session")
def fuzzed(handbook, printed):
    """The contents of an intact document of each format, by suffix."""
    found = {suffix: (handbook / f"handbook.{suffix}").read_bytes() for suffix in MAIN}
    return found | {"pdf": printed.read_bytes()}


@pytest.mark.parametrize("suffix", [*MAIN, "pdf"])
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    damage=st.lists(
        st.tuples(st.floats(0, 1, exclude_max=True), st.binary(min_size=1, max_size=3)),
        min_size=1,
        max_size=5,
    )
)
def test_damaged_documents(write, fuzzed, suffix, damage):
    def change(data):
        content = bytearray(data)
        for share, written in damage:
            place = int(share * len(content))
            content[place : place + len(written)] = written
        return bytes(content)

    content = fuzzed[suffix]
    content = rewritten(content, MAIN[suffix], change) if suffix in MAIN else change(content)
    write(f"x.{suffix}", content)
    bad = []
    try:
        list(Corpus(f"x.{suffix}", on_bad_row=bad.append))
    except CorpusError as error:
        bad.append(error)
    assert not any("\n" in str(error) for error in bad)
