"""Sources of bytes: gzip, standard input, encodings; formats, names, progress."""

from __future__ import annotations

import gzip
import io
import os
import random
import re
import sys
import threading
import zipfile

import pytest

from semsearch.corpus import Corpus
from semsearch.errors import ArgumentError, BadRowError, CorpusError
from tests.corpus.conftest import read

CSV = "id,text\n1,one\n2,two\n"
CONTENTS = {
    "corpus.csv": CSV,
    "corpus.tsv": CSV.replace(",", "\t"),
    "corpus.jsonl": '{"id": 1, "text": "one"}\n{"id": 2, "text": "two"}\n',
    "corpus.json": '[{"id": 1, "text": "one"}, {"id": 2, "text": "two"}]',
}


def texts(*paths, **options):
    return [document.text for document in Corpus(paths, **options)]


def test_gzip_is_detected_by_content(write):
    assert texts(write("corpus.csv", CSV, packed=True)) == ["one", "two"]
    assert texts(write("corpus.csv.gz", CSV)) == ["one", "two"]
    write("members.gz", gzip.compress(CSV.encode()) + gzip.compress(b"3,three\n"))
    assert texts("members.gz") == ["one", "two", "three"]


@pytest.mark.parametrize("rows", [10, 30_000])
def test_damaged_gzip_is_one_bad_row(write, rows):
    """In the rows that are looked at first, or after them."""
    packed = gzip.compress(b"id,text\n" + b"".join(b"%d,text\n" % n for n in range(rows)))
    write("cut.csv.gz", packed[:-20])
    documents, [error], _ = read(["cut.csv.gz", write("good.csv", "id,text\ngood,text\n")])
    assert documents[-1].id == "good"
    assert (len(documents) > 1) == (rows > 10)
    assert str(error).startswith("cut.csv.gz: damaged gzip data: Compressed file ended")


