"""The ``semsearch eval`` commands; the measures are tested in tests/evaluation."""

from __future__ import annotations

import json
import shutil
from functools import partial

import pytest
from scipy.stats import spearmanr

from semsearch import Document, Index
from semsearch.encoders import load_encoder
from tests.cli.conftest import invoke

PAIRS = [
    ("the cat sleeps", "a cat is asleep", 4.5),
    ("the cat sleeps", "the cat sleeps", 5.0),
    ("rain is forecast", "the market fell", 0.0),
    ("the market fell", "the market rose", 2.5),
    ("he reads a book", "she reads the book", 3.0),
    ("snow again", "a game of chess", 0.5),
]


run = partial(invoke, "eval")


@pytest.fixture
def pairs(tmp_path):
    rows = [("sentence1", "sentence2", "score"), *PAIRS, ("no gold", "here", "")]
    (tmp_path / "pairs.csv").write_text("\n".join(",".join(map(str, row)) for row in rows))
    return "pairs.csv"


@pytest.fixture
def beir(tmp_path):
    folder = tmp_path / "pets"
    (folder / "qrels").mkdir(parents=True)
    documents = [("d1", "Cats", "they sleep all day"), ("d2", "Dogs", "they bark"), ("d3", "", "x")]
    lines = [json.dumps({"_id": d, "title": title, "text": text}) for d, title, text in documents]
    (folder / "corpus.jsonl").write_text("\n".join(lines))
    queries = [("q1", "who barks: dogs"), ("q2", "cats sleep")]
    lines = [json.dumps({"_id": name, "text": text}) for name, text in queries]
    (folder / "queries.jsonl").write_text("\n".join(lines))
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td2\t1\nq2\td1\t1\n")
    return "pets"


def test_sts_as_jsonl(pairs):
    output = run("sts", "--data", pairs, "--system", "hashing", "--format", "jsonl").stdout
    [line] = map(json.loads, output.splitlines())
    vectors = [load_encoder("hashing").encode_documents(pair[:2]) for pair in PAIRS]
    cosines = [float(left @ right) for left, right in vectors]
    expected = 100 * spearmanr(cosines, [gold for *_, gold in PAIRS])[0]
    assert line["spearman"] == pytest.approx(expected, abs=1e-3)
    assert line["spearman_low"] <= line["spearman"] <= line["spearman_high"]
    values = [line[name] for name in ("dataset", "aggregation", "system", "n", "unscored")]
    assert values == ["pairs", "all", "hashing", 6, 1]


class TestIr:
    def test_jsonl(self, beir):
        systems = ["--system", "bm25", "--system", "hashing", "--system", "hybrid:hashing"]
        arguments = ["--data", beir, *systems, "--format", "jsonl", "--per-query"]
        lines = [json.loads(line) for line in run("ir", *arguments).stdout.splitlines()]
        assert len(lines) == 3 * 5
        first = lines[0]
        assert (first["dataset"], first["system"], first["measure"]) == ("pets", "bm25", "nDCG@10")
        assert (first["n"], first["value"]) == (2, 100)
        assert first["per_query"] == {"q1": 100, "q2": 100}
        assert [one["from"] for one in lines[-1]["differences"]] == ["bm25", "hashing"]

    def test_runs_are_written_beside_those_that_exist(self, beir, tmp_path):
        arguments = ["--system", "bm25", "--measure", "RR@10", "--runs", "runs"]
        run("ir", "--data", beir, *arguments)
        [file] = (tmp_path / "runs").iterdir()
        assert file.name == "pets.bm25.run"
        before = file.read_bytes()
        shutil.copytree(tmp_path / beir, tmp_path / "other" / beir)
        run("ir", "--data", beir, "--data", f"other/{beir}", *arguments)
        assert file.read_bytes() == before
        assert len([*(tmp_path / "runs").iterdir()]) == 3
        again = run("ir", "--data", beir, "--system", f"run:runs/{file.name}", "--format", "jsonl")
        line = json.loads(again.stdout.splitlines()[0])
        assert (line["value"], line["seconds"]) == (100, None)

    def test_existing_index(self, beir, tmp_path):
        with Index.create(tmp_path / "pets.index", "hashing") as index:
            texts = {"d1": "Cats\nthey sleep all day", "d2": "Dogs\nthey bark", "d3": "x"}
            index.add(Document(name, text) for name, text in texts.items())
        questions = ["--queries", f"{beir}/queries.jsonl", "--qrels", f"{beir}/qrels/test.tsv"]
        asked = ["--index", "pets.index", *questions, "--format", "jsonl"]
        lines = [json.loads(line) for line in run("ir", *asked).stdout.splitlines()]
        assert list(dict.fromkeys(line["system"] for line in lines)) == ["hashing", "bm25"]
        assert {line["dataset"] for line in lines} == {"queries"}
        hybrid = run("ir", *asked, "--system", "hybrid:hashing", "--report", "report").stdout
        assert json.loads(hybrid.splitlines()[0])["value"] == 100
        assert (tmp_path / "report" / "index.html").exists()


STS = ("sts", "--data", "pairs.csv", "--system", "hashing")
IR = ("ir", "--data", "pets", "--system", "bm25")


@pytest.mark.parametrize("arguments", [STS, IR])
def test_report_has_its_command(pairs, beir, tmp_path, monkeypatch, arguments):
    whole = [*arguments, "--report", "a b/out"]
    monkeypatch.setattr("sys.argv", ["semsearch", "eval", *whole])
    run(*whole)
    report = (tmp_path / "a b" / "out" / "index.html").read_text("utf-8")
    command = f"semsearch eval {' '.join(arguments)} --report &#39;a b/out&#39;"
    assert f"<code>{command}</code>" in report
