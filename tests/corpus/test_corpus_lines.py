"""One text per line, and records in nested JSON."""

from __future__ import annotations

import json

import pytest

from semsearch.corpus import Corpus
from semsearch.errors import CorpusError
from semsearch.records import Document


def refused(name, **options):
    """The message of the error that reading raises."""
    with pytest.raises(CorpusError) as error:
        list(Corpus(name, **options))
    return str(error.value)


class TestLines:
    def test_one_text_per_line(self, write):
        write("queries.log", 'One, and "more.\r\n\n \n  Two\tand 3. \nLast')
        documents = list(Corpus("queries.log", format="lines"))
        assert [one.text for one in documents] == ['One, and "more.', "  Two\tand 3. ", "Last"]
        assert [one.source for one in documents] == [f"queries.log:{n}" for n in (1, 4, 5)]

    def test_bad_lines(self, write):
        write("queries.txt", "größer\n".encode() + b"caf\xe9\ngood\n")
        bad = []
        documents = list(Corpus("queries.txt", format="lines", on_bad_row=bad.append))
        assert documents == [Document(None, "größer"), Document(None, "good")]
        assert str(bad[0]).startswith("queries.txt:2: text holds byte 0xe9, which is not UTF-8")
        write("blank.txt", "\n \n")
        assert refused("blank.txt", format="lines").startswith("blank.txt")


NESTED = {"status": {"code": [1, 2]}, "data": {"n": 2, "items": [{"id": 7, "text": "One."}]}}


class TestRecords:
    @pytest.mark.parametrize("path", ["data.items", ".data.items"])
    def test_records_by_path(self, write, path):
        write("api.json", json.dumps(NESTED) + "\n")
        (document,) = Corpus("api.json", records=path)
        assert document == Document("7", "One.")
        assert document.source == "api.json, data.items, item 1"

    def test_records_by_key(self, write):
        films = {"f1": {"text": "One.", "year": 1}, "f2": {"text": "Two."}, "f3": 4}
        bad = []
        write("films.json", json.dumps(films))
        assert list(Corpus("films.json", records=".", on_bad_row=bad.append)) == [
            Document("f1", "One.", None, {"year": 1}),
            Document("f2", "Two."),
        ]
        assert [str(error) for error in bad] == ["films.json, ., 'f3': not a JSON object but 4"]
        write("films.json", json.dumps({"by": {"name": films}}))
        assert len(list(Corpus("films.json", records="by.name", on_bad_row=bad.append))) == 2

    def test_invalid_paths(self, write):
        write("api.json", json.dumps(NESTED))
        for path in ("datas", "data.rows", "data.n", "data.n.x"):
            assert refused("api.json", records=path).startswith("api.json")

    @pytest.mark.parametrize(
        "content",
        [
            '{"data": {"items": [{"text": "x"}',
            '{"data": {"items": [{"text": "x"}, nope]}}',
            "{1: 2}",
            '{"n": 1e, "data": {}}',
            '{"data": {"items": []}}',
            '{"x": ' + "[" * 100_000,
        ],
    )
    def test_broken_json(self, write, content):
        write("api.json", content)
        assert refused("api.json", records="data.items").startswith("api.json")

    def test_values_before_the_records_are_skipped(self, write):
        before = ", ".join(f'"k{number}": "{"x" * 1000}"' for number in range(5000))
        write("api.json", "{" + before + ', "items": [{"text": "One."}]}')
        assert [document.text for document in Corpus("api.json", records="items")] == ["One."]
        refused("api.json", records="rows")
