"""The ``semsearch inspect`` command: tokens, vectors and heat maps."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from functools import partial
from io import StringIO

import numpy
import pytest
from rich.cells import cell_len
from rich.console import Console

from semsearch.cli import heatmap
from semsearch.explore.inspect import token_similarity
from tests.cli.conftest import code_of, invoke

HASHING = ("--encoder", "hashing")
LEFT, RIGHT = "He will get scared", "She will get the drinks"


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Call `semsearch inspect` in an empty folder."""
    monkeypatch.chdir(tmp_path)

    return partial(invoke, "inspect")


class TestOneText:
    def test_jsonl(self, run):
        (line,) = run(LEFT, "--format", "jsonl").stdout.splitlines()
        record = json.loads(line)
        ids = [token["id"] for token in record["tokens"]]
        assert ids == [101, 2002, 2097, 2131, 6015, 102]
        assert record["tokens"][0]["kind"] == "special"
        assert len(record["vector"]) == record["dimension"] == 384
        assert numpy.linalg.norm(record["vector"]) == pytest.approx(1, abs=1e-4)
        assert record["max_tokens"] == 254
        assert record["pooling"] == "mean"

    def test_truncated_tokens_are_reported(self, run):
        output = run("word " * 300 + "last").stdout
        assert "254 of 301" in output
        assert "1,269 of 1,504: word word" in output  # the first character that is not read

    def test_several_encoders(self, run):
        both = ("--encoder", "hashing:8", "--encoder", "hashing")
        lines = run("a b", *both, "--format", "jsonl").stdout.splitlines()
        assert [json.loads(line)["encoder"] for line in lines] == ["hashing:8", "hashing"]
        output = run("a b", *both).stdout
        assert output.index("hashing:8\n") < output.index("hashing\n")


class TestHeatMap:
    def test_jsonl_is_the_matrix(self, run):
        record = json.loads(run("a b", "--against", "b c a", *HASHING, "--format", "jsonl").stdout)
        assert record["cosines"] == [[0, 0, 1], [1, 0, 0]]
        assert [token["piece"] for token in record["right"]["tokens"]] == ["b", "c", "a"]
        assert record["sentence_cosine"] == pytest.approx(2 / 6**0.5, abs=1e-5)

    @pytest.mark.parametrize("colours", [None, "truecolor"])
    def test_it_fits_a_narrow_terminal(self, monkeypatch, colours):
        out = Console(
            file=StringIO(),
            width=80,
            force_terminal=colours is not None,
            color_system=colours,
            highlight=False,
        )
        monkeypatch.setattr(heatmap, "console", lambda: out)
        words = " ".join(f"extraordinarily{number} 漢字{number}" for number in range(60))
        heatmap.print_heat_map(token_similarity("hashing", words, words))
        output = out.file.getvalue()
        assert ("\x1b[" in output) == (colours is not None)
        assert " 40 of 120 " in output
        assert " 8 of 120 " in output
        if colours is None:
            plain = [line for line in output.splitlines() if line.startswith(("extra", "漢字"))]
            assert len(plain) == 40
            assert {len(line.split()) for line in plain} == {9}
            assert max(cell_len(line) for line in output.splitlines()) <= 80

    def test_svg(self, run, tmp_path):
        left = "$x_$ costs \x1b 😀 \uffff a_b^ " + "and so on " * 100
        run(left, "--against", RIGHT, "--output", "heat.SVG", *HASHING, "--encoder", "hashing:8")
        root = ElementTree.parse(tmp_path / "heat.SVG").getroot()  # noqa: S314 - ours
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        texts = ["".join(node.itertext()) for node in root.iter("{http://www.w3.org/2000/svg}text")]
        assert {"She", "drinks", "x_", "a_b", "hashing", "hashing:8", "cosine"} <= set(texts)
        assert texts.count("so") == 2 * 20  # of 64 words drawn: x_, costs, a_b, and so on …


def test_without_matplotlib(run, monkeypatch):
    monkeypatch.setattr(heatmap, "find_spec", lambda name: None)
    result = run("a", "--against", "b", "--output", "heat.png", *HASHING, code=1)
    assert code_of(result) == "missing-extra"
