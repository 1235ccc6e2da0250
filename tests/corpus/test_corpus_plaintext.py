"""Text and Markdown files, single and in folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from semsearch.corpus import Corpus
from semsearch.errors import BadRowError, CorpusError
from semsearch.limits import MAX_ROW_BYTES
from semsearch.records import Document


def test_folder(write):
    write("docs/b.txt", "second\r\nline")
    write("docs/a/z.md", "# A title\n\nfirst")
    write("docs/a.txt", "zeroth", packed=True)
    write("docs/C.MD.gz", "no heading", packed=True)
    for ignored in ("docs/.hidden.txt", "docs/.git/x.txt", "docs/image.png", "docs/data.csv"):
        write(ignored, "x")
    notices: list[str] = []
    corpus = Corpus("docs", notify=notices.append)
    assert list(corpus) == [
        Document("C.MD.gz", "no heading", "C"),
        Document("a/z.md", "# A title\n\nfirst", "A title"),
        Document("a.txt", "zeroth", "a"),
        Document("b.txt", "second\nline", "b"),
    ]
    assert [document.source for document in corpus][1] == str(Path("docs/a/z.md"))
    assert corpus.fraction_read == 1.0
    assert (
        notices
        == [
            "docs: 5 files (2 md, 2 txt, 1 csv); left out: 1 in unsupported formats (image.png)",
            f"left out: {Path('docs/data.csv')} has a header but no rows; if its first row is "
            "data, add --no-header",
        ]
        * 2
    )


def test_single_files(write):
    write("notes/one.md", "Text\n\n## Heading\n")
    write("two.txt.gz", "# no heading", packed=True)
    assert list(Corpus(["notes/one.md", "two.txt.gz"])) == [
        Document("notes/one.md", "Text\n\n## Heading\n", "Heading"),
        Document("two.txt.gz", "# no heading", "two"),
    ]


def test_the_title_can_be_searched_too(write):
    write("docs/a.md", "# Title")
    (document,) = Corpus("docs", text_columns=["title", "text"])
    assert (document.title, document.text) == ("Title", "Title\n# Title")


@pytest.mark.parametrize(
    ("markdown", "title"),
    [
        ("# One\n# Two", "One"),
        ("text\n\n### Deep ###", "Deep"),
        ("#\tTab", "Tab"),
        ("# C#", "C#"),
        ("# C# #", "C#"),
        ("#hashtag\n\n# One", "One"),
        ("#\n# \n# One", "One"),
        ("####### seven\n# One", "One"),
        ("Under\n=====\ntext", "Under"),
        ("\n=====\n", None),
        ("```sh\n# comment\n```\n# One", "One"),
        ("~~~\n```\n# comment\n~~~\n# One", "One"),
        ("no heading", None),
    ],
)
def test_markdown_titles(write, markdown, title):
    write("page.md", markdown)
    (document,) = Corpus("page.md")
    assert document.title == (title or "page")


@pytest.mark.parametrize(
    ("title", "shown", "metadata"),
    [
        ("2024-03-01", "2024-03-01", {}),
        ("1984", "1984", {}),
        ("1.5", "1.5", {}),
        ("12:30", "12:30", {}),
        ("1:02.5", "1:02.5", {}),
        ("01234", "01234", {}),
        ("yes", "One", {"front_matter.title": True}),
        ("[a, b]", "One", {"front_matter.title": ["a", "b"]}),
        ("", "One", {"front_matter.title": None}),
    ],
)
def test_titles_in_front_matter_that_are_not_strings(write, title, shown, metadata):
    write("page.md", f"---\ntitle: {title}\n---\n# One")
    (document,) = Corpus("page.md")
    assert (document.title, document.metadata) == (shown, metadata)


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
    assert bad[0].reason == "empty text"
    assert "byte 0xe9" in bad[1].reason
    assert bad[2].reason == "longer than 64 MiB"


def test_links(write, tmp_path):
    write("docs/a.txt", "one")
    write("elsewhere/b.txt", "two")
    (tmp_path / "docs" / "circle").symlink_to(tmp_path / "docs")
    (tmp_path / "docs" / "folder").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "docs" / "file.txt").symlink_to(tmp_path / "elsewhere" / "b.txt")
    (tmp_path / "linked").symlink_to(tmp_path / "docs")
    assert [document.id for document in Corpus("linked")] == ["a.txt", "file.txt"]
    (tmp_path / "docs" / "gone.txt").symlink_to(tmp_path / "nowhere")
    with pytest.raises(CorpusError) as error:
        list(Corpus("docs"))
    assert str(error.value) == f"no such file: {Path('docs/gone.txt')}"


@pytest.mark.parametrize(
    ("content", "message"), [("", "page.txt is empty"), (" \n", "page.txt: empty text")]
)
def test_single_file_without_text(write, content, message):
    write("page.txt", content)
    with pytest.raises(CorpusError) as error:
        list(Corpus("page.txt"))
    assert str(error.value) == message


def test_folders_that_cannot_be_read(write):
    write("docs/data.xyz", "id,text\n1,one\n")
    with pytest.raises(
        CorpusError, match=r"^docs has no documents to read: 0 files; left out: 1 in unsupported"
    ):
        list(Corpus("docs"))
    with pytest.raises(
        CorpusError, match=r"^docs has no tables; documents only have the columns id,"
    ):
        list(Corpus(str(Path(write("docs/a.txt", "x")).parent), text_columns="body"))


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

    def test_only_in_markdown(self, write):
        write("page.txt", "---\na: b\n---\nText.")
        assert next(iter(Corpus("page.txt"))).metadata == {}

    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ("---\ntitle: a: b\n---\nx", "is not YAML: mapping values are not allowed here"),
            ("---\ndate: 2021-02-30\n---\nx", "is not YAML: day is out of range for month"),
            ("---\na: &x [1, 2]\nb: *x\n---\nx", "is not YAML: it has aliases"),
            ("---\na: !!python/object:os.system x\n---\nx", "is not YAML: could not determine a"),
            ("---\na: " + "[" * 5000 + "\n---\nx", "is not YAML: "),
            ("+++\na = \n+++\nx", "is not TOML: Invalid value"),
            (f"+++\na = {'9' * 5000}\n+++\nx", "is not TOML: Exceeds the limit"),
        ],
    )
    def test_invalid_front_matter_is_a_bad_row(self, write, text, reason):
        write("notes/page.md", text)
        write("notes/good.md", "Good.")
        bad: list[BadRowError] = []
        assert [one.id for one in Corpus("notes", on_bad_row=bad.append)] == ["good.md"]
        (error,) = bad
        assert error.source == str(Path("notes/page.md"))
        assert error.reason.startswith(f"its front matter {reason}")
        assert error.document_id == "page.md"
