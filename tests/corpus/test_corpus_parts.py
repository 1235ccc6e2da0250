"""Files read in parts, as by other machines: same documents, errors and notices."""

from __future__ import annotations

import csv
import io
import json
import pickle
import random

import pytest

from semsearch import Corpus
from semsearch.corpus import parts
from semsearch.corpus.parts import Part, ReadPart, WholeFile, read_elsewhere
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


def table(count, newline="\n", text="Text {} of birds."):
    out = io.StringIO()
    writer = csv.writer(out, lineterminator=newline)
    writer.writerow(["id", "text", "year"])
    writer.writerows([f"d{number}", text.format(number), 1900 + number] for number in range(count))
    return out.getvalue()


def json_lines(count):
    rows = ({"_id": str(n), "text": f"Täxt {n}", "tags": ["a", n]} for n in range(count))
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


@pytest.mark.parametrize("ahead", [0, 1, 70])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_csv(write, ahead, newline):
    nodes = same(write("a.csv", table(200, newline)), ahead)
    assert len(nodes.found) > 5
    assert all(isinstance(found, ReadPart) for found in nodes.found)
    assert sum(len(found.documents) for found in nodes.found) == 200  # also those read ahead


@pytest.mark.parametrize("ahead", [0, 70])
def test_json_lines(write, ahead):
    nodes = same(write("a.jsonl", json_lines(200)), ahead)
    assert len(nodes.found) > 5
    assert all(isinstance(found, ReadPart) for found in nodes.found)


def test_random_tables(write, seed):
    """Cells with quotes, delimiters and all kinds of line ends; broken lines."""
    chance = random.Random(seed)
    pieces = ["bird", '"', '""', ",", "\n", "\r\n", "\r", " ", "ä", "7", "\t", "x" * 40]
    for number in range(60):
        out = io.StringIO()
        quoting = chance.choice([csv.QUOTE_ALL, csv.QUOTE_MINIMAL])
        end = chance.choice(["\n", "\r\n", "\r"])
        writer = csv.writer(out, quoting=quoting, lineterminator=end)
        writer.writerow(["id", "text", "year"])
        for row in range(chance.randrange(5, 120)):
            cell = "".join(chance.choices(pieces, k=chance.randrange(1, 12)))
            if chance.random() < 0.02:
                out.write(f"{row},{cell},1900{end}")
            else:
                writer.writerow([row, cell, 1900 + row])
        same(write(f"{number}.csv", out.getvalue().encode()), chance.choice([0, 3, 30]))
