"""The benchmarks run on a few texts; their figures are not tested."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import numpy
import pytest

from semsearch import Document, Index

pytestmark = pytest.mark.nightly

ROOT = Path(__file__).parent.parent
TEXTS = [
    f"{who} {what}."
    for who in ("A cat", "The old baker", "My neighbour")
    for what in ("sleeps", "reads a letter", "repairs a bicycle", "whistles")
]


def run(module: str, *options: object, data: Path | str = "", modules: Path = ROOT) -> str:
    """What a benchmark prints; `modules` is a folder of modules that hide installed ones."""
    done = subprocess.run(
        [sys.executable, "-m", f"scripts.{module}", *map(str, options)],
        capture_output=True,
        text=True,
        check=False,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(modules), str(ROOT)]),
            "SEMSEARCH_DATA": str(data),
        },
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def corpus(tmp_path) -> Path:
    file = tmp_path / "texts.txt"
    file.write_text("\n".join([*TEXTS, "", TEXTS[0]]), "utf-8")
    return file


@pytest.fixture
def small_data(tmp_path) -> Path:
    """A folder of data sets with a few texts each."""
    films = tmp_path / "corpora" / "movies" / "movies-1970s.json"
    films.parent.mkdir(parents=True)
    films.write_text(json.dumps([{"extract": text} for text in TEXTS]), "utf-8")
    definitions = films.parents[1] / "wordnet_definitions.jsonl"
    texts = [json.dumps({"text": f"{TEXTS[n % 12]} {n}"}) for n in range(400)]
    definitions.write_text("\n".join(texts), "utf-8")
    pairs = tmp_path / "sts" / "stsbenchmark"
    pairs.mkdir(parents=True)
    lines = [f"a\tb\tc\t{n}\t{n % 6}\t{TEXTS[0]}\t{TEXTS[n]}\n" for n in range(12)]
    for split in ("train", "dev", "test"):
        (pairs / f"sts-{split}.csv").write_text("".join(lines), "utf-8")
    scifact = tmp_path / "ir" / "scifact" / "scifact.zip"
    scifact.parent.mkdir(parents=True)
    documents = [(n, text, "['Nothing more is known.']") for n, text in enumerate(TEXTS)]
    claims = [(n, f"Who {text}", f"[{n}]") for n, text in enumerate(TEXTS[:3])]
    with ZipFile(scifact, "w") as archive:
        archive.writestr("corpus_train.csv", table(["doc_id", "title", "abstract"], documents))
        for split in ("validation", "train"):
            archive.writestr(f"claims_{split}.csv", table(["id", "claim", "cited_doc_ids"], claims))
    return tmp_path


def table(names, rows) -> str:
    return "\n".join(",".join(map(str, row)) for row in [names, *rows])


def figures(file: Path) -> dict:
    return json.loads(file.read_text("utf-8"))["figures"]


def test_peers(corpus, tmp_path):
    """A peer that is not installed is left out."""
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.modules['txtai'] = None")
    options = ["--corpus", corpus, "--systems", "ours,txtai", "--precisions", "fp32"]
    options += ["--repeats", 1, "--json", tmp_path / "out.json"]
    run("bench.peers", *options, modules=tmp_path)
    found = figures(tmp_path / "out.json")
    assert len(found) == 3
    for [row] in found.values():
        assert row["system"] == "ours fp32"
    median, low, high = found["bulk: own, 12 texts"][0]["texts/s"]
    assert 0 < low <= median <= high


def test_serve(corpus, tmp_path):
    pytest.importorskip("aiohttp", reason="the clients need the extra 'bench'")
    options = ["--corpus", corpus, "--systems", "ours", "--precisions", "auto", "--repeats", 1]
    options += ["--clients", 2, "--seconds", 0.3, "--json", tmp_path / "out.json"]
    run("bench.serve", *options)
    [row] = figures(tmp_path / "out.json")["2 clients"]
    assert row["failed"] == 0
    assert row["same ten, %"] == 100


def test_scale(small_data, tmp_path):
    for name, count in {"definitions": 400, "queries": 600}.items():
        rows = numpy.random.default_rng(count).standard_normal((count, 16), numpy.float32)
        numpy.save(tmp_path / f"{name}.npy", rows / numpy.linalg.norm(rows, axis=1, keepdims=True))
    options = ["--sizes", 600, "--folder", tmp_path, "--plot", tmp_path / "curves.svg"]
    run("bench.scale", *options, "--json", tmp_path / "out.json", data=small_data)
    [rows] = figures(tmp_path / "out.json").values()
    measured = {row[""]: row["600"] for row in rows}
    names = ["recall", *(f"recall {share}" for share in ("50 %", "5 %", "0.5 %", "0.01 %"))]
    assert [measured[name] for name in names] == [1] * 5
    assert {"process ms", "add 100 ms", "p50 bm25 english ms"} <= measured.keys()
    assert (tmp_path / "curves.svg").stat().st_size > 1000


def test_quantization(small_data):
    assert "int8" in run("bench.quantization", "--texts", 6, "--repeats", 1, data=small_data)


def test_training(small_data):
    pytest.importorskip("datasets", reason="training needs the extra 'train'")
    assert "ours" in run("bench.training", "--pairs", 12, "--repeats", 1, data=small_data)


def test_typing(tmp_path, program, package):
    program("chromium")
    package("playwright")
    with Index.create(tmp_path / "one", "hashing") as index:
        index.add([Document("a", "A detective hunts a killer.")])
    options = ["--index", tmp_path / "one", "--repeats", 2, "--delay", 20]
    run("bench.type_queries", *options, "--json", tmp_path / "out.json")
    [rows] = figures(tmp_path / "out.json").values()
    assert [row["run"] for row in rows] == [1, 2, "p95"]
    assert all(row["answered"] + row["superseded"] == row["keys"] == 43 for row in rows[:2])
