"""How a document's parts become its text."""

from __future__ import annotations

import pytest

from semsearch.corpus.texts import joined_text, marks, one_line, sentences_text, split_sentences


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        (["Tea", "It is brewed."], "Tea\nIt is brewed."),
        (["", " ", "It is brewed. "], "It is brewed. "),
        (["Green tea", "Green\n tea is brewed."], "Green\n tea is brewed."),
        (["Green tea.", "Green tea. It is brewed."], "Green tea. It is brewed."),
        (["Tea", "Tea, brewed"], "Tea, brewed"),
        (["Tea", "Teapots are hot."], "Tea\nTeapots are hot."),
        (["Green tea", "Green"], "Green tea\nGreen"),
        (["A", "A B", "A B C"], "A B C"),
        ([], ""),
    ],
)
def test_joined(parts, text):
    assert joined_text(parts) == text


def test_one_line():
    text = "".join(chr(code) for code in range(0x11000) if chr(code).isspace())
    assert one_line(f"{text}a{text}b  c{text}") == "a b c" == " ".join(f"a{text}b  c".split())


def test_marks():
    """Accents, vowel signs and the voicing marks of kana, but no enclosing marks or letters."""
    assert {"\u0300", "\u0903", "\u20f0", "\u3099", "\u309a", "\uabed"} <= set(marks())
    assert not {"a", "\u0488", "\u3042"} & set(marks())


def test_only_strings_are_sentences():
    assert sentences_text(["One.", "Two."]) == "One. Two."
    assert sentences_text(["One.", 2]) is None


def test_any_white_space_in_sentences():
    """The segmenter panics at a capital letter before white space of several bytes and a stop."""
    for space in (chr(code) for code in range(0x3001) if chr(code).isspace()):
        text = f"A vaccine against hepatitis B{space}. It is given at birth.{space}Twice. Here."
        assert "".join(split_sentences(text)) == text
        assert split_sentences(text)[-1] == "Here."
