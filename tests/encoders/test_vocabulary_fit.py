"""Whether the vocabulary of an encoder suits texts."""

from __future__ import annotations

import csv
from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace

import pytest
from tokenizers import ByteLevelBPETokenizer, Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

import semsearch
from semsearch.encoders import vocabulary_fit
from semsearch.encoders.vocabulary_fit import MIN_LETTERS_PER_PIECE, poor_fit

#: By hand: the cat sleeps on the carpet beside the open window.
OTHER_LANGUAGES = {
    "german": "Die Katze schläft auf dem Teppich neben dem offenen Fenster.",
    "french": "Le chat dort sur le tapis près de la fenêtre ouverte.",
    "russian": "Кот спит на ковре у открытого окна.",
    "chinese": "猫睡在敞开的窗户旁边的地毯上。",
    "arabic": "القط نائم على السجادة قرب النافذة المفتوحة.",
}


def sample(name):
    text = (files("semsearch.corpus") / "sample" / name).read_text("utf-8")
    return [row["text"] for row in csv.DictReader(text.splitlines())]


NOTES = sample("notes.csv")
CODE = Path(semsearch.__file__).parent.rglob("*.py")


@pytest.mark.parametrize("language", OTHER_LANGUAGES)
def test_other_languages(language):
    assert poor_fit("minilm", [OTHER_LANGUAGES[language]] * 3) < MIN_LETTERS_PER_PIECE


@pytest.mark.parametrize(
    "texts",
    [
        NOTES,
        [file.read_text("utf-8") for file in CODE],
        [f"{number:064x}" for number in range(10**70, 10**70 + 64)],  # hashes
        ["Ngugi wa Thiong'o", "Wisława Szymborska", "Orhan Pamuk, Olga Tokarczuk"],
        ["Wisława Szymborska was born in Kórnik and lived in Kraków."] * 9,
        ["", " ", "."],
    ],
)
def test_english_of_all_kinds_suits(texts):
    assert poor_fit("minilm", texts) is None


def test_letters_per_piece():
    """By hand: die, sc, ##hone, kat, ##ze, sc, ##hl, ##af, ##t; names and numbers do not count."""
    text = "die schöne katze schläft, Kunigunde (2024)!"
    assert poor_fit("minilm", [text]) == (3 + 6 + 5 + 7) / 9
    assert poor_fit("minilm", ["schöne katze schläft"]) is None  # 18 letters are too few
    assert poor_fit("minilm", ["schöne katze schläft ab"]) is not None  # 20


def test_only_the_beginnings_of_the_first_texts_count():
    foreign = sample("notes-pt.csv")
    assert poor_fit("minilm", foreign) == pytest.approx(2.4, abs=0.05)
    assert poor_fit("minilm", NOTES[:64] + foreign * 9) is None
    assert poor_fit("minilm", [NOTES[0].ljust(400) + " ".join(foreign)]) is None


@pytest.fixture
def use(monkeypatch, tmp_path):
    """Makes a tokenizer that of the model `some`."""
    found = SimpleNamespace(path=tmp_path)
    monkeypatch.setattr(vocabulary_fit, "find_model", lambda *_, **__: found)
    return lambda tokenizer: tokenizer.save(str(tmp_path / "tokenizer.json"))


def test_byte_level_tokenizers(use):
    tokenizer = ByteLevelBPETokenizer()
    tokenizer.train_from_iterator(NOTES, 8000, show_progress=False)
    use(tokenizer)
    for language in ("chinese", "german"):
        assert poor_fit("some", [OTHER_LANGUAGES[language]] * 3)
    assert poor_fit("some", NOTES) is None


@pytest.mark.parametrize(
    ("unknown", "size", "fit"),
    [("[UNK]", 99_999, 1), ("<unk>", 99_999, 1), ("[UNK]", 100_000, None)],
)
def test_vocabularies_shared_by_languages_are_not_judged(use, unknown, size, fit):
    words = [unknown, *(f"w{number}" for number in range(1, size))]
    tokenizer = Tokenizer(WordLevel({word: n for n, word in enumerate(words)}, unknown))
    tokenizer.pre_tokenizer = Whitespace()
    use(tokenizer)
    assert poor_fit("some", ["all of these words are unknown"]) == fit


def test_encoders_without_word_pieces():
    for spec in ("hashing:64", "glove:x.txt", "./no-model", "no/such"):
        assert poor_fit(spec, [OTHER_LANGUAGES["german"]] * 3) is None
