"""Files in an unexpected encoding: errors name the byte."""

from __future__ import annotations

import json

import pytest

from semsearch.corpus import Corpus
from semsearch.errors import BadRowError, CorpusError

FRENCH = "Le café est situé près de la forêt"
CSV = f"id,text\n1,plain\n2,{FRENCH}\n"
ROWS = [{"id": "1", "text": "plain"}, {"id": "2", "text": FRENCH}]
JSONL = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in ROWS)
JSON = json.dumps(ROWS, ensure_ascii=False)


@pytest.mark.parametrize(
    ("name", "content"), [("c.csv", CSV), ("c.jsonl", JSONL), ("c.json", JSON)]
)
def test_a_file_in_another_encoding_is_one_bad_row(write, name, content):
    write(name, content.encode("windows-1252"), packed=name == "c.csv")
    write("good.txt", "Good.")
    bad = []
    [document] = Corpus([name, "good.txt"], on_bad_row=bad.append)
    assert document.id == "good.txt"
    [error] = bad
    assert isinstance(error, BadRowError)
    assert str(error).startswith(f"{name}: its text holds byte 0xe9, which is not UTF-8; ")
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


def test_a_declared_encoding_can_be_wrong(write):
    write("c.csv", CSV)
    for encoding in ("ascii", "utf-16"):
        with pytest.raises(CorpusError, match=r"^c\.csv"):
            list(Corpus("c.csv", encoding=encoding))


def test_one_damaged_byte_is_not_another_encoding(write):
    write("c.csv", "id,text\n1,Zürich Genève Rhône ".encode() + b"\xc3\n")
    with pytest.raises(BadRowError, match=r"^c\.csv:2"):
        list(Corpus("c.csv"))
