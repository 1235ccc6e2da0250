"""scripts/bench/quantization runs on sets of a few texts; exact figures are not tested."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
TEXTS = [
    f"{who} {what}."
    for who in ("A cat", "The old baker", "My neighbour")
    for what in ("sleeps", "reads a letter", "repairs a bicycle", "whistles")
]


def table(names, rows):
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerows([names, *rows])
    return text.getvalue()


@pytest.fixture
def small_data(tmp_path):
    """The three data sets that it reads, with a few texts each."""
    films = tmp_path / "corpora" / "movies" / "movies-1970s.json"
    films.parent.mkdir(parents=True)
    films.write_text(json.dumps([{"extract": text} for text in TEXTS]), "utf-8")
    pairs = tmp_path / "sts" / "stsbenchmark" / "sts-test.csv"
    pairs.parent.mkdir(parents=True)
    lines = [f"a\tb\tc\t{n}\t{n % 6}\t{TEXTS[0]}\t{TEXTS[n]}\n" for n in range(12)]
    pairs.write_text("".join(lines), "utf-8")
    scifact = tmp_path / "ir" / "scifact" / "scifact.zip"
    scifact.parent.mkdir(parents=True)
    documents = [(n, text, "['Nothing more is known.']") for n, text in enumerate(TEXTS)]
    claims = [(n, f"Who {text}", f"[{n}]") for n, text in enumerate(TEXTS[:3])]
    with ZipFile(scifact, "w") as archive:
        archive.writestr("corpus_train.csv", table(["doc_id", "title", "abstract"], documents))
        for split in ("validation", "train"):
            archive.writestr(f"claims_{split}.csv", table(["id", "claim", "cited_doc_ids"], claims))
    return tmp_path


def run(*options, data):
    return subprocess.run(
        [sys.executable, "-m", "scripts.bench.quantization", *options],
        capture_output=True,
        text=True,
        check=False,
        env={
            **os.environ,
            "COLUMNS": "160",
            "PYTHONPATH": str(ROOT),
            "SEMSEARCH_DATA": str(data),
        },
    )


def test_recipe_is_measured(small_data):
    options = ["--texts", "6", "--repeats", "1", "--recipe", "smoothing"]
    done = run(*options, data=small_data)
    assert done.returncode == 0, done.stderr
    floats, smoothing = [line.split("│")[1:-1] for line in done.stdout.splitlines() if "│" in line]
    assert floats[0].strip() in {"bf16", "fp32"}
    assert smoothing[0].strip() == "smoothing"
    rate, agreement, _, _, cosine, least = [cell.split()[0] for cell in smoothing[1:]]
    assert float(rate) > 0
    assert 0.5 < float(agreement) <= 1
    assert 0.9 < float(least) <= float(cosine) < 1


def test_missing_data_are_reported():
    done = run(data="")
    assert done.returncode == 2
    assert "SEMSEARCH_DATA must name a folder" in done.stderr
