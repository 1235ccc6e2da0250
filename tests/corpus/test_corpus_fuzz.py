"""Readers raise only SemsearchError, whatever a file contains."""

from __future__ import annotations

import gzip
import io

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from semsearch.corpus import Corpus, CorpusFormat
from semsearch.errors import SemsearchError

PIECES = st.sampled_from(
    [
        *(b"id,text\n", b"text\tid\r\n", b'{"text": "x"}', b'[{"text": "x"},', b"]", b"PAR1"),
        *(b"\xff\xfe", b"\xef\xbb\xbf", b"\xfe\xff", b"\x1f\x8b\x08", b'"', b"\n", b"\r", b","),
        *(b"\\ud83d", b"[" * 5000, b"nan", b"1e999", b"\x00", b"[]", b"['a']", b"caf\xe9", b"x"),
    ]
)
CONTENTS = st.binary(max_size=100) | st.lists(PIECES | st.binary(max_size=5), max_size=20).map(
    b"".join
)
ENCODINGS = st.sampled_from([None, "utf-8", "utf-16", "cp1252", "utf-7", "gbk", "utf-16-be"])


def outcome(corpus: Corpus) -> int | str:
    """The number of documents, or the message of the error that ended reading."""
    try:
        return sum(1 for _ in corpus)
    except SemsearchError as error:
        return str(error)


@pytest.mark.slow
@pytest.mark.parametrize("corpus_format", [None, *CorpusFormat])
@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(content=CONTENTS, encoding=ENCODINGS, packed=st.booleans())
def test_random_bytes(write, corpus_format, content, encoding, packed):
    path = write("corpus", content, packed=packed)
    skipped = []
    corpus = Corpus(path, format=corpus_format, encoding=encoding, on_bad_row=skipped.append)
    read = outcome(corpus)
    assert read or skipped
    assert not [line for line in (read, *skipped) if "\n" in str(line)]


@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    content=CONTENTS,
    suffix=st.sampled_from(["csv", "tsv", "jsonl", "json", "parquet", "arrow", "xlsx", "md"]),
    packed=st.booleans(),
)
def test_a_bad_file_in_a_folder_does_not_affect_others(write, tmp_path, content, suffix, packed):
    for old in tmp_path.glob("docs/*"):
        old.unlink()
    write(f"docs/a.{suffix}{'.gz' * packed}", content, packed=packed)
    write("docs/z.txt", "Good.")
    *_, last = Corpus("docs", on_bad_row=lambda error: None)
    assert (last.id, last.text) == ("z.txt", "Good.")


def parquet_file() -> bytes:
    file = io.BytesIO()
    columns = {"text": ["one", "two"], "n": [[1], None], "day": [1.5, None]}
    pyarrow.parquet.write_table(pyarrow.table(columns), file)
    return file.getvalue()


PARQUET = parquet_file()


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.tuples(st.integers(0, len(PARQUET) - 1), st.integers(0, 255)), max_size=6))
def test_damaged_parquet(write, damage):
    content = bytearray(PARQUET)
    for position, byte in damage:
        content[position] = byte
    path = write("corpus.parquet", bytes(content))
    assert "\n" not in str(outcome(Corpus(path, on_bad_row=lambda error: None)))


PACKED = gzip.compress(b"id,text\n1,one\n2,two\n" * 20, mtime=0)


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    position=st.integers(0, len(PACKED) - 1),
    byte=st.integers(0, 255),
    length=st.integers(1, len(PACKED)),
)
def test_damaged_gzip(write, position, byte, length):
    content = bytearray(PACKED)
    content[position] = byte
    path = write("corpus.csv.gz", bytes(content[:length]))
    assert "\n" not in str(outcome(Corpus(path, on_bad_row=lambda error: None)))
