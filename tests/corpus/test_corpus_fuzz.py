"""Readers raise only SemsearchError, whatever a file contains."""

from __future__ import annotations

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


@pytest.mark.nightly
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
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
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
