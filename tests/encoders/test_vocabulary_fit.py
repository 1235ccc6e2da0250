"""Whether the vocabulary of an encoder suits texts."""

from __future__ import annotations

import csv
import json
from importlib.resources import files
from pathlib import Path

import numpy
import pytest
from tokenizers import ByteLevelBPETokenizer

import semsearch
from semsearch.encoders.sample import sample_texts
from semsearch.encoders.vocabulary_fit import SAMPLE_TEXTS, tokenizer_of, vocabulary_fit

#: By hand: the cat sleeps on the carpet beside the open window; the city celebrated the opening of
#: its new library.
OTHER_LANGUAGES = {
    "german": [
        "Die Katze schläft auf dem Teppich neben dem offenen Fenster.",
        "Die Stadt feierte gestern die Eröffnung der neuen Bücherei.",
    ],
    "french": [
        "Le chat dort sur le tapis près de la fenêtre ouverte.",
        "La ville a célébré hier l'inauguration de la nouvelle bibliothèque.",
    ],
    "polish": [
        "Kot śpi na dywanie obok otwartego okna.",
        "Miasto świętowało wczoraj otwarcie nowej biblioteki.",
    ],
    "russian": [
        "Кот спит на ковре у открытого окна.",
        "Вчера в городе открылась новая библиотека.",
    ],
    "chinese": ["猫睡在敞开的窗户旁边的地毯上。", "昨天这座城市庆祝了新图书馆的落成。"],
    "japanese": [
        "猫は開いた窓のそばの絨毯で眠っています。",
        "昨日、市は新しい図書館の開館を祝いました。",
    ],
    "thai": ["แมวนอนอยู่บนพรมข้างหน้าต่างที่เปิดอยู่", "เมื่อวานนี้เมืองได้ฉลองการเปิดห้องสมุดแห่งใหม่"],
    "arabic": [
        "القط نائم على السجادة قرب النافذة المفتوحة.",
        "احتفلت المدينة أمس بافتتاح المكتبة العامة الجديدة.",
    ],
    "hindi": [
        "बिल्ली खुली खिड़की के पास कालीन पर सो रही है।",
        "शहर ने कल नए पुस्तकालय के उद्घाटन का जश्न मनाया।",
    ],
}


def sample(name):
    text = (files("semsearch.corpus") / "sample" / name).read_text("utf-8")
    return [row["text"] for row in csv.DictReader(text.splitlines())]


@pytest.fixture(scope="module")
def english():
    """MiniLM's tokenizer, which is that of bert-base-uncased."""
    return tokenizer_of("minilm")


@pytest.mark.parametrize("language", OTHER_LANGUAGES)
def test_other_languages(english, language):
    assert vocabulary_fit(english, OTHER_LANGUAGES[language])[:2] == (2, 2)


def test_portuguese(english):
    fit = vocabulary_fit(english, sample("notes-pt.csv"))
    assert fit[:2] == (SAMPLE_TEXTS, SAMPLE_TEXTS)
    assert fit.is_poor
    assert 1.7 < fit.pieces_per_word < 2  # 1.82 in the Portuguese of STS Benchmark


def test_a_part_of_the_texts_is_enough(english):
    foreign, own = sample("notes-pt.csv"), sample_texts()
    assert vocabulary_fit(english, foreign[:20] + own[:40]).is_poor
    assert not vocabulary_fit(english, foreign[:10] + own[:50]).is_poor


def english_of_all_kinds():
    package = Path(semsearch.__file__).parent
    rows = (package / "corpus" / "sample" / "notes.csv").read_text("utf-8").splitlines()
    yield "notes", sample_texts()
    yield "rows", rows
    yield "code", [file.read_text("utf-8") for file in sorted(package.rglob("*.py"))]
    yield "json", [json.dumps(dict(enumerate(row.split(",")))) for row in rows]
    yield "hashes", [f"{number:064x}" for number in range(10**70, 10**70 + 64)]
    yield "numbers", [f"{n / 7:.3f};{n * 31};AB-{n:05}" for n in range(64)]
    yield "names", ["Ngugi wa Thiong'o", "Wisława Szymborska", "Orhan Pamuk, Olga Tokarczuk"]
    yield "names in English", ["Wisława Szymborska was born in Kórnik and lived in Kraków."] * 9
    yield "emoji", ["so good 😀😀😀 would buy it again 🎉🎉", "😀😀😀😀😀😀😀😀😀😀😀😀"]
    yield "quoted", ["The sign over the old temple gate in Kyoto reads 東, or east."] * 9
    yield "nothing", ["", " ", "."]


@pytest.mark.parametrize(("kind", "texts"), [*english_of_all_kinds()])
def test_english_of_all_kinds_suits(english, kind, texts):
    assert not vocabulary_fit(english, texts).is_poor, kind


def test_byte_level_tokenizers():
    tokenizer = ByteLevelBPETokenizer()
    tokenizer.train_from_iterator(sample_texts(), 8000, show_progress=False)
    for language in ("chinese", "german"):
        assert vocabulary_fit(tokenizer, OTHER_LANGUAGES[language]).is_poor, language
    assert not vocabulary_fit(tokenizer, sample_texts()).is_poor


def test_pieces_per_word(english):
    """By hand: die, sc, ##hone, kat, ##ze, sc, ##hl, ##af, ##t; names and numbers do not count."""
    fit = vocabulary_fit(english, ["die schöne katze schläft, Kunigunde (2024)!"])
    assert fit == (1, 1, 9 / 4)
    assert not fit.is_poor  # one text alone
    assert numpy.isnan(vocabulary_fit(english, []).pieces_per_word)


@pytest.mark.parametrize("spec", ["hashing", "hashing:64", "glove:x.txt", "./no-model", "no/such"])
def test_encoders_without_word_pieces(spec):
    assert tokenizer_of(spec) is None
