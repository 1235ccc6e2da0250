"""Unsupported and misnamed files: errors say what the file looks like and what to do."""

from __future__ import annotations

import gzip
import io
import json
import random
import sys
import zipfile
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semsearch.corpus import Corpus
from semsearch.corpus.jsonoutline import outline
from semsearch.errors import BadRowError, CorpusError

PDF = b"""%PDF-1.4
1 0 obj <</Type /Catalog /Pages 2 0 R>> endobj
2 0 obj <</Type /Pages /Kids [3 0 R] /Count 1>> endobj
3 0 obj <</Type /Page /Parent 2 0 R /MediaBox [0 0 72 72]>> endobj
trailer <</Root 1 0 R>>
%%EOF
"""
HTML = """<!DOCTYPE html>
<html><head><title>News, today</title></head>
<body><p>Oil prices climb, again.</p></body></html>
"""
SMART = """.I 1
.T
flow over a wing
.W
the flow, it seems, is steady .
.I 2
.W
heat in slabs
"""
PYTHON_LOG = """2024-01-02 10:00:00,123 - app - INFO - started, all is fine
2024-01-02 10:00:01,007 - app - ERROR - no, it is not
Traceback (most recent call last):
2024-01-02 10:00:02,500 - app - INFO - ended
"""
WEB_LOG = """127.0.0.1 - - [02/Jan/2024:10:00:00 +0000] "GET /a,b HTTP/1.1" 200 12
127.0.0.1 - - [02/Jan/2024:10:00:01 +0000] "GET /c HTTP/1.1" 404 7
"""
SYSTEM_LOG = """Jan  2 10:00:00 host app[1]: started, it seems
Jan  2 10:00:01 host app[1]: ended
"""
ZONE_LOG = "2024-01-02 10:00:00 UTC [7] started\n2024-01-02 10:00:01 UTC [7] ended\n"
LEVEL_LOG = "INFO: started, all is fine\nWARNING: almost done\nINFO: ended\n"
LOG = "looks like a log: --input-format lines reads each line as a text"


def zipped(*names):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name in names:
            archive.writestr(name, "x")
    return file.getvalue()


FOREIGN = {
    "pdf": (PDF, "looks like a PDF document: add --input-format pdf"),
    "html": (HTML, "looks like HTML: add --input-format html"),
    "xml": ('<?xml version="1.0"?>\n<a>\n<b/></a>\n', "looks like XML: convert its records to"),
    "feed": ("<rss version='2'>\n<item></item></rss>\n", "looks like XML: convert its records to"),
    "smart": (SMART, "looks like a SMART collection: evaluate its folder with: semsearch"),
    "log": (PYTHON_LOG, LOG),
    "web log": (WEB_LOG, LOG),
    "system log": (SYSTEM_LOG, LOG),
    "log with a zone": (ZONE_LOG, LOG),
    "level log": (LEVEL_LOG, LOG),
    "zip": (zipped("a.csv"), "looks like a ZIP archive: unpack it first"),
    "docx": (zipped("[Content_Types].xml", "word/document.xml"), "(DOCX): add --input-format docx"),
    "xlsx": (zipped("[Content_Types].xml", "xl/workbook.xml"), "(XLSX): add --input-format xlsx"),
    "sqlite": (
        b"SQLite format 3\0" + bytes(84),
        "looks like an SQLite database: choose its rows with --sql",
    ),
    "png": (b"\x89PNG\r\n\x1a\n" + bytes(8), "looks like an image: semsearch reads only text"),
    "bytes": (
        random.Random(7).randbytes(5000),
        "looks like binary data: semsearch reads only text",
    ),
    "utf-16": ("id,text\n1,A text.\n".encode("utf-16-le"), "add --encoding utf-16-le"),
    "utf-16-be": ("id,text\n1,A text.\n".encode("utf-16-be"), "add --encoding utf-16-be"),
    "objects": ('{"id": 1, "text": "one, two"}\n', None),
}


#: Those that are read if the name does not contradict, each with its error, if any.
READABLE = {
    "pdf": ": has no text; if it is a scan, recognise its text first (for example with ocrmypdf)",
    "html": "",
    "docx": ": cannot be read as DOCX: ",
    "xlsx": ": cannot be read as XLSX: ",
}


