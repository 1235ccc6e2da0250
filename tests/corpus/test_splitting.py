"""Splitting long texts into passages; how a document's parts become its text."""

from __future__ import annotations

import random
import re

import numpy
import pytest
from hypothesis import assume, given
from hypothesis import strategies as some

from semsearch.corpus.splitting import fitting_spans, passage_spans
from semsearch.corpus.texts import joined_text, marks, one_line, split_sentences


def word_spans(text):
    spans = [match.span() for match in re.finditer(r"\w+|[^\w\s]", text)]
    return numpy.array(spans, numpy.int64).reshape(-1, 2)


def cut(text, max_tokens):
    return [text[start:end] for start, end in passage_spans(text, word_spans(text), max_tokens)]


def prose(sentences, seed=0):
    random.seed(seed)
    words = ["time", "river", "stone", "window", "letter", "garden", "winter", "signal", "market"]
    return [
        " ".join(random.choices(words, k=random.randint(3, 12))).capitalize() + "."
        for _ in range(sentences)
    ]


#: Written by hand; their sentence ends are unambiguous.
LANGUAGES = {
    "english": ["Dr. Gray left at 5 p.m. on Monday. ", "It was late! ", "Who saw her? "],
    "german": ["Die Stadt liegt z. B. am Fluss. ", "Das Wasser steigt! ", "Wer hilft? "],
    "spanish": ["El Sr. Ruiz espera. ", "¡Vámonos ya! ", "¿Qué hora es? "],
    "russian": ["Он жил на ул. Мира до 1990 г. один. ", "Жаль! ", "Куда он уехал? "],
    "chinese": ["今天天气很好，我们去公园。", "孩子们在喂鸭子！", "公园几点关门？"],
    "arabic": ["الطقس جميل اليوم. ", "يطعم الأطفال البط! ", "متى تغلق الحديقة؟ "],
    "hindi": ["आज मौसम अच्छा है। ", "बच्चे खेल रहे हैं! ", "बाग़ कब बंद होगा? "],
    "urdu": ["آج موسم اچھا ہے۔ ", "بچے کھیل رہے ہیں! ", "باغ کب بند ہو گا؟ "],
}


def letter_spans(text):
    """One token per character except white space, as most models tokenise Chinese."""
    return numpy.array([m.span() for m in re.finditer(r"\S", text)], numpy.int64).reshape(-1, 2)


@pytest.mark.parametrize("language", LANGUAGES)
def test_sentence_ends_by_language(language):
    sentences = LANGUAGES[language]
    text = "".join(sentences) * 12
    longest = max(map(len, sentences))
    ends = {sentence.strip()[-4:] for sentence in sentences}
    starts = {sentence[:4] for sentence in sentences}
    spans = passage_spans(text, letter_spans(text), 2 * longest)
    assert len(spans) >= 12
    for start, end in spans:
        assert text[start:end][-4:] in ends
        assert text[start:end][:4] in starts


def test_a_long_sentence_without_spaces_is_cut_at_its_clauses():
    clauses = ["今天的天气很好，", "我们去公园散步，", "孩子们在湖边喂鸭子；", "大人坐在树下喝茶、"]
    text = "".join(clauses * 10)
    passages = [text[i:j] for i, j in passage_spans(text, letter_spans(text), 40)]
    assert len(passages) > 5
    assert all(passage[-1] in "，；、" for passage in passages)


def test_paragraph_ends_are_preferred():
    paragraphs = [" ".join(prose(4, seed)) for seed in range(30)]
    passages = cut("\n\n".join(paragraphs), 80)
    assert all(passage.rpartition("\n")[2] in "".join(paragraphs) for passage in passages)
    ends = {paragraph[-30:] for paragraph in paragraphs}
    assert sum(passage[-30:] in ends for passage in passages) > 0.9 * len(passages)


@given(some.text(some.sampled_from("ab .!?\n。…é"), max_size=400), some.integers(1, 12))
def test_passages_cover_the_text_within_the_limit(text, max_tokens):
    assume(text.strip())
    spans = passage_spans(text, word_spans(text), max_tokens)
    covered = "".join(text[start:end] for start, end in spans)
    assert re.sub(r"\s", "", covered) == re.sub(r"\s", "", text)
    previous = 0
    for start, end in spans:
        assert previous <= start <= end
        assert len(word_spans(text[start:end])) <= max_tokens
        previous = end


@pytest.mark.parametrize("place", [0, 150, 299])
def test_an_edit_leaves_distant_passages_unchanged(place):
    sentences = prose(300)
    before = set(cut(" ".join(sentences), 40))
    sentences.insert(place, "Something else altogether is said at this place.")
    after = set(cut(" ".join(sentences), 40))
    assert len(after - before) <= 5
    assert len(after) > 50


@pytest.fixture(scope="module")
def byte_pairs():
    """Token spans of a byte-level BPE whose vocabulary has words with a leading space only."""
    from tokenizers import ByteLevelBPETokenizer

    tokenizer = ByteLevelBPETokenizer()
    tokenizer.train_from_iterator([" Zebra Yak Xerus Wombat" * 9], show_progress=False)

    def token_spans(text):
        return numpy.array(tokenizer.encode(text).offsets, numpy.int64).reshape(-1, 2)

    assert len(token_spans(" Zebra")) < len(token_spans("Zebra"))
    return token_spans


@given(
    words=some.lists(some.sampled_from(["Zebra", "Yak", "Xerus", "Wombat."]), max_size=60),
    max_tokens=some.integers(8, 20),
)
def test_passages_fit_when_tokenised_alone(byte_pairs, words, max_tokens):
    text = " ".join(words)
    spans = fitting_spans(text, byte_pairs, max_tokens)
    whole = "".join(text[start:end] for start, end in spans)
    assert whole.replace(" ", "") == text.replace(" ", "")
    assert all(len(byte_pairs(text[start:end])) <= max_tokens for start, end in spans)


def test_words_and_white_space_with_more_tokens_than_the_limit(byte_pairs):
    assert len(fitting_spans(" " * 50, byte_pairs, 3)) <= 1
    text = "Zebra Yak Xerus"
    assert "".join(text[i:j] for i, j in fitting_spans(text, byte_pairs, 1)) == "ZebraYakXerus"


def test_limits_of_passages():
    """A text of as many tokens as the limit stays whole; passages have at least half as many.

    A sentence that is too long is cut between words.
    """
    words = " ".join(f"word{number}" for number in range(100))
    passages = cut(words, 16)
    assert " ".join(passages) == words
    assert max(len(passage.split()) for passage in passages) <= 16
    assert cut("  One. Two. ", 10) == ["One. Two."]
    assert cut("a b c d.", 5) == ["a b c d."]
    assert cut("a b c d.", 4) == ["a b c", "d."]
    sizes = [len(word_spans(passage)) for passage in cut(" ".join(prose(200)), 40)[:-1]]
    assert 20 <= min(sizes) < 30 < max(sizes) <= 40


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


def test_any_white_space_in_sentences():
    """The segmenter panics at a capital letter before white space of several bytes and a stop."""
    for space in (chr(code) for code in range(0x3001) if chr(code).isspace()):
        text = f"A vaccine against hepatitis B{space}. It is given at birth.{space}Twice. Here."
        assert "".join(split_sentences(text)) == text
        assert split_sentences(text)[-1] == "Here."
