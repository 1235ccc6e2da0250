"""JSON lines and JSON arrays."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semsearch.corpus import Corpus
from semsearch.corpus.jsonrows import read_json
from semsearch.errors import BadRowError, CorpusError
from semsearch.records import Document

ROWS = [
    {"id": 1, "title": "One", "text": "first", "tags": ["a", "b"], "more": {"n": None}},
    {"id": 2, "text": "second é ☃ 🎈", "score": 0.5, "seen": True},
]
DOCUMENTS = [
    Document("1", "first", "One", {"tags": ["a", "b"], "more": {"n": None}}),
    Document("2", "second é ☃ 🎈", None, {"score": 0.5, "seen": True}),
]


@pytest.mark.parametrize(
    ("name", "ascii_only"), [("corpus.ndjson", True), ("corpus.json", False), ("corpus.dat", False)]
)
def test_json_lines(write, name, ascii_only):
    write(name, "\n".join(json.dumps(row, ensure_ascii=ascii_only) for row in ROWS))
    assert list(Corpus(name)) == DOCUMENTS


@pytest.mark.parametrize(
    ("name", "indent", "mark"), [("corpus.json", None, ""), ("corpus.dat", 2, "\ufeff")]
)
def test_json_array(write, name, indent, mark):
    write(name, mark + json.dumps(ROWS, indent=indent))
    assert list(Corpus(name)) == DOCUMENTS


def test_sources(write):
    write("corpus.jsonl", '{"text": "one"}\r\n\r\n  \n{"text": "two"}')
    write("films.json", '[{"text": "one"},\n\n{"text": "two"}]\n')
    assert [one.source for one in Corpus("corpus.jsonl")] == ["corpus.jsonl:1", "corpus.jsonl:4"]
    items = ["films.json, item 1", "films.json, item 2"]
    assert [one.source for one in Corpus("films.json")] == items


@pytest.mark.parametrize("name", ["corpus.jsonl", "corpus.json"])
def test_a_text_of_many_commas(write, name):
    text = '[,{"\\' * 600_000
    stored = json.dumps({"text": text})
    write(name, stored if name.endswith("l") else f"[{stored}]")
    assert [document.text for document in Corpus(name)] == [text]


def test_keys_of_records_beside_a_field_of_that_name(write):
    write("corpus.json", '{"a": {"text": "x", "key": "same"}, "b": {"text": "y", "key": "same"}}')
    assert list(Corpus("corpus.json", records=".")) == [
        Document("a", "x", None, {"column.key": "same"}),
        Document("b", "y", None, {"column.key": "same"}),
    ]


def test_bad_lines(write):
    deep = '{"text": "x", "deep": ' + "[" * 100_000 + "]" * 100_000 + "}"
    digits = '{"text": "x", "n": ' + "1" * 5_000 + "}"
    lines = [
        '{"text": "good"}',
        '{"text": "cut',
        "[1, 2]",
        '"text"',
        "null",
        "{'text': 'x'}",
        '{"text": "x"} {"text": "y"}',
        '{"text": null}',
        '{"text": true}',
        '{"text": "half \\ud83d"}',
        '{"text": "x", "n": Infinity}',
        deep,
        digits,
        '{"text": "good", "n": NaN}',
    ]
    write("corpus.jsonl", "\n".join(lines))
    bad: list[BadRowError] = []
    documents = list(Corpus("corpus.jsonl", on_bad_row=bad.append))
    assert documents == [Document(None, "good"), Document(None, "good", metadata={"n": None})]
    assert [error.source for error in bad] == [f"corpus.jsonl:{n}" for n in range(2, 14)]


def test_file_without_json(write):
    write("corpus.jsonl", "no JSON\nat all\n")
    with pytest.raises(CorpusError) as error:
        list(Corpus("corpus.jsonl", on_bad_row=lambda row: None))
    assert str(error.value).startswith("corpus.jsonl:1: ")


def test_bad_items(write):
    write("films.json", '[{"text": "one"}, 7, {"text": ""}, true, {"text": "x", "n": [1e999]}]')
    bad: list[BadRowError] = []
    assert list(Corpus("films.json", on_bad_row=bad.append)) == [Document(None, "one")]
    assert [error.source for error in bad] == [f"films.json, item {n}" for n in range(2, 6)]


@pytest.mark.parametrize(
    ("content", "place"),
    [
        (" ", ""),
        ("[]", ""),
        ("[", ", item 1"),
        ("3", ""),
        ('[{"text": "x"}', ""),
        ('[{"text": "x"} {}]', ""),
        ('[{"text": "x"},]', ", item 2"),
        ('[{"text": "x"}] []', ""),
        ('[{"text": "x"}, {"text": "cut', ", item 2"),
        ('[{"text": "x"}, ' + "[" * 100_000 + "]" * 100_000 + "]", ", item 2"),
    ],
)
def test_broken_arrays(write, content, place):
    write("films.json", content)
    with pytest.raises(CorpusError, match=rf"^films\.json{place}\b"):
        list(Corpus("films.json"))


def test_an_error_is_reported_without_reading_on(write):
    text = _Blocks('[{"text": "x"}, {broken' + " " * 1_000_000)
    with pytest.raises(CorpusError, match=r"^films\.json, item 2"):
        read_json(text, None, is_array=True)
    assert text.position <= 128 << 10


class _Blocks:
    """A text stream that is read in blocks of a given size."""

    name = "films.json"

    def __init__(self, content: str, block: int | None = None) -> None:
        self.content = content
        self.block = block
        self.position = 0

    def read(self, size: int) -> str:
        size = self.block or size
        self.position += size
        return self.content[self.position - size : self.position]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)


@settings(max_examples=25)
@given(
    objects=st.lists(st.dictionaries(st.text(max_size=4), VALUES, max_size=4), min_size=1),
    block=st.integers(1, 40),
    indent=st.sampled_from([None, 1]),
    ascii_only=st.booleans(),
)
def test_arrays_round_trip_with_any_block_size(objects, block, indent, ascii_only):
    text = _Blocks(json.dumps(objects, indent=indent, ensure_ascii=ascii_only), block)
    assert [row.fields for row in read_json(text, None, is_array=True).rows] == objects
