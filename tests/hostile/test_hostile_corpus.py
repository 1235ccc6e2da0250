"""Valid files with some bytes changed: documents, bad rows, or a one-line CorpusError.

tests/corpus/test_corpus_fuzz.py does the same with random bytes, Parquet and gzip.
"""

from __future__ import annotations

import gzip
import json
from encodings.aliases import aliases

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from semsearch.corpus import Corpus
from semsearch.errors import ArgumentError, CorpusError, SemsearchError

pytestmark = pytest.mark.slow

deterministic = settings(
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

ROWS = [
    {"id": "a", "title": "Æble, rødt", "text": 'It is "red",\nor so.', "year": 1990, "n": [1, "x"]},
    {"id": "b", "title": "", "text": "No more\tto say; | none.", "year": -5, "n": []},
    {"id": "c", "title": "Ω", "text": "\U0001f408", "year": 10**17, "n": ["it's"]},
]


def delimited(delimiter: str) -> bytes:
    def cell(value: object) -> str:
        shown = json.dumps(value) if isinstance(value, list) else str(value)
        return '"{}"'.format(shown.replace('"', '""'))

    lines = [ROWS[0].keys(), *(row.values() for row in ROWS)]
    return "".join(delimiter.join(map(cell, line)) + "\n" for line in lines).encode()


LINES = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in ROWS).encode()
SOUND = {
    "corpus.csv": delimited(","),
    "corpus.tsv": delimited("\t"),
    "corpus": delimited(";"),
    "corpus.jsonl": LINES,
    "corpus.json": json.dumps(ROWS, indent=1).encode(),
    "corpus.txt": LINES,
    "corpus.md": b"Title\n=====\n\n# Another #\n\ntext ```\n" + LINES,
    "utf-16.csv": delimited(",").decode().encode("utf-16"),
}

CHANGE = st.tuples(
    st.sampled_from(["set", "insert", "delete", "repeat"]),
    st.floats(0, 1),
    st.sampled_from(
        [
            *(b'"', b"'", b"\\", b",", b"\t", b";", b"\n", b"\r", b"\r\n", b"\0", b"\xff", b"\x80"),
            *(b"{", b"}", b"[", b"]", b":", b"1e999", b"NaN", b"9" * 5000, b"[" * 2000, b"null"),
            *(
                b"\\ud800",
                b"\xef\xbb\xbf",
                b"\xff\xfe",
                b"\x1f\x8b",
                b'"id"',
                b"\xe2\x80\xa8",
                b"\x85",
            ),
        ]
    )
    | st.binary(min_size=1, max_size=3),
)


def changed(content: bytes, changes: list[tuple[str, float, bytes]]) -> bytes:
    for how, place, patch in changes:
        start = int(place * len(content))
        match how:
            case "set":
                content = content[:start] + patch + content[start + len(patch) :]
            case "insert":
                content = content[:start] + patch + content[start:]
            case "delete":
                content = content[:start] + content[start + len(patch) :]
            case "repeat":
                content = content[:start] + content[max(0, start - 40) :]
    return content


def read(path, **options) -> int:
    """The number of documents; only SemsearchError is caught."""
    messages = []
    documents = 0
    try:
        for document in Corpus(path, on_bad_row=messages.append, notify=messages.append, **options):
            documents += 1
            json.dumps([document.id, document.title, document.text]).encode()
            json.dumps(document.metadata, ensure_ascii=False, allow_nan=False).encode()
    except SemsearchError as error:
        messages.append(error)
    assert all(str(message).isprintable() for message in messages)
    return documents


def test_unchanged_files_are_valid(tmp_path):
    for name, content in SOUND.items():
        (tmp_path / name).write_bytes(content)
        assert read(tmp_path / name) == (1 if name in ("corpus.txt", "corpus.md") else 3), name


