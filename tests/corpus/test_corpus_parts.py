"""A file read in parts, as by other machines: same documents, errors and notices."""

from __future__ import annotations

import json
import pickle

import pytest

from semsearch import Corpus
from semsearch.corpus import parts
from semsearch.corpus.parts import Found, Part, ReadPart, read_elsewhere


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(parts, "PART_BYTES", 500)


def read_part(unit):
    """Read a part from a pickled copy, as another machine does."""
    if isinstance(unit, Part):
        return read_elsewhere(pickle.loads(pickle.dumps(unit)))  # noqa: S301 - ours
    return None


def read(name, ahead, found=None):
    """Documents with their sources and errors, in order; notices; the skipped rows."""

    def elsewhere(units):
        for unit in units:
            found.append(read_part(unit))
            yield unit, found[-1]

    lines, notices = [], []
    corpus = Corpus(name, on_bad_row=lambda error: lines.append(str(error)), notify=notices.append)
    reader = iter(corpus)
    reader.look_ahead(ahead)
    if found is not None:
        reader.elsewhere.read = elsewhere
    lines.extend((one, one.source, repr(one.metadata)) for one in reader)
    assert corpus.fraction_read in (1.0, None)
    return lines, notices, reader.skipped


@pytest.mark.parametrize("ahead", [0, 70])
def test_same_documents(write, ahead):
    rows = [f'd{number},"Text {number},\nof birds.",{1900 + number}' for number in range(200)]
    rows[90] += ",another cell"
    write("a.csv", "\n".join(["id,text,year", *rows]))
    records = ({"_id": f"{n}", "text": f"Täxt {n}", "tags": ["a", n]} for n in range(200))
    write("a.jsonl", "\n".join(json.dumps(record, ensure_ascii=False) for record in records))
    for name, bad in (("a.csv", [Found.BAD]), ("a.jsonl", [])):
        found = []
        assert read(name, ahead, found) == read(name, ahead)
        assert len(found) > 5
        assert [one for one in found if not isinstance(one, ReadPart)] == bad
