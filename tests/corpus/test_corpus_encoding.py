"""Files in an unexpected encoding: errors name the byte and the likely encoding."""

from __future__ import annotations

import json

import pytest

from semsearch.corpus import Corpus
from semsearch.corpus.encodings import likely_encoding
from semsearch.errors import BadRowError, CorpusError, UndecodableError

FRENCH = "Le café est situé près de la forêt"
CSV = f"id,text\n1,plain\n2,{FRENCH}\n"
ROWS = [{"id": "1", "text": "plain"}, {"id": "2", "text": FRENCH}]
JSONL = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in ROWS)
JSON = json.dumps(ROWS, ensure_ascii=False)


@pytest.mark.parametrize(
    ("name", "content"), [("c.csv", CSV), ("c.jsonl", JSONL), ("c.json", JSON)]
)
def test_the_likely_encoding_is_named(write, name, content):
    write(name, content.encode("windows-1252"), packed=name == "c.csv")
    write("good.txt", "Good.")
    bad = []
    [document] = Corpus([name, "good.txt"], on_bad_row=bad.append)
    assert document.id == "good.txt"
    [error] = bad
    assert isinstance(error, UndecodableError)
    assert str(error) == (
        f"{name}: its text holds byte 0xe9, which is not UTF-8; "
        "it looks like windows-1252 (--encoding windows-1252)"
    )
    assert [one.text for one in Corpus(name, encoding="windows-1252")] == ["plain", FRENCH]


def test_bytes_of_another_encoding_far_below_are_bad_rows(write):
    rows = "".join(f"{number},plain\n" for number in range(10_000))
    write("c.csv", f"id,text\n{rows}x,{FRENCH}\n".encode("windows-1252"))
    bad = []
    assert len(list(Corpus("c.csv", on_bad_row=bad.append))) == 10_000
    assert [(error.source, error.document_id) for error in bad] == [("c.csv:10002", "x")]


def test_a_character_at_the_end_of_what_is_looked_at(write):
    for size in (1 << 16, (1 << 16) + 1):
        write("c.csv", f"text,n\n{'x' * (size - 8)}é,1\n")
        assert len(list(Corpus("c.csv"))) == 1


def test_files_of_a_folder_have_separate_encodings(tmp_path):
    (tmp_path / "a.txt").write_bytes(FRENCH.encode("cp1252"))
    (tmp_path / "b.txt").write_bytes("Быстрая коричневая лиса прыгает".encode("koi8-r"))
    (tmp_path / "c.txt").write_text("plain")
    bad = []
    assert len(list(Corpus(tmp_path, on_bad_row=bad.append))) == 1
    assert [error.document_id for error in bad] == ["a.txt", "b.txt"]
    assert [error.reason.rpartition(" ")[2] for error in bad] == ["windows-1252)", "koi8-r)"]


def test_a_declared_encoding_can_be_wrong(write):
    write("c.csv", CSV)
    for encoding in ("ascii", "utf-16"):
        with pytest.raises(CorpusError, match=r"^c\.csv"):
            list(Corpus("c.csv", encoding=encoding))


def test_one_damaged_byte_is_not_another_encoding(write):
    write("c.csv", "id,text\n1,Zürich Genève Rhône ".encode() + b"\xc3\n")
    with pytest.raises(BadRowError, match=r"^c\.csv:2"):
        list(Corpus("c.csv"))


#: The usual legacy encoding of a language, and a sentence in it.
SENTENCES = [
    ("windows-1252", "Café"),
    ("windows-1252", FRENCH),
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


@pytest.mark.parametrize(("encoding", "text"), SENTENCES)
def test_the_likely_encoding_of_a_language(encoding, text):
    read = f"id,text\n1,{text}\n".encode(encoding).decode("utf-8", "surrogateescape")
    assert likely_encoding(read) == encoding


@pytest.mark.parametrize("text", ["", "plain", "Zürich"])
def test_correctly_decoded_text_has_no_likely_encoding(text):
    assert likely_encoding(text) is None
