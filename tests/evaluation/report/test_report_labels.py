"""Short labels, table cells, box plots and the provenance of reports."""

from __future__ import annotations

import math
import shlex
from pathlib import Path

from semsearch.evaluation.report import provenance
from semsearch.evaluation.report.labels import (
    LABEL_CHARACTERS,
    rate_cell,
    short_name,
    shortened,
)


def test_long_paths_keep_their_last_part():
    assert short_name("minilm") == "minilm"
    assert short_name("glove:/home/me/vectors/glove.6B.300d.txt") == "glove:…/glove.6B.300d.txt"
    assert short_name("hybrid:glove:/home/me/vectors/g.txt") == "hybrid:glove:…/g.txt"
    assert short_name("a/model/of/mine+cross-encoder:b/c/d") == "…/mine+cross-encoder:…/d"
    assert len(short_name("x" * 200)) <= LABEL_CHARACTERS


def test_rates():
    assert [rate_cell(10, seconds) for seconds in (math.nan, 0.005, 4)] == ["", "2,000", "2.5"]


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
    cpus = Path("/proc/cpuinfo").read_text("utf-8")
    assert f": {found.facts['processor']}\n" in cpus
    assert found.facts["ir-measures"] != "not installed"