def message(*paths, **options):
    with pytest.raises(CorpusError) as error:
        list(Corpus(paths, **options))
    return str(error.value)


def read(name, **options):
    notices = []
    return list(Corpus(name, notify=notices.append, **options)), notices


class TestUnsupportedAndMisnamedFiles:
    @pytest.mark.parametrize("kind", FOREIGN)
    @pytest.mark.parametrize("name", ["corpus.csv", "corpus.tsv", "corpus", "corpus.dat"])
    @pytest.mark.parametrize("packed", [False, True])
    def test_the_error_says_what_they_are(self, write, kind, name, packed):
        content, expected = FOREIGN[kind]
        write(name, content, packed=packed)
        if name in ("corpus", "corpus.dat") and kind in READABLE:
            if READABLE[kind]:
                assert message(name).startswith(f"{name}{READABLE[kind]}")
            else:
                assert [document.text for document in Corpus(name)] == ["Oil prices climb, again."]
        elif expected is None and name in ("corpus", "corpus.dat"):
            assert [document.text for document in Corpus(name)] == ["one, two"]
        else:
            expected = expected or "looks like JSON lines: add --input-format jsonl"
            assert message(name).startswith(f"{name} ")
            assert expected in message(name)

    @pytest.mark.parametrize("kind", ["pdf", "html", "smart", "docx", "bytes", "utf-16"])
    @pytest.mark.parametrize(
        "name", ["corpus.txt", "corpus.json", "corpus.jsonl", "corpus.parquet"]
    )
    def test_under_other_names(self, write, kind, name):
        content, expected = FOREIGN[kind]
        write(name, content)
        assert expected in message(name)

    def test_binary_data_is_rejected_despite_an_explicit_format(self, write):
        write("corpus.csv", PDF)
        assert "PDF" in message("corpus.csv", format="csv", header=False)

    def test_an_explicit_format_overrides_the_check_of_a_text(self, write):
        write("app.log", LEVEL_LOG)
        documents, notices = read("app.log", format="tsv", header=False)
        assert [document.text for document in documents] == LEVEL_LOG.splitlines()
        (document,), notices = read("app.log", format="text")
        assert document.text == LEVEL_LOG
        assert notices == []

    def test_plain_text_is_not_a_table(self, write):
        write("notes", "It was a dark night, and long.\nRain fell.\nIt fell, and fell, and fell.\n")
        assert message("notes") == (
            "notes looks like plain text, not a table: --input-format text reads it as one "
            "document, --input-format lines reads each line as a text; --input-format "
            "csv reads it as a table"
        )
        assert len(list(Corpus("notes", format="tsv", header=False))) == 3

    @pytest.mark.parametrize(
        "content",
        [
            "time,level,text\n2024-01-02 10:00:00,INFO,It started.\n",
            "2024-01-02 10:00:00,INFO,It started.\n2024-01-02 10:00:01,INFO,It ended.\n",
            "2024-01-02 10:00:00\tINFO\tIt started.\n2024-01-02 10:00:01\tINFO\tIt ended.\n",
            "INFO,It started.\nERROR,It ended.\n",
            "2024-01-02 10:00:00 UTC,It started.\n2024-01-02 10:00:01 UTC,It ended.\n",
            "2024-01-02 10:00:00 AM,It started.\n2024-01-02 10:00:01 PM,It ended.\n",
            "2024-01-02 10:00:00 +0100,It started.\n2024-01-02 10:00:01 +0100,It ended.\n",
            "text\nINFO: it started\nINFO: it ended\n",
            "id;text\n1;<b>bold</b>\n",
            "a,b\n1,2\n",
            'id,text\n1,"ünï","x"\n',
            "id,text\n1,a\x00b\x01c\n",
        ],
    )
    @pytest.mark.parametrize("name", ["corpus.csv", "corpus"])
    def test_tables_are_recognised(self, write, content, name):
        write(name, content)
        try:
            list(Corpus(name, header=None, on_bad_row=lambda error: None))
        except CorpusError as error:
            assert "looks like" not in str(error).partition("; no header")[0]

    def test_text_in_another_encoding_is_not_binary(self, write):
        russian = "id,text\n1,Нефть дорожает третий день подряд\n"
        write("corpus.csv", russian.encode("cp1251"))
        assert "binary" not in message("corpus.csv")
        assert len(list(Corpus("corpus.csv", encoding="cp1251"))) == 1
        write("wide.csv", russian.encode("utf-16-le"))
        assert message("wide.csv").endswith("byte order mark: add --encoding utf-16-le")
        assert len(list(Corpus("wide.csv", encoding="utf-16-le"))) == 1

    @pytest.mark.parametrize(
        "content", [PDF, SMART.encode(), b'{"rows": [' + b'{"a": 1},' * 99, b"x" * 999, b"<a>\n"]
    )
    @pytest.mark.parametrize("name", ["corpus.csv", "corpus.json", "corpus"])
    def test_only_the_beginning_is_inspected(self, write, content, name, monkeypatch):
        read = 0

        class Endless:
            def read(self, size):
                nonlocal read
                before, read = read, read + size
                return content[before:read].ljust(size)

        stdin = SimpleNamespace(buffer=Endless())
        monkeypatch.setattr(sys, "stdin", stdin)
        if content[:1] == b"%":  # a PDF is copied, up to a limit
            monkeypatch.setattr("semsearch.corpus.sources.MAX_UNPACKED_BYTES", 1 << 20)
            assert message("-") == "stdin: longer than 1 MiB"
        if content[:1] == b".":
            assert "looks like" in message("-")
            assert read <= 128 << 10
        write(name, gzip.compress(content + b" " * (4 << 20)))
        with pytest.raises(CorpusError):
            list(Corpus(name))


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

    def test_a_table_and_a_log(self, write):
        write("pairs.txt", "a text\tanother text\t4\n" * 20)
        assert read("pairs.txt")[1] == [
            "pairs.txt: looks like a table and is read as one document; "
            "--input-format tsv reads its rows"
        ]
        write("app.txt", LEVEL_LOG)
        assert read("app.txt")[1][0].startswith("app.txt: looks like a log and is read as one")

    @pytest.mark.parametrize(
        ("line", "header", "what", "name"),
        [
            ('{"text": "One, and more."}\n', "", "JSON lines", "jsonl"),
            ('  {"text": "One, and more."},\n', "[\n", "a JSON array", "json"),
            ('7;"One; and more."\n', "id;text\n", "a table", "csv"),
            ("7,One and more.\n", "id,text\n", "a table", "csv"),
        ],
    )
    def test_rows_of_another_format(self, write, line, header, what, name):
        write("rows.txt", header + line * 20)
        assert read("rows.txt")[1] == [
            f"rows.txt: looks like {what} and is read as one document; "
            f"--input-format {name} reads its rows"
        ]

    @pytest.mark.parametrize(
        "text",
        [
            "It was a dark night and the rain\nfell on the town as it had fallen\n" * 20,
            "A paragraph is a line here.\n\nAnd another one follows it.\n\n" * 20,
            "- Buy some bread\n- Water the plants\n" * 20,
            "def f(x):\n    return x\n\n" * 20,
            "Title, text and more\n\n" + "One, two, three, and four of it.\n\n" * 20,
            "[1] Of one.\n\n[2] Of another.\n\n" * 20,
            "Word\n" * 20,
            "",
        ],
    )
    def test_single_texts(self, write, text):
        write("text.txt", text or "One.")
        assert read("text.txt")[1] == []


