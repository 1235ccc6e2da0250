"""The ``semsearch inspect`` command: tokens, vectors and heat maps."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from functools import partial
from io import StringIO

import numpy
import pytest
from matplotlib.image import imread
from rich.cells import cell_len
from rich.console import Console

from semsearch.cli import heatmap
from semsearch.inspection import token_similarity
from tests.cli.conftest import invoke

pytestmark = pytest.mark.slow

HASHING = ("--encoder", "hashing")
LEFT, RIGHT = "He will get scared", "She will get the drinks"


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Call `semsearch inspect` in an empty folder."""
    monkeypatch.chdir(tmp_path)

    return partial(invoke, "inspect")


def cells(output, first):
    """The words of the line that begins with `first`."""
    (line,) = [line.split() for line in output.splitlines() if line.split()[:1] == [first]]
    return line


class TestOneText:
    def test_table(self, run):
        output = run(LEFT).stdout
        lines = [line.split() for line in output.splitlines()]
        assert ["tokens", "4", "of", "4", "are", "read,", "and", "2", "special", "ones"] in lines
        assert cells(output, "4")[1:-1] == ["get", "2131", "yes", "text", "1", "8-11", "get"]
        assert cells(output, "6")[1:-1] == ["[SEP]", "102", "yes", "special", "1"]
        assert cells(output, "pooling") == ["pooling", "mean"]
        assert "cosine of the mean with the sentence  1.000" in output

    def test_jsonl(self, run):
        (line,) = run(LEFT, "--format", "jsonl").stdout.splitlines()
        record = json.loads(line)
        ids = [token["id"] for token in record["tokens"]]
        assert ids == [101, 2002, 2097, 2131, 6015, 102]
        assert record["tokens"][0]["kind"] == "special"
        assert len(record["vector"]) == record["dimension"] == 384
        assert numpy.linalg.norm(record["vector"]) == pytest.approx(1, abs=1e-4)
        assert record["max_tokens"] == 254
        assert set(record["poolings"]) == {"first_mean", "first_sentence", "mean_sentence"}

    def test_truncated_tokens_are_reported(self, run):
        output = run("word " * 300 + "last").stdout
        assert "254 of 301 are read" in output
        assert "cut off" in output
        assert "from character 1,269 of 1,504: word word" in output

    def test_many_words(self, run):
        output = run("many words " * 5000, *HASHING).stdout
        assert "10,000 of 10,000 are read" in output
        assert "… 9,488 more; --format jsonl has all" in output
        (line,) = run("many words " * 5000, *HASHING, "--format", "jsonl").stdout.splitlines()
        assert len(json.loads(line)["tokens"]) == 10_000

    def test_several_encoders(self, run):
        both = ("--encoder", "hashing:8", "--encoder", "hashing")
        lines = run("a b", *both, "--format", "jsonl").stdout.splitlines()
        assert [json.loads(line)["encoder"] for line in lines] == ["hashing:8", "hashing"]
        output = run("a b", *both).stdout
        assert output.index("hashing:8\n") < output.index("hashing\n")

    def test_control_characters_are_not_printed(self, run):
        text = "red \x1b[31m \u202eback"
        for more in ((), ("--against", text)):
            output = run(text, *HASHING, *more).stdout
            assert "\x1b" not in output
            assert "\u202e" not in output


