"""Text and Markdown files, single and in folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from semsearch.corpus import Corpus
from semsearch.corpus.table import MAX_ROW_CHARACTERS
from semsearch.errors import BadRowError, CorpusError
from semsearch.records import Document


def test_folder(write):
    write("docs/b.txt", "second\r\nline")
    write("docs/a/z.md", "# A title\n\nfirst")
    write("docs/a.txt", "zeroth", packed=True)
    write("docs/C.MD.gz", "no heading", packed=True)
    for ignored in ("docs/.hidden.txt", "docs/.git/x.txt", "docs/image.png", "docs/data.csv"):
        write(ignored, "x")
    corpus = Corpus("docs")
    assert list(corpus) == [
        Document("C.MD.gz", "no heading", "C"),
        Document("a/z.md", "# A title\n\nfirst", "A title"),
        Document("a.txt", "zeroth", "a"),
        Document("b.txt", "second\nline", "b"),
    ]
    assert [document.source for document in corpus][1] == str(Path("docs/a/z.md"))
    assert corpus.fraction_read == 1.0


@pytest.mark.parametrize(
    ("markdown", "title"),
    [
        ("# One\n# Two", "One"),
        ("text\n\n### Deep ###", "Deep"),
        ("# C# #", "C#"),
        ("#hashtag\n\n# One", "One"),
        ("#\n# \n# One", "One"),
        ("Under\n=====\ntext", "Under"),
        ("\n=====\n", None),
        ("```sh\n# comment\n```\n# One", "One"),
        ("~~~\n```\n# comment\n~~~\n# One", "One"),
        ("````md\n```\n# code\n```\n````\n# One", "One"),
        ("<!-- # hidden -->\n    # code\n# One", "One"),
        ("---\n---\n# One", "One"),
    ],
)
def test_markdown_titles(write, markdown, title):
    write("page.md", markdown)
    (document,) = Corpus("page.md")
    assert document.title == (title or "page")


def test_bad_files(write):
    write("docs/b.txt", b"caf\xe9")
    write("docs/c.txt", "x" * (MAX_ROW_CHARACTERS + 1))
    write("docs/d.txt", "good")
    bad: list[BadRowError] = []
    assert list(Corpus("docs", on_bad_row=bad.append)) == [Document("d.txt", "good", "d")]
    assert [error.source for error in bad] == [
        str(Path("docs", name)) for name in ("b.txt", "c.txt")
    ]


def test_an_empty_file_of_a_folder_is_left_out(write):
    write("docs/a.txt", "")
    write("docs/d.txt", "good")
    notices = []
    assert [one.id for one in Corpus("docs", notify=notices.append)] == ["d.txt"]
    assert str(Path("docs", "a.txt")) in notices[1]
    with pytest.raises(CorpusError):
        list(Corpus("docs/a.txt"))


def test_images_inside_a_text_are_left_out(write):
    write("page.md", f"# Cat\n![a cat](data:image/png;base64,{'iVBORw0K' * 1000}==) sleeps")
    (document,) = Corpus("page.md", text_columns=["title", "text"])
    assert (document.title, document.text) == ("Cat", "Cat\n# Cat\n![a cat]() sleeps")


class TestFrontMatter:
    def test_yaml(self, write):
        write(
            "page.md",
            "---\ntitle: 'Notes: one'\ndate: 2021-05-06\ntags: [a, b]\nid: 7\ncode: 0123\n"
            "at: 12:30\ndraft: false\nby:\n---\n\n"
            "# Heading\nText.\n",
        )
        (document,) = Corpus("page.md")
        fields = {"date": "2021-05-06", "tags": ["a", "b"], "front_matter.id": 7}
        fields |= {"code": "0123", "at": "12:30", "draft": False, "by": None}
        assert document == Document("page.md", "# Heading\nText.\n", "Notes: one", fields)

    @pytest.mark.parametrize("length", [65_537, 65_538])
    def test_the_longest(self, write, length):
        matter = f"---\na: {'x' * (length - 12)}\n---\n"
        assert len(matter) == length
        write("page.md", f"{matter}Text.")
        (document,) = Corpus("page.md")
        assert (document.text == "Text.") is (length == 65_537)

    @pytest.mark.parametrize(
        "text",
        [
            "---\nA line above.\n---\nText.",
            "---\n\n# Heading\n",
            "---\n- one\n- two\n---\nText.",
            "Text.\n---\na: b\n---\n",
            "+++\nText.",
        ],
    )
    def test_text_that_is_not_front_matter(self, write, text):
        write("page.md", text)
        (document,) = Corpus("page.md")
        assert (document.text, document.metadata) == (text, {})

    @pytest.mark.parametrize(
        "text",
        [
            "---\na: *x\n---\nx",
            "---\na: [\n---\nx",
        ],
    )
    def test_invalid_front_matter_is_read_as_text(self, write, text):
        write("notes/page.md", text)
        notices = []
        (document,) = Corpus("notes", notify=notices.append)
        assert (document.text, document.metadata) == (text, {})
        assert notices[1].startswith(f"{Path('notes/page.md')}: its front matter is not ")


def test_lines_are_documents(tmp_path):
    (tmp_path / "sentences.txt").write_text("A cat, a dog.\n\n  It rains.\r\n", "utf-8")
    found = list(Corpus(tmp_path / "sentences.txt", lines=True))
    assert [document.text for document in found] == ["A cat, a dog.", "It rains."]
    assert [document.source for document in found] == [
        f"{tmp_path}/sentences.txt:1",
        f"{tmp_path}/sentences.txt:3",
    ]
    assert {document.id for document in found} == {None}
    with pytest.raises(CorpusError):
        list(Corpus(tmp_path, lines=True))
