"""Guessing the encoding of a text that was read in the wrong one."""

from __future__ import annotations

import pytest

from semsearch.corpus.encodings import likely_encoding

#: The usual legacy encoding of a language, and a sentence in it.
SENTENCES = [
    ("windows-1252", "Café"),
    ("windows-1252", "Le café est situé près de la forêt"),
    ("windows-1252", "Die Straße führt über die Brücke nach München."),
    ("windows-1252", "El niño comió en la mañana. ¿Qué pasó ayer?"),
    ("windows-1252", "He said “it’s fine” – and left the house…"),
    ("windows-1250", "Zażółć gęślą jaźń"),
    ("windows-1250", "Příliš žluťoučký kůň úpěl ďábelské ódy."),
    ("windows-1251", "Быстрая коричневая лиса прыгает через ленивую собаку."),
    ("koi8-r", "Быстрая коричневая лиса прыгает через ленивую собаку."),
    ("windows-1253", "Η γρήγορη καφέ αλεπού πηδάει πάνω από το σκυλί."),
    ("windows-1256", "الثعلب البني السريع يقفز فوق الكلب الكسول"),
    ("shift_jis", "吾輩は猫である。名前はまだ無い。"),
    ("euc_jp", "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。"),
    ("gb18030", "敏捷的棕色狐狸跳过了懒狗。今天的天气非常好。"),
    ("euc_kr", "빠른 갈색 여우가 게으른 개를 뛰어넘습니다."),
]


def read_as(text, written_in, encoding="utf-8"):
    return text.encode(written_in).decode(encoding, "surrogateescape")


@pytest.mark.parametrize(("encoding", "text"), SENTENCES)
def test_the_likely_encoding_reads_the_text(encoding, text):
    likely = likely_encoding(read_as(f"id,text\n1,{text}\n", encoding))
    assert text in f"id,text\n1,{text}\n".encode(encoding).decode(likely)
    assert likely == encoding


@pytest.mark.parametrize("text", ["", "plain", "Zürich"])
def test_correctly_decoded_text_has_no_likely_encoding(text):
    assert likely_encoding(text) is None


def test_damaged_utf_8_is_not_taken_for_another_encoding():
    damaged = "Zürich, Genève, Rhône".encode() + b"\xc3"
    assert likely_encoding(damaged.decode("utf-8", "surrogateescape")) is None
