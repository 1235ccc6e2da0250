"""Unsupported and misnamed files: errors say what the file looks like and what to do."""

from __future__ import annotations

import io
import json
import random
import zipfile

import pytest

from semsearch.corpus import Corpus
from semsearch.errors import CorpusError

PDF = b"%PDF-1.4\n1 0 obj <</Type /Catalog>> endobj\n%%EOF\n"
HTML = b"<!DOCTYPE html>\n<html><head><title>News, today</title></head></html>\n"


def zipped(*names):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name in names:
            archive.writestr(name, "x")
    return file.getvalue()


FOREIGN = {
    "pdf": PDF,
    "html": HTML,
    "zip": zipped("a.csv"),
    "xlsx": zipped("[Content_Types].xml", "xl/workbook.xml"),
    "sqlite": b"SQLite format 3\0" + bytes(84),
    "png": b"\x89PNG\r\n\x1a\n" + bytes(8),
    "bytes": random.Random(7).randbytes(5000),
    "utf-16": "id,text\n1,A text.\n".encode("utf-16-le"),
}


def refused(name, **options):
    with pytest.raises(CorpusError, match=f"^{name}"):
        list(Corpus(name, **options))


@pytest.mark.parametrize("kind", FOREIGN)
def test_no_table_is_made_of_other_files(write, kind):
    write("corpus.csv", FOREIGN[kind])
    refused("corpus.csv")


def test_binary_data_is_rejected_despite_an_explicit_format(write):
    write("corpus.csv", PDF)
    refused("corpus.csv", header=False)


def test_plain_text_is_not_a_table(write):
    write("notes", "It was a dark night, and long.\nRain fell.\nIt fell, and fell, and fell.\n")
    refused("notes")
    assert len(list(Corpus(write("notes.tsv", "One.\nTwo.\n"), header=False))) == 2


@pytest.mark.parametrize(("name", "indent"), [("rows.jsonl", 2), ("rows.csv", None)])
def test_misnamed_arrays(write, name, indent):
    write(name, json.dumps([{"text": "One."}, {"text": "Two."}], indent=indent))
    refused(name)


@pytest.mark.parametrize(
    "content",
    [
        '{"text": "One.", "links": [{"url": "x"}]}\n',
        '{"text": "One.", "long": "' + "x" * 100_000 + '"}\n{"text": "Two."}\n',
    ],
)
def test_misnamed_json_lines(write, content):
    assert next(iter(Corpus(write("rows.json", content)))).text == "One."
