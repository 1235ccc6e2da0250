"""The output of scripts/bench; its timings are not tested."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

from scripts.bench import load
from semsearch import Document, Index

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
COMMAND = [sys.executable, "-m", "scripts.bench.peers"]
SENTENCES = [
    f"{who} {what} {where}."
    for who in ("A cat", "The old baker", "My neighbour", "A young engineer")
    for what in ("sleeps", "reads a letter", "repairs a bicycle", "whistles")
    for where in ("in the kitchen", "on the roof", "beside the river")
]


def bench(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
    )


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Path:
    file = tmp_path_factory.mktemp("bench") / "sentences.txt"
    file.write_text("\n".join([*SENTENCES, "", SENTENCES[0]]), "utf-8")
    return file


@pytest.fixture(scope="module")
def done(corpus) -> subprocess.CompletedProcess[str]:
    """A run of all sections, without txtai."""
    # A module that is None cannot be found, as if it were not installed.
    (corpus.parent / "sitecustomize.py").write_text("import sys; sys.modules['txtai'] = None")
    options = ["--corpus", corpus, "--systems", "ours,script,txtai", "--precisions", "fp32"]
    options += ["--repeats", 1, "--machine-seconds", 1, "--json", corpus.with_suffix(".json")]
    done = bench(*options, PYTHONPATH=f"{corpus.parent}{os.pathsep}{ROOT}")
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def results(corpus, done):
    return json.loads(corpus.with_suffix(".json").read_text("utf-8"))


def figures(value):
    """All spreads in a JSON value."""
    if isinstance(value, dict) and value.keys() == {"median", "low", "high"}:
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from figures(item)


def test_every_system_has_figures_in_every_section(results):
    assert [one["system"] for one in results["bulk"]] == ["ours fp32", "script"]
    assert [one["system"] for one in results["cold"]] == ["ours fp32", "script", "semsearch --help"]
    assert [one["system"] for one in results["warm"]] == ["ours fp32", "script"]
    assert results["left_out"].keys() == {"txtai"}
    assert results["versions"]["main"]["semsearch"]


def test_medians_lie_within_their_spreads(results):
    found = list(figures([results["bulk"], results["cold"], results["warm"]]))
    assert len(found) >= 2 * 4 + 3 + 2
    for one in found:
        assert 0 < one["low"] <= one["median"] <= one["high"]


def test_ratios_compare_with_the_peer(results):
    ours, script = results["bulk"]
    assert script["ratio"] == 1
    assert ours["ratio"] == pytest.approx(ours["rate"]["median"] / script["rate"]["median"])
    ours, script = results["warm"]
    assert ours["ratio"] == pytest.approx(script["seconds"]["median"] / ours["seconds"]["median"])


def test_systems_find_the_same_texts(results):
    assert [one["same_ten"] for one in results["warm"]] == [pytest.approx(1, abs=0.02), 1]


def test_texts_are_counted_once_and_cost_the_models_flops(results):
    [corpus] = results["corpora"]
    assert corpus["documents"] == len(SENTENCES)
    # 6 layers of 4 matrices 384 x 384 and 2 of 384 x 1536: 21.2 MFLOP; a token's attention adds
    # 6 x 4 x 384 for each token of its text, of which there are fewer than 16 here.
    matrices = 6 * 2 * (4 * 384 * 384 + 2 * 384 * 1536)
    assert matrices < 1e6 * corpus["megaflops_a_token"] < matrices + 6 * 4 * 384 * 16


def test_bound_is_computed_from_the_machine(results):
    machine, [corpus] = results["machine"], results["corpora"]
    assert machine["gflops"]["fp32"] > 0
    assert machine["memory_gigabytes_per_second"] > 0
    flops = corpus["tokens"] * corpus["megaflops_a_token"] * 1e6
    bound = corpus["documents"] * machine["gflops"]["fp32"] * 1e9 / flops
    assert [one["bound"] for one in results["bulk"]] == [pytest.approx(bound)] * 2


def test_tables_are_printed(done):
    for title in ("bulk: own", "cold: one query", "warm: one query", "machine: "):
        assert title in done.stdout


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_plot(corpus, tmp_path, suffix):
    pytest.importorskip("matplotlib", reason="pictures need the extra 'bench'")
    file = tmp_path / f"bars.{suffix}"
    options = ["--systems", "ours", "--precisions", "fp32", "--sections", "cold", "--repeats", 1]
    done = bench("--corpus", corpus, *options, "--plot", file)
    assert done.returncode == 0, done.stdout + done.stderr
    assert file.stat().st_size > 1000


def test_missing_peer_is_reported_in_one_line(done):
    assert "txtai is left out: txtai is not installed" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--systems", "ours,elastic"],
            "no 'elastic' among ours,script,script-bf16,openvino,",
        ),
        (["--repeats", "0"], "0 is less than 1"),
        (["--corpus", "no-such-file"], "no file no-such-file"),
    ],
)
def test_mistakes(arguments, message):
    done = bench(*arguments)
    assert done.returncode == 2
    assert message in done.stderr


def test_missing_texts_are_reported():
    environment = {key: value for key, value in os.environ.items() if key != "SEMSEARCH_DATA"}
    environment["PYTHONPATH"] = str(ROOT)
    done = subprocess.run(COMMAND, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 2
    assert "SEMSEARCH_DATA" in done.stderr


def test_serve(corpus):
    pytest.importorskip("aiohttp", reason="the clients need the extra 'bench'")
    file = corpus.with_name("serve.json")
    options = ["--corpus", corpus, "--systems", "ours", "--precisions", "auto", "--repeats", "1"]
    options += ["--clients", "2", "--seconds", "0.3", "--json", file]
    done = subprocess.run(
        [sys.executable, "-m", "scripts.bench.serve", *map(str, options)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    assert "2 clients" in done.stdout
    report = json.loads(file.read_text("utf-8"))
    assert report["corpus"]["documents"] == report["queries"] == len(SENTENCES)
    [only] = report["loads"]
    assert [only["system"], only["clients"], only["failed"]] == ["ours auto", 2, 0]
    assert [only["ratio"], only["same_ten"]] == [1, 1]
    assert 0 < only["p50_seconds"]["median"] <= only["p99_seconds"]["median"]
    assert only["rate"]["median"] > 0


def test_clients_wait_for_answers_and_failures_are_counted(monkeypatch):
    monkeypatch.setattr(load, "WARM_SECONDS", 0)
    asked: list[int] = []
    running = 0

    async def ask(number):
        nonlocal running
        asked.append(number)
        running += 1
        assert running <= 3
        await asyncio.sleep(0.001)
        running -= 1
        if number == 4:
            raise OSError

    report = asyncio.run(load.under_load(ask, 5, 3, 0.2))
    assert report.clients == 3
    assert set(asked) == set(range(5))
    assert report.failed == asked.count(4)
    # Queries sent before the end may be answered after it, at most one per client.
    assert 0 <= len(asked) - report.failed - round(report.rate * 0.2) <= 3


def test_scale(tmp_path):
    texts = [f"{sentence} {number}" for number in range(9) for sentence in SENTENCES][:400]
    file = tmp_path / "data" / "corpora" / "wordnet_definitions.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    for name, count in {"definitions": len(texts), "queries": 300}.items():
        rows = numpy.random.default_rng(count).standard_normal((count, 16), numpy.float32)
        rows /= numpy.linalg.norm(rows, axis=1, keepdims=True)
        numpy.save(tmp_path / f"{name}.npy", rows)
    options = ["--sizes", "600", "--peers", "--folder", tmp_path, "--json", tmp_path / "out.json"]
    done = subprocess.run(
        [sys.executable, "-m", "scripts.bench.scale", *map(str, options)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT), "SEMSEARCH_DATA": str(tmp_path / "data")},
    )
    assert done.returncode == 0, done.stderr
    assert "failed" not in done.stderr
    measured = json.loads((tmp_path / "out.json").read_text())["600"]
    assert measured["recall"] == 1
    assert [measured[f"recall {share}"] for share in ("50 %", "5 %", "0.5 %", "0.01 %")] == [1] * 4
    assert all(value > 0 for value in measured.values())
    vectors = numpy.load(tmp_path / "made-600.npy")
    numpy.testing.assert_array_equal(vectors[:400], numpy.load(tmp_path / "definitions.npy"))
    numpy.testing.assert_allclose(numpy.linalg.norm(vectors, axis=1), 1, rtol=1e-5)


def test_queries_from_the_shell(tmp_path):
    with Index.create(tmp_path / "one", "hashing") as index:
        index.add([Document("a", "A text.")])
    done = subprocess.run(
        [sys.executable, "-m", "scripts.bench.shell"]
        + ["--index", str(tmp_path / "one"), "--repeats", "1"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "both ways print the same bytes"
    ways = ("no service", "by a service")
    for name in ("table", "jsonl"):
        assert [way for way in ways if f"query --format {name}, {way}" in done.stdout] == list(ways)
    assert done.stderr.splitlines()[-1].startswith("stopped serving one at ")


def test_typed_queries(tmp_path, program, package):
    program("chromium")
    package("playwright")
    films = [
        {"title": "M", "year": 1931, "genres": ["Crime"], "cast": [], "extract": "A city hunts."},
        {"title": "Lost", "year": 1931, "genres": [], "cast": []},  # left out: no description
        {"title": "Pond", "year": 1932, "genres": [], "cast": ["A. Fish"], "extract": "Fish swim."},
    ]
    (tmp_path / "corpora" / "movies").mkdir(parents=True)
    (tmp_path / "corpora" / "movies" / "movies-1930s.json").write_text(json.dumps(films), "utf-8")
    index = tmp_path / "films"
    done = subprocess.run(
        [sys.executable, "-m", "scripts.bench.type_queries"]
        + ["--index", str(index), "--repeats", "2", "--delay", "20"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "SEMSEARCH_DATA": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    with Index.open(index) as opened:
        assert [opened.get(name).title for name in ("0", "1")] == ["M", "Pond"]
        assert len(opened) == 2
    rows = [line.split("│")[1:-1] for line in done.stdout.splitlines() if line.startswith("│")]
    assert [row[0].strip() for row in rows] == ["1", "2", "p95"]
    for _, keys, answered, superseded, *times in rows[:-1]:
        assert int(answered) + int(superseded) == int(keys) == 43
        assert int(answered) >= 1
        assert all(float(time) >= 0 for time in times)