@pytest.mark.parametrize("name", SOUND)
@settings(deterministic, max_examples=100)
@given(changes=st.lists(CHANGE, min_size=1, max_size=5), packed=st.booleans())
def test_changed_files(tmp_path, name, changes, packed):
    content = changed(SOUND[name], changes)
    (tmp_path / name).write_bytes(gzip.compress(content, 1) if packed else content)
    read(tmp_path / name)


@settings(deterministic, max_examples=100)
@given(changes=st.lists(CHANGE, min_size=1, max_size=3), name=st.sampled_from(sorted(SOUND)))
def test_changed_gzip_files(tmp_path, changes, name):
    (tmp_path / name).write_bytes(changed(gzip.compress(SOUND[name] * 20, 1), changes))
    read(tmp_path / name)


@pytest.mark.filterwarnings("ignore:invalid escape sequence:DeprecationWarning")
def test_every_encoding_of_python(tmp_path):
    for encoding in {*aliases.values(), "idna", "punycode", "undefined", "unicode_escape"}:
        for name in ("corpus.csv", "corpus.jsonl", "corpus.json", "corpus.txt"):
            (tmp_path / name).write_bytes(SOUND[name] + b"\\xff\\")
            read(tmp_path / name, encoding=encoding)


@pytest.mark.parametrize(
    "letter", [b"\0", b"\r", b"\xff", b"\x0c", b"\x1a", b"\xe2\x80\xa8", b"\\"]
)
def test_python_lists_with_characters_that_python_cannot_parse(tmp_path, letter):
    cells = [b"['a']", b"['%s']" % letter, b"['\\x00', \"%s'\"]" % letter]
    (tmp_path / "c.csv").write_bytes(
        b"text,n\n" + b"".join(b'one,"%s"\n' % cell.replace(b'"', b'""') for cell in cells)
    )
    assert read(tmp_path / "c.csv") >= 1


@pytest.mark.parametrize("path", ["a\0b", "\0", "x" * 5000, "\ud800", "x\ny", "a\0b.csv.gz"])
def test_impossible_file_names(path):
    with pytest.raises((ArgumentError, CorpusError)):
        list(Corpus(path))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("c.csv", b"text" + b",x" * 1_000_001 + b"\none\n", "c.csv:1: more than 1,000,000 cells"),
        ("c.csv", b"text,n\n1" + b",x" * 1_000_001 + b"\n", "c.csv:2: more than 1,000,000 cells"),
        ("c.csv", b'text,n\n"a\n' + b'b","c\n' * 1_000_001, "c.csv:2: more than 1,000,000 cells"),
        ("c.jsonl", b"[" + b"{}," * 1_000_001 + b"0]", "c.jsonl:1: more than 1,000,000 values"),
        (
            "c.json",
            b"[[" + b"{}," * 1_000_001 + b"0]]",
            "c.json: an item has more than 1,000,000 v",
        ),
    ],
)
def test_rows_of_too_many_values(tmp_path, monkeypatch, name, content, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_bytes(content)
    with pytest.raises(CorpusError) as caught:
        list(Corpus(name))
    assert str(caught.value).startswith(message)


def test_reading_resumes_after_a_row_of_too_many_values(tmp_path):
    wide = ",".join(["1"] * 1_000_002)
    (tmp_path / "c.csv").write_text(f"text,n\none,1\n{wide}\ntwo,2\n")
    (tmp_path / "c.jsonl").write_text(f'{{"text": "one"}}\n[{wide}]\n{{"text": "two"}}\n')
    for name in ("c.csv", "c.jsonl"):
        bad = []
        texts = [document.text for document in Corpus(tmp_path / name, on_bad_row=bad.append)]
        assert (texts, len(bad)) == (["one", "two"], 1)


def test_commas_in_a_text_are_not_counted_as_cells(tmp_path):
    text = "x,\n" * 900_000 + "1,2,3\n" * 200_000  # in later lines of a quoted cell
    (tmp_path / "c.csv").write_text(f'id,text\n1,"{text}"\n2,two\n')
    assert [len(document.text) for document in Corpus(tmp_path / "c.csv")] == [len(text), 3]
