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
HTML = """<!DOCTYPE html>
<html><head><title>News, today</title></head>
<body><p>Oil prices climb, again.</p></body></html>
"""
SMART = ".I 1\n.W\nthe flow, it seems, is steady .\n.I 2\n.W\nheat in slabs\n"
PYTHON_LOG = """2024-01-02 10:00:00,123 - app - INFO - started, all is fine
2024-01-02 10:00:01,007 - app - ERROR - no, it is not
Traceback (most recent call last):
2024-01-02 10:00:02,500 - app - INFO - ended
"""
LEVEL_LOG = "INFO: started, all is fine\nWARNING: almost done\nINFO: ended\n"


def zipped(*names):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name in names:
            archive.writestr(name, "x")
    return file.getvalue()


FOREIGN = {
    "pdf": PDF,
    "html": HTML,
    "xml": '<?xml version="1.0"?>\n<a>\n<b/></a>\n',
    "feed": "<rss version='2'>\n<item></item></rss>\n",
    "smart": SMART,
    "log": PYTHON_LOG,
    "level log": LEVEL_LOG,
    "zip": zipped("a.csv"),
    "xlsx": zipped("[Content_Types].xml", "xl/workbook.xml"),
    "sqlite": b"SQLite format 3\0" + bytes(84),
    "png": b"\x89PNG\r\n\x1a\n" + bytes(8),
    "bytes": random.Random(7).randbytes(5000),
    "utf-16": "id,text\n1,A text.\n".encode("utf-16-le"),
}


def refused(*paths, **options):
    """The message of the error that reading raises."""
    with pytest.raises(CorpusError) as error:
        list(Corpus(paths, **options))
    return str(error.value)


def read(name, **options):
    notices = []
    return list(Corpus(name, notify=notices.append, **options)), notices


class TestUnsupportedAndMisnamedFiles:
    @pytest.mark.parametrize("kind", FOREIGN)
    def test_no_table_is_made_of_them(self, write, kind):
        write("corpus.csv", FOREIGN[kind])
        assert refused("corpus.csv").startswith("corpus.csv ")

    def test_binary_data_is_rejected_despite_an_explicit_format(self, write):
        write("corpus.csv", PDF)
        refused("corpus.csv", format="csv", header=False)

    def test_an_explicit_format_overrides_the_check_of_a_text(self, write):
        write("app.log", LEVEL_LOG)
        documents, notices = read("app.log", format="tsv", header=False)
        assert [document.text for document in documents] == LEVEL_LOG.splitlines()
        (document,), notices = read("app.log", format="text")
        assert document.text == LEVEL_LOG
        assert notices == []

    def test_plain_text_is_not_a_table(self, write):
        write("notes", "It was a dark night, and long.\nRain fell.\nIt fell, and fell, and fell.\n")
        refused("notes")
        assert len(list(Corpus("notes", format="tsv", header=False))) == 3

    @pytest.mark.parametrize(
        "content",
        [
            "time,level,text\n2024-01-02 10:00:00,INFO,It started.\n",
            "2024-01-02 10:00:00,INFO,It started.\n2024-01-02 10:00:01,INFO,It ended.\n",
            "text\nINFO: it started\nINFO: it ended\n",
            "id;text\n1;<b>bold</b>\n",
            "id,text\n1,a\x00b\x01c\n",
        ],
    )
    def test_tables_are_recognised(self, write, content):
        write("corpus", content)
        try:
            list(Corpus("corpus", header=None, on_bad_row=lambda error: None))
        except CorpusError as error:
            assert "looks like" not in str(error).partition("; no header")[0]


class TestSeveralTextsInOneFile:
    HEADLINES = (
        "Oil prices climb for a third day",
        "Bank raises its forecast",
        "“A phone that folds twice”, says its maker",
        "1,000 new homes for the harbour",
    )

    def test_one_headline_per_line(self, write):
        write("news.txt", "\n".join(self.HEADLINES * 5))
        documents, notices = read("news.txt")
        assert len(documents) == 1
        assert notices == [
            "news.txt: looks like one text per line and is read as one document; "
            "--input-format lines reads each line as a text"
        ]
        documents, _ = read("news.txt", format="lines")
        assert [document.text for document in documents] == [*self.HEADLINES * 5]

    @pytest.mark.parametrize(
        "text",
        [
            "It was a dark night and the rain\nfell on the town as it had fallen\n" * 20,
            "Title, text and more\n\n" + "One, two, three, and four of it.\n\n" * 20,
            "Word\n" * 20,
        ],
    )
    def test_single_texts(self, write, text):
        write("text.txt", text)
        assert read("text.txt")[1] == []


class TestMisnamedJson:
    @pytest.mark.parametrize(("name", "indent"), [("rows.jsonl", 2), ("rows.csv", None)])
    def test_misnamed_array(self, write, name, indent):
        write(name, json.dumps([{"text": "One."}, {"text": "Two."}], indent=indent))
        refused(name)
        assert len(list(Corpus(name, format="json"))) == 2

    @pytest.mark.parametrize(
        "content",
        [
            '{"text": "One.", "links": [{"url": "x"}]}\n',
            '{"text": "One.", "long": "' + "x" * 100_000 + '"}\n{"text": "Two."}\n',
        ],
    )
    def test_json_lines_are_recognised(self, write, content):
        write("rows.json", content)
        assert next(iter(Corpus("rows.json"))).text == "One."
