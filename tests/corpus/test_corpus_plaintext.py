"""Text and Markdown files."""

from __future__ import annotations

from pathlib import Path

import pytest

from semsearch.corpus import Corpus
from semsearch.corpus.plaintext import text_lines
from semsearch.corpus.table import MAX_ROW_CHARACTERS
from semsearch.errors import CorpusError
from semsearch.records import Document
from tests.corpus.conftest import read


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


def test_files_of_a_folder_that_are_bad_or_empty(write):
    write("docs/a.txt", "")
    write("docs/b.txt", b"caf\xe9")
    write("docs/c.txt", "x" * (MAX_ROW_CHARACTERS + 1))
    write("docs/d.txt", "good")
    documents, bad, notices = read("docs")
    assert documents == [Document("d.txt", "good", "d")]
    assert [error.source for error in bad] == [str(Path("docs", one)) for one in ("b.txt", "c.txt")]
    assert str(Path("docs", "a.txt")) in notices[1]
    with pytest.raises(CorpusError):
        list(Corpus("docs/a.txt"))


def test_images_inside_a_text_are_left_out(write):
    write("page.md", f"# Cat\n![a cat](data:image/png;base64,{'iVBORw0K' * 1000}==) sleeps")
    (document,) = Corpus("page.md", text_columns=["title", "text"])
    assert (document.title, document.text) == ("Cat", "Cat\n# Cat\n![a cat]() sleeps")


class TestFrontMatter:
    def test_yaml(self, write):
        matter = "title: 'Notes: one'\ndate: 2021-05-06\ntags: [a, b]\nid: 7\ncode: 0123\n"
        matter += "at: 12:30\ndraft: false\nby:\n"
        write("page.md", f"---\n{matter}---\n\n# Heading\nText.\n")
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

    @pytest.mark.parametrize("matter", ["a: *x", "a: ["])
    def test_invalid_front_matter_is_left_out(self, write, matter):
        text = f"---\n{matter}\n---\nx"
        write("notes/page.md", text)
        [document], _, notices = read("notes")
        assert (document.text, document.metadata) == ("x", {})
        assert notices[1].startswith(f"{Path('notes/page.md')}: left out: its front matter")


def test_lines_are_documents(write):
    write("sentences.txt", "A cat, a dog.\n\n  It rains.\r\n")
    found = list(Corpus("sentences.txt", lines=True))
    assert found == [Document(None, "A cat, a dog."), Document(None, "It rains.")]
    assert [document.source for document in found] == ["sentences.txt:1", "sentences.txt:3"]
    with pytest.raises(CorpusError):
        list(Corpus(".", lines=True))


def test_lines_of_queries(write, stdin):
    """From a file, or from standard input as they come."""
    path = Path(write("queries.txt", "\ufeffone\r\n\ntwo", packed=True))
    assert list(text_lines(path, longest=4)) == [(1, "one\n"), (2, "\n"), (3, "two")]
    stdin(b"one\ntwo")
    assert list(text_lines(None)) == [(1, "one\n"), (2, "two")]
    for content in ("ab\nabc\n", "éé\n".encode() + b"\xe9\n"):
        with pytest.raises(CorpusError, match=r"^queries\.txt:2"):
            list(text_lines(Path(write("queries.txt", content)), longest=3))
