"""JSON lines, JSON arrays and records in nested JSON."""

from __future__ import annotations

import json

import pytest

from semsearch.corpus import Corpus
from semsearch.errors import ArgumentError, BadRowError, CorpusError
from semsearch.records import Document
from tests.corpus.conftest import read

ROWS = [
    {"id": 1, "title": "One", "text": "first", "tags": ["a", "b"], "more": {"n": None}},
    {"id": 2, "text": "second é ☃ 🎈", "score": 0.5, "seen": True},
]
DOCUMENTS = [
    Document("1", "first", "One", {"tags": ["a", "b"], "more": {"n": None}}),
    Document("2", "second é ☃ 🎈", None, {"score": 0.5, "seen": True}),
]
LINES = "\n".join(map(json.dumps, ROWS))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("corpus.ndjson", LINES),
        ("corpus.json", "\n".join(json.dumps(row, ensure_ascii=False) for row in ROWS)),
        ("corpus.json", json.dumps(ROWS)),
        ("corpus.dat", "\ufeff" + json.dumps(ROWS, indent=2)),
    ],
)
def test_lines_and_arrays(write, name, content):
    assert list(Corpus(write(name, content))) == DOCUMENTS


def test_sources(write):
    write("corpus.jsonl", '{"text": "one"}\r\n\r\n  \n{"text": "two"}')
    write("films.json", '[{"text": "one"},\n\n{"text": "two"}]\n')
    assert [one.source for one in Corpus("corpus.jsonl")] == ["corpus.jsonl:1", "corpus.jsonl:4"]
    items = ["films.json, item 1", "films.json, item 2"]
    assert [one.source for one in Corpus("films.json")] == items


def test_bad_lines(write):
    deep = '{"text": "x", "deep": ' + "[" * 100_000 + "]" * 100_000 + "}"
    digits = '{"text": "x", "n": ' + "1" * 5_000 + "}"
    lines = [
        *('{"text": "good"}', '{"text": "cut', "[1, 2]", '"text"', "null", "{'text': 'x'}"),
        *('{"text": "x"} {"text": "y"}', '{"text": null}', '{"text": true}'),
        *('{"text": "half \\ud83d"}', '{"text": "x", "n": Infinity}', deep, digits),
        '{"text": "good", "n": NaN}',
    ]
    documents, bad, _ = read(write("corpus.jsonl", "\n".join(lines)))
    assert documents == [Document(None, "good"), Document(None, "good", metadata={"n": None})]
    assert [error.source for error in bad] == [f"corpus.jsonl:{n}" for n in range(2, 14)]


def test_bad_items(write):
    write("films.json", '[{"text": "one"}, 7, {"text": ""}, true, {"text": "x", "n": [1e999]}]')
    documents, bad, _ = read("films.json")
    assert documents == [Document(None, "one")]
    assert [error.source for error in bad] == [f"films.json, item {n}" for n in range(2, 6)]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("films.jsonl", "no JSON\nat all\n"),
        *(("films.json", content) for content in (" ", "[]", "[", "3")),
        *(("films.json", f'[{{"text": "x"}}{more}') for more in ("", " {}]", ",]", "] []")),
        ("films.json", "[" * 100_000 + "]" * 100_000),
    ],
)
def test_broken_files(write, name, content):
    place = ":1" * name.endswith("l")
    with pytest.raises(CorpusError, match=rf"^{name}{place}\b"):
        read(write(name, content))


NESTED = {"status": {"code": [1, 2]}, "data": {"n": 2, "items": [{"id": 7, "text": "One."}]}}


def test_a_file_is_read_as_before(write):
    """With the arguments of earlier runs, unless other records are selected."""
    write("api.json", json.dumps(NESTED | {"other": [{"id": 8, "text": "Two.", "n": "x"}]}))

    def read_again(earlier, **options):
        reader = iter(Corpus("api.json", **options))
        reader.readings.earlier = earlier
        return [(one.id, one.text) for one in reader], reader.readings.used

    first, used = read_again({}, records="data.items", id_column="text")
    assert first == [("One.", "One.")]
    [arguments] = used.values()
    assert arguments == {
        "id_column": "text",
        "text_columns": ["text"],
        "records": "data.items",
        "columns": ["id", "text"],
        "title": None,
    }
    assert read_again(used) == (first, used)
    assert read_again(used, records="other")[0] == [("8", "Two.")]
    assert read_again(used, records="data.items", text_columns="id")[0] == [("One.", "7")]
    with pytest.raises(ArgumentError):
        read_again(used, id_column="id")


def test_records_by_path(write):
    write("api.json", json.dumps(NESTED) + "\n")
    for path in ("data.items", ".data.items"):
        (document,) = Corpus("api.json", records=path)
        assert document == Document("7", "One.")
        assert document.source == "api.json, data.items, item 1"
    for path in ("datas", "data.rows", "data.n", "data.n.x"):
        with pytest.raises(CorpusError, match=r"^api\.json"):
            list(Corpus("api.json", records=path))


@pytest.mark.parametrize("path", [".", "by.name"])
def test_records_by_key(write, path):
    """A field called like the column of the keys is renamed."""
    films = {"f1": {"text": "One.", "key": "x"}, "f2": {"text": "Two."}, "f3": 4}
    write("films.json", json.dumps(films if path == "." else {"by": {"name": films}}))
    documents, [error], _ = read("films.json", records=path)
    first = Document("f1", "One.", None, {"column.key": "x"})
    assert documents == [first, Document("f2", "Two.")]
    assert str(error) == f"films.json, {path}, 'f3': not a JSON object but 4"


def test_texts_inside_of_columns(write):
    """Their paths are named with dots, also through lists; errors propose one that works."""
    talks = [{"id": n, "parts": [{"said": f"Hello {n}."}, {"said": "Bye."}]} for n in (1, 2)]
    write("x.json", json.dumps({"type": "chats", "data": {"talks": talks}}, indent=1))
    with pytest.raises(CorpusError, match=r"--records data\.talks$"):
        list(Corpus("x.json"))
    with pytest.raises(CorpusError, match=r"--text-column parts\.said$"):
        list(Corpus("x.json", records="data.talks"))
    with pytest.raises(BadRowError, match=r"parts\.said$"):
        list(Corpus("x.json", records="data.talks", text_columns="parts"))
    write("y.json", json.dumps([{"message": {"author": "me", "content": {"parts": ["a", "b c"]}}}]))
    with pytest.raises(BadRowError, match=r"message\.content\.parts$"):
        list(Corpus("y.json"))
    assert next(iter(Corpus("y.json", text_columns="message.content.parts"))).text == "a b c"
    found = list(Corpus("x.json", records="data.talks", text_columns="parts.said"))
    assert [(one.id, one.text) for one in found] == [("1", "Hello 1. Bye."), ("2", "Hello 2. Bye.")]