class TestFolders:
    def test_a_misnamed_file_is_a_bad_row(self, write):
        write("notes/a.txt", "one")
        write("notes/b.txt", PDF)
        errors = []
        assert len(list(Corpus("notes", on_bad_row=errors.append))) == 1
        assert isinstance(errors[0], BadRowError)
        assert "looks like a PDF document" in errors[0].reason
        assert errors[0].document_id == "b.txt"


class TestNestedJson:
    @pytest.mark.parametrize("indent", [None, 2])
    @pytest.mark.parametrize("rows", [1, 3, 20_000])
    def test_the_path_of_its_records_is_suggested(self, write, indent, rows):
        articles = [{"id": number, "tags": ["a"]} for number in range(rows)]
        nested = {"status": "ok", "data": {"articles": articles}}
        write("api.json", json.dumps(nested, indent=indent))
        cut = ", …" if rows == 20_000 else ""
        assert message("api.json") == (
            f"api.json is one JSON object (keys: status, data{cut}) with arrays of objects in it "
            "(.data.articles); name its records: --records data.articles"
        )

    def test_records_by_key(self, write):
        write("films.json", '{\n"f1": {"plot": "A."},\n"f2": {"plot": "B."}\n}')
        assert message("films.json").endswith("its values are records: --records .")

    @pytest.mark.parametrize("indent", [None, 2])
    def test_records_by_key_with_any_indent(self, write, indent):
        write("films.json", json.dumps({"f1": {"plot": "A."}, "f2": {"plot": "B."}}, indent=indent))
        assert message("films.json").endswith("its values are records: --records .")
        nested = {"meta": {"rows": 1}, "response": {"docs": [{"text": "A."}]}}
        write("api.json", json.dumps(nested, indent=indent))
        assert message("api.json").endswith("--records response.docs")

    @pytest.mark.parametrize("rows", [1, 20_000])
    @pytest.mark.parametrize("indent", [None, 2])
    def test_columns_written_by_pandas(self, write, rows, indent):
        texts = {str(number): "A film." for number in range(rows)}
        write("films.json", json.dumps({"text": texts, "year": texts}, indent=indent))
        error = message("films.json")
        assert error.startswith("films.json is one JSON object of columns (keys: text")
        assert error.endswith("to_json(PATH, orient='records', lines=True) in pandas")

    def test_a_packed_file_is_unpacked_for_jq(self, write):
        write("film.json.gz", gzip.compress(b'{\n "id": 1,\n "text": "A film."\n}\n'))
        assert message("film.json.gz").endswith(
            ": gzip -dc film.json.gz | jq -c '.' > records.jsonl"
        )

    @pytest.mark.parametrize("name", ["rows.jsonl", "rows.csv", "rows.tsv"])
    @pytest.mark.parametrize("indent", [None, 2])
    def test_misnamed_array(self, write, name, indent):
        write(name, json.dumps([{"text": "One."}, {"text": "Two."}], indent=indent))
        assert message(name) == f"{name} looks like a JSON array: add --input-format json"
        assert len(list(Corpus(name, format="json"))) == 2

    def test_one_record_on_several_lines(self, write):
        write("film.json", '{\n  "id": 1,\n  "text": "A film."\n}\n')
        assert "jq -c '.' film.json" in message("film.json")

    def test_suggested_commands_are_quoted(self, write):
        write("a b;c.json", json.dumps({"x'; rm -r $(pwd) '": [{"a": 1}]}, indent=1))
        assert "--records" not in message("a b;c.json")
        write("a b;c.json", json.dumps({"id": 1, "text": "A film."}, indent=1))
        assert "jq -c '.' \"a b;c.json\" >" in message("a b;c.json")

    @pytest.mark.parametrize(
        "content",
        [
            '{"text": "One.", "links": [{"url": "x"}]}\n',
            '{"text": "One."}',
            '{"text": "One.", "links": [{"url": "x"}]}\n{"text": "Two."}\n',
            '{"text": "One.", "long": "' + "x" * 100_000 + '"}\n{"text": "Two."}\n',
        ],
    )
    def test_json_lines_are_recognised(self, write, content):
        write("rows.json", content)
        assert next(iter(Corpus("rows.json"))).text == "One."

    def test_a_broken_line_is_a_bad_row(self, write):
        write("rows.jsonl", '{"text": "One"\n{"text": "Two."}\n')
        errors = []
        assert [row.text for row in Corpus("rows.jsonl", on_bad_row=errors.append)] == ["Two."]
        assert [error.source for error in errors] == ["rows.jsonl:1"]

    JSON = st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=10,
    )

    @given(st.dictionaries(st.text(), JSON), st.sampled_from([None, 2]), st.booleans())
    @settings(deadline=None)
    @pytest.mark.slow
    def test_outline_matches_the_object(self, value, indent, ascii_only):
        text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
        found = outline(text)
        assert found.end == len(text)
        assert found.keys == list(value)
        assert found.objects == sum(isinstance(item, dict) for item in value.values())
        top = [
            (key,)
            for key, item in value.items()
            if isinstance(item, list) and any(isinstance(part, dict) for part in item)
        ]
        assert [path for path in found.arrays if len(path) == 1] == top

    @given(st.text(alphabet='{}[]",:\\a1 \n'))
    def test_outline_does_not_raise(self, text):
        outline("{" + text)
