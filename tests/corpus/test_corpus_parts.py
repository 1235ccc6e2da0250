"""A file read in parts, as by other machines: same documents, errors and notices."""

from __future__ import annotations

import json
import pickle

import pytest

from semsearch import Corpus
from semsearch.corpus import parts
from semsearch.corpus.parts import Found, Part, ReadPart, WholeFile, read_elsewhere
from semsearch.errors import CorpusError


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(parts, "PART_BYTES", 500)


class Nodes:
    """Reads parts from pickled copies, as other machines do."""

    def __init__(self):
        self.units, self.found = [], []

    def read(self, units):
        for unit in units:
            found = None
            if isinstance(unit, (Part, WholeFile)):
                found = read_elsewhere(pickle.loads(pickle.dumps(unit)))  # noqa: S301 - ours
                self.units.append(unit)
                self.found.append(found)
            yield unit, found


def read(paths, nodes=None, ahead=0, **options):
    """Documents with their sources and errors, in order; notices; the skipped rows."""
    lines, notices = [], []
    corpus = Corpus(
        paths,
        on_bad_row=lambda error: lines.append((str(error), error.document_id)),
        notify=notices.append,
        **options,
    )
    reader = iter(corpus)
    reader.look_ahead(ahead)
    if nodes is not None:
        reader.elsewhere.read = nodes.read
    try:
        lines.extend((one, one.source, repr(one.metadata)) for one in reader)
    except CorpusError as error:
        lines.append(str(error))
    assert corpus.fraction_read in (1.0, None) or isinstance(lines[-1], str)
    return lines, notices, reader.skipped


def same(paths, ahead=0, **options):
    nodes = Nodes()
    assert read(paths, nodes, ahead, **options) == read(paths, None, ahead, **options)
    return nodes


def json_lines(count):
    rows = ({"_id": str(n), "text": f"Täxt {n}", "tags": ["a", n]} for n in range(count))
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


@pytest.mark.parametrize("ahead", [0, 70])
def test_same_documents(write, ahead):
    rows = [f'd{number},"Text {number},\nof birds.",{1900 + number}' for number in range(200)]
    rows[90] += ",another cell"
    write("a.csv", "\n".join(["id,text,year", *rows]))
    write("a.jsonl", json_lines(200))
    for name, bad in (("a.csv", [Found.BAD]), ("a.jsonl", [])):
        nodes = same(name, ahead)
        assert len(nodes.found) > 5
        assert [found for found in nodes.found if not isinstance(found, ReadPart)] == bad
