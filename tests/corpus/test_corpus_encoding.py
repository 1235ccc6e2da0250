"""Files in an unexpected encoding: errors name the byte and the likely encoding."""

from __future__ import annotations

import gzip
import json

import pytest

from semsearch.corpus import Corpus
from semsearch.errors import BadRowError, CorpusError, UndecodableError

FRENCH = "Le café est situé près de la forêt"
CSV = f"id,text\n1,plain\n2,{FRENCH}\n"
JSONL = "".join(
    json.dumps({"id": str(number), "text": text}, ensure_ascii=False) + "\n"
    for number, text in enumerate(["plain", FRENCH], 1)
)
JSON = json.dumps([{"id": "1", "text": "plain"}, {"id": "2", "text": FRENCH}], ensure_ascii=False)
LOOKS = "the file looks like windows-1252: --encoding windows-1252"


@pytest.mark.parametrize(
    ("name", "content", "place"),
    [
        ("c.csv", CSV, "c.csv:3"),
        ("c.jsonl", JSONL, "c.jsonl:2"),
        ("c.json", JSON, "c.json, item 2"),
    ],
)
def test_the_likely_encoding_is_named(tmp_path, monkeypatch, name, content, place):
    monkeypatch.chdir(tmp_path)
    data = content.encode("windows-1252")
    (tmp_path / name).write_bytes(gzip.compress(data) if name == "c.csv" else data)
    bad = []
    [document] = Corpus(name, on_bad_row=bad.append)
    assert document.text == "plain"
    [error] = bad
    assert isinstance(error, UndecodableError)
    assert error.document_id == "2"
    assert str(error) == f"{place}: text holds byte 0xe9, which is not UTF-8; {LOOKS}"
    assert [one.text for one in Corpus(name, encoding="windows-1252")] == ["plain", FRENCH]


def test_files_of_a_folder_have_separate_encodings(tmp_path):
    (tmp_path / "a.txt").write_bytes(FRENCH.encode("cp1252"))
    (tmp_path / "b.txt").write_bytes("Быстрая коричневая лиса прыгает".encode("koi8-r"))
    (tmp_path / "c.txt").write_text("plain")
    bad = []
    assert len(list(Corpus(tmp_path, on_bad_row=bad.append))) == 1
    assert [error.reason for error in bad] == [
        f"text holds byte 0xe9, which is not UTF-8; {LOOKS}",
        "text holds byte 0xe2, which is not UTF-8; the file looks like koi8-r: --encoding koi8-r",
    ]


def test_a_declared_encoding_can_be_wrong(tmp_path):
    (tmp_path / "c.csv").write_text(CSV, "utf-8")
    with pytest.raises(BadRowError):
        list(Corpus(tmp_path / "c.csv", encoding="ascii"))
    with pytest.raises(CorpusError):
        list(Corpus(tmp_path / "c.csv", encoding="utf-16"))


def test_one_damaged_byte_is_not_another_encoding(tmp_path):
    (tmp_path / "c.csv").write_bytes("id,text\n1,Zürich Genève Rhône ".encode() + b"\xc3\n")
    with pytest.raises(BadRowError):
        list(Corpus(tmp_path / "c.csv"))