class TestHeatMap:
    def test_the_cells_are_the_cosines(self, run):
        output = run(LEFT, "--against", RIGHT).stdout
        expected = token_similarity("minilm", LEFT, RIGHT)
        rows = [token.piece for token in expected.left.tokens]
        for name, row in zip(rows, expected.cosines, strict=True):
            line = next(line for line in output.splitlines() if line.startswith(f"{name} "))
            values = [float(value) for value in line.split()[1:]]
            numpy.testing.assert_allclose(values, row, atol=0.00501)
        assert "in both: will 0.90, get 0.49" in output

    def test_jsonl_is_the_matrix(self, run):
        record = json.loads(run("a b", "--against", "b c a", *HASHING, "--format", "jsonl").stdout)
        assert record["cosines"] == [[0, 0, 1], [1, 0, 0]]
        assert [token["piece"] for token in record["right"]["tokens"]] == ["b", "c", "a"]
        assert record["sentence_cosine"] == pytest.approx(2 / 6**0.5, abs=1e-5)

    def test_the_example_of_the_help_shows_two_meanings(self, run):
        brown, both = "a brown bear", "a polar bear cannot bear the noise"
        assert f'inspect "{brown}" --against "{both}"' in run("--help").stdout
        record = json.loads(run(brown, "--against", both, "--format", "jsonl").stdout)
        bear = [token["piece"] for token in record["left"]["tokens"]].index("bear")
        pieces = [token["piece"] for token in record["right"]["tokens"]]
        cosines = zip(pieces, record["cosines"][bear], strict=True)
        animal, verb = (cosine for piece, cosine in cosines if piece == "bear")
        assert animal == pytest.approx(0.87, abs=0.02)
        assert verb == pytest.approx(0.37, abs=0.02)

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
        assert "the first 40 of 120 rows" in output
        assert "the first 8 of 120 columns" in output
        if colours is None:
            plain = [line for line in output.splitlines() if line.startswith(("extra", "漢字"))]
            assert len(plain) == 40
            assert {len(line.split()) for line in plain} == {9}
            assert max(cell_len(line) for line in output.splitlines()) <= 80

    def test_png(self, run, tmp_path):
        result = run(LEFT, "--against", RIGHT, "--output", "heat.png", *HASHING)
        assert "heat.png written" in result.stderr
        assert (tmp_path / "heat.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
        height, width, _ = imread(tmp_path / "heat.png").shape
        assert min(height, width) > 300

    def test_svg(self, run, tmp_path):
        left = "$x_$ costs \x1b 😀 \uffff a_b^ " + "and so on " * 100
        run(left, "--against", RIGHT, "--output", "heat.SVG", *HASHING, "--encoder", "hashing:8")
        root = ElementTree.parse(tmp_path / "heat.SVG").getroot()  # noqa: S314 - ours
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        texts = ["".join(node.itertext()) for node in root.iter("{http://www.w3.org/2000/svg}text")]
        assert {"She", "drinks", "x_", "a_b", "hashing", "hashing:8", "cosine"} <= set(texts)
        assert any(text.startswith("rows: $x_$ costs") for text in texts)
        assert texts.count("so") == 2 * 20  # of 64 words drawn: x_, costs, a_b, and so on …

    def test_numbers_beside_an_unknown_word_are_legible(self, run, tmp_path):
        (tmp_path / "glove.txt").write_text("cat 1 0\nsat 0.1 1\n")
        glove = ["--encoder", "glove:glove.txt"]
        run("zzz cat", "--against", "cat sat", "--output", "heat.svg", *glove)
        root = ElementTree.parse(tmp_path / "heat.svg").getroot()  # noqa: S314 - ours
        styles = {
            "".join(node.itertext()): node.get("style")
            for node in root.iter("{http://www.w3.org/2000/svg}text")
        }
        assert "fill: #ffffff" in styles["1.00"]  # white on dark blue
        assert "fill: #ffffff" not in styles["0.10"]

    def test_image_reports_what_it_omits(self, run):
        result = run("中 " * 70, "--against", "b", "--output", "heat.png", *HASHING)
        assert "the first 64 tokens of at most 70 are drawn" in result.stderr
        assert "its font lacks some characters" in result.stderr

    def test_without_matplotlib(self, run, monkeypatch):
        monkeypatch.setattr(heatmap, "find_spec", lambda name: None)
        result = run("a", "--against", "b", "--output", "heat.png", *HASHING, code=1)
        assert "pip install 'semsearch[plot]'" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([" "], "the text is empty"),
        (["a", "--against", " "], "the text is empty"),
        (["a", "--encoder", "./no-model"], "no model folder ./no-model"),
        (["a", "--encoder", "bm25"], "bm25 has scores, not vectors"),
        (["a", "--encoder", "hashing:1"], "the dimension must be a number from 2"),
        (["a", "--output", "heat.png"], "name the other text with --against"),
        (
            ["a", "--against", "b", "--output", "heat.jpg"],
            "the suffix of an image must be .png or .svg",
        ),
        (["a", "--against", "b", "--output", "no/heat.png"], "the folder no does not exist"),
        (["a", "--against", "!", *HASHING], "finds no words in '!'"),
    ],
)
def test_mistakes_are_one_line(run, arguments, message):
    (line,) = run(*arguments, code=1).stderr.splitlines()
    assert line.startswith("Error: ")
    assert message in line


def test_unwritable_file(run, tmp_path):
    (tmp_path / "heat.png").mkdir()
    result = run("a", "--against", "b", "--output", "heat.png", *HASHING, code=1)
    assert "Error: heat.png: " in result.stderr