@pytest.mark.parametrize("name", CONTENTS)
def test_standard_input(write, stdin, name):
    """Its format is detected by its content, as that of a file without a known suffix."""
    write("corpus.dat", CONTENTS[name])
    assert texts("corpus.dat") == ["one", "two"]
    content = CONTENTS[name].encode()
    stdin(gzip.compress(content) if name == "corpus.csv" else content)
    corpus = Corpus("-")
    assert [document.text for document in corpus] == ["one", "two"]
    assert corpus.fraction_read is None
    assert not sys.stdin.buffer.closed


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are POSIX")
def test_a_named_pipe_is_read_once(tmp_path):
    """As <(zcat corpus.csv.gz) in a shell."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(CSV.encode(),))
    writer.start()
    corpus = Corpus(pipe)
    assert [document.text for document in corpus] == ["one", "two"]
    assert corpus.fraction_read is None
    writer.join()


@pytest.mark.parametrize(
    ("stored_as", "declared"),
    [
        ("utf-8", None),
        ("utf-8-sig", None),
        ("utf-8-sig", "cp1252"),  # the byte order mark takes precedence
        ("utf-16", None),
        ("utf-16-le", "utf-16-le"),
    ],
)
def test_encodings(write, stored_as, declared):
    write("corpus.csv", CSV.replace("one", "café").encode(stored_as))
    assert texts("corpus.csv", encoding=declared) == ["café", "two"]


FRENCH = "Le café est situé près de la forêt"


@pytest.mark.parametrize("name", CONTENTS)
def test_a_file_in_another_encoding_is_one_bad_row(bad_file, name):
    content = CONTENTS[name].replace("two", FRENCH).encode("windows-1252")
    error = bad_file(name, content, packed=name == "corpus.csv")
    assert isinstance(error, BadRowError)
    assert error.reason.startswith("its text holds byte 0xe9, which is not UTF-8; ")
    assert texts(name, encoding="windows-1252") == ["one", FRENCH]


def test_bytes_of_another_encoding_far_below_are_bad_rows(write):
    rows = "".join(f"{number},plain\n" for number in range(10_000))
    write("c.csv", f"id,text\n{rows}x,{FRENCH}\n".encode("windows-1252"))
    documents, [error], _ = read("c.csv")
    assert len(documents) == 10_000
    assert (error.source, error.document_id) == ("c.csv:10002", "x")

    write("c.csv", "id,text\n1,Zürich Genève Rhône ".encode() + b"\xc3\n")  # one damaged byte
    with pytest.raises(BadRowError, match=r"^c\.csv:2"):
        list(Corpus("c.csv"))


def test_a_character_at_the_end_of_what_is_looked_at(write):
    for size in (1 << 16, (1 << 16) + 1):
        assert len(texts(write("c.csv", f"text,n\n{'x' * (size - 8)}é,1\n"))) == 1


def test_a_declared_encoding_can_be_wrong(write):
    for encoding in ("ascii", "utf-16"):
        with pytest.raises(CorpusError, match=r"^c\.csv"):
            texts(write("c.csv", f"{CSV}3,{FRENCH}\n"), encoding=encoding)


def test_files_that_cannot_be_opened(write):
    write("corpus.csv", CSV)
    for paths in (["copus.csv"], ["corpus.csv", "later.csv"], ["corpus.csv/x"], ["x" * 300]):
        with pytest.raises(CorpusError):
            texts(*paths)
    with pytest.raises(ArgumentError):
        Corpus([])


@pytest.mark.parametrize("packed", [False, True])
def test_fraction_read_grows_to_one(write, packed):
    rows = "".join(f"{number},{number * 7919 % 100_003} {'text ' * 20}\n" for number in range(9000))
    write("big.csv", f"id,text\n{rows}", packed=packed)
    write("small.csv", CSV)
    corpus = Corpus(["big.csv", "small.csv"])
    assert corpus.fraction_read is None
    fractions = [corpus.fraction_read for _ in corpus]
    assert 0 < fractions[0] < 0.5 or packed
    assert fractions == sorted(fractions)
    assert corpus.fraction_read == 1.0


@pytest.mark.parametrize(
    ("paths", "name"),
    [
        ("corpus.csv", "corpus"),
        ("a/corpus.csv.gz", "corpus"),
        ("-", "stdin"),
        (["movies/1950s.json", "movies/1960s.json"], "movies"),
        (["a/films.json", "b/books.json"], "films"),
        (["a", "b.csv"], "here"),
        (".", "here"),
        ("linked", "linked"),
        ("my: corpus?.csv", "my-corpus"),
        ("Größe.csv", "Größe"),
    ],
)
def test_corpus_names(tmp_path, monkeypatch, paths, name):
    here = tmp_path / "here"
    (here / "a" / "b").mkdir(parents=True)
    (here / "linked").symlink_to("a")
    monkeypatch.chdir(here)
    assert Corpus(paths).name == name


def zipped(name):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(name, "x")
    return file.getvalue()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"%PDF-1.4\n1 0 obj <<>> endobj", "looks like PDF; rename it to .pdf"),
        (b"\n<!DOCTYPE html>\n<title>News, today</title>\n", "looks like HTML; rename it to .html"),
        (zipped("a.csv"), "looks like an archive; "),
        (zipped("xl/workbook.xml"), "looks like XLSX; rename it to .xlsx"),
        (b"SQLite format 3\0" + bytes(84), "looks like an SQLite database; "),
        (b"\x89PNG\r\n\x1a\n" + bytes(8), "looks like an image"),
        (random.Random(7).randbytes(5000), ""),
        ("id,text\n1,A text.\n".encode("utf-16-le"), ""),
    ],
)
def test_no_table_is_made_of_other_files(write, content, reason):
    for options in ({}, {"header": False, "text_columns": "1"}):
        with pytest.raises(CorpusError, match=rf"^corpus\.csv(: .*)? ?{re.escape(reason)}"):
            list(Corpus(write("corpus.csv", content), **options))


def test_a_misnamed_binary_table_is_a_bad_row(write):
    for name, kind in {"x.parquet": BadRowError, "x.csv": CorpusError}.items():
        with pytest.raises(CorpusError) as error:
            texts(write(name, b"%PDF-1.4"))
        assert error.type is kind


def test_a_file_of_unknown_format(write):
    """It is no table without a delimiter, unless columns are named; prose has commas."""
    write("notes", "It was a dark night, and long.\nRain fell.\nIt fell, and fell, and fell.\n")
    write("lines", "One\nTwo\n")
    for name in ("notes", "lines"):
        with pytest.raises(CorpusError, match=rf"^{name}\b"):
            list(Corpus(name))
    assert texts("lines", header=False) == texts("lines", header=False, text_columns="1")
    assert texts(write("notes.tsv", "One.\nTwo.\n"), header=False) == ["One.", "Two."]
    with pytest.raises(CorpusError, match=r"^rows\.jsonl"):
        texts(write("rows.jsonl", '[\n  {\n    "text": "One."\n  },\n'))
