"""Text and Markdown files, single and in folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from semsearch.corpus import Corpus
from semsearch.errors import BadRowError
from semsearch.limits import MAX_ROW_BYTES
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


def test_single_files(write):
    write("notes/one.md", "Text\n\n## Heading\n")
    write("two.txt.gz", "# no heading", packed=True)
    assert list(Corpus(["notes/one.md", "two.txt.gz"])) == [
        Document("notes/one.md", "Text\n\n## Heading\n", "Heading"),
        Document("two.txt.gz", "# no heading", "two"),
    ]


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
    ],
)
def test_markdown_titles(write, markdown, title):
    write("page.md", markdown)
    (document,) = Corpus("page.md")
    assert document.title == (title or "page")


def test_the_title_can_be_searched_too(write):
    write("docs/a.md", "# Title")
    (document,) = Corpus("docs", text_columns=["title", "text"])
    assert (document.title, document.text) == ("Title", "Title\n# Title")


def test_bad_files(write):
    write("docs/a.txt", "")
    write("docs/b.txt", b"caf\xe9")
    write("docs/c.txt", "x" * (MAX_ROW_BYTES + 1))
    write("docs/d.txt", "good")
    bad: list[BadRowError] = []
    assert list(Corpus("docs", on_bad_row=bad.append)) == [Document("d.txt", "good", "d")]
    assert [error.source for error in bad] == [
        str(Path("docs", name)) for name in ("a.txt", "b.txt", "c.txt")
    ]


class TestFrontMatter:
    def test_yaml(self, write):
        write(
            "page.md",
            "---\ntitle: 'Notes: one'\ndate: 2021-05-06\ntags: [a, b]\nid: 7\n---\n\n"
            "# Heading\nText.\n",
        )
        (document,) = Corpus("page.md")
        fields = {"date": "2021-05-06", "tags": ["a", "b"], "front_matter.id": 7}
        assert document == Document("page.md", "# Heading\nText.\n", "Notes: one", fields)

    def test_toml(self, write):
        write("page.md", '+++\ndraft = true\n[author]\nname = "A"\n+++\n# Heading\n')
        (document,) = Corpus("page.md")
        fields = {"draft": True, "author": {"name": "A"}}
        assert document == Document("page.md", "# Heading\n", "Heading", fields)

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
            "---\ndate: 2021-02-30\n---\nx",
            "---\na: &x [1, 2]\nb: *x\n---\nx",
            "---\na: !!python/object:os.system x\n---\nx",
            "+++\na = \n+++\nx",
        ],
    )
    def test_invalid_front_matter_is_a_bad_row(self, write, text):
        write("notes/page.md", text)
        write("notes/good.md", "Good.")
        bad: list[BadRowError] = []
        assert [one.id for one in Corpus("notes", on_bad_row=bad.append)] == ["good.md"]
        (error,) = bad
        assert error.source == str(Path("notes/page.md"))
        assert error.document_id == "page.md"
