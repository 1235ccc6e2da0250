"""Short labels, table cells, box plots and the provenance of reports."""

from __future__ import annotations

import math
import re
import shlex

import numpy
import pytest

from semsearch.evaluation import Difference, Interval
from semsearch.evaluation.datasets import ScoredPair, StsSet
from semsearch.evaluation.report import provenance
from semsearch.evaluation.report.figures import draw_scatter
from semsearch.evaluation.report.labels import (
    LABEL_CHARACTERS,
    difference_cells,
    interval_cell,
    rate_cell,
    short_name,
    short_names,
    shortened,
)
from semsearch.evaluation.report.provenance import contents_digest


def test_long_paths_keep_their_last_part():
    assert short_name("minilm") == "minilm"
    assert short_name("glove:/home/me/vectors/glove.6B.300d.txt") == "glove:…/glove.6B.300d.txt"
    assert short_name("hybrid:glove:/home/me/vectors/g.txt") == "hybrid:glove:…/g.txt"
    assert short_name("a/model/of/mine+cross-encoder:b/c/d") == "…/mine+cross-encoder:…/d"
    assert len(short_name("x" * 200)) <= LABEL_CHARACTERS


def test_labels_are_unique():
    systems = [f"glove:/a/long/folder/number/{n}/vectors.txt" for n in range(3)]
    assert [*short_names(systems).values()] == [
        "glove:…/vectors.txt",
        "glove:…/vectors.txt (2)",
        "glove:…/vectors.txt (3)",
    ]


def test_unknown_values_are_empty_cells():
    nan = math.nan
    assert interval_cell(Interval(nan, nan, nan)) == ""
    assert difference_cells(Difference(nan, nan, nan, nan)) == ["", ""]
    assert interval_cell(Interval(1, nan, nan)) == "1.00"
    assert difference_cells(Difference(1, nan, nan, 1.0)) == ["+1.00", "1.000"]
    assert rate_cell(10, nan) == ""
    assert [rate_cell(10, 0.005), rate_cell(10, 4)] == ["2,000", "2.5"]
    assert difference_cells(Difference(-0.001, -1, 2, 0.0001)) == [
        "+0.00 [-1.00,\N{NO-BREAK SPACE}+2.00]",
        "< 0.001",
    ]
    assert difference_cells(Difference(1, 1, 1, 0.002, p_is_bound=True))[1] == "≤ 0.002"


def test_shortened_texts_have_one_line():
    assert shortened("a\n b\t c", 5) == "a b c"
    assert shortened("猫" * 10, 5) == "猫猫猫猫…"


def test_command_is_quoted_for_the_shell():
    arguments = ["eval", "sts", "--data", "my pairs.csv", "--system", "it's $HOME"]
    found = provenance(arguments, {"minilm": "0123456789abcdef0123"})
    assert shlex.split(found.command) == ["semsearch", *arguments]
    assert found.facts["fingerprint of minilm"] == "0123456789abcdef"
    assert found.facts["torch"].startswith("2.13.0")
    assert found.facts["bootstrap"] == "1,000 resamples, seed 0"
    assert int(found.facts["cores"]) >= 1
    assert found.facts["processor"]


def test_digest_depends_on_the_data_not_on_the_name():
    pair = ScoredPair("a", "b", 1.0)
    first = StsSet("one", "test", {"part": [pair]}, 0)
    assert contents_digest(first) == contents_digest(first._replace(name="two"))
    other = first._replace(subsets={"part": [pair._replace(gold=2.0)]})
    assert contents_digest(first) != contents_digest(other)


@pytest.mark.parametrize(
    ("gold", "is_boxes"), [([0, 0, 2, 2], True), ([0, 0.5] * 2, False), ([*range(12)] * 2, False)]
)
def test_integer_gold_scores_have_box_plots(gold, is_boxes):
    """The axis of box plots has exactly one tick per gold score."""
    scores = numpy.linspace(0.1, 0.9, len(gold))
    drawing = draw_scatter(numpy.array(gold, float), scores, (0, 1), "a title", "in words")
    texts = re.findall(r">([^<>\n]+)</text>", drawing)
    ticks = texts[: texts.index("gold")]
    assert (ticks == [str(level) for level in sorted(set(gold))]) is is_boxes
