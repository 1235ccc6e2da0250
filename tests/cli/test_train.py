"""``semsearch train``: options and errors; training itself is tested in tests/training.

golden/train.txt pre-trains, trains on pairs and indexes with the model.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from semsearch import Document, Index
from tests.cli.conftest import code_of, invoke

SHORT = ("--size", "tiny", "--vocabulary", 120, "--set", "max_tokens=32", "--batch-size", 4)
PAIRS = "\n".join(f"a cat {n},one cat {n % 7},{n % 6}" for n in range(40))


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Call `semsearch train` in a folder with scored pairs, pairs and a corpus."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.csv").write_text(f"sentence1,sentence2,score\n{PAIRS}\n")
    lines = []
    for number in range(40):
        text = " ".join(f"The {word} {number} is here now." for word in ("cat", "dog", "owl"))
        lines.append(json.dumps({"id": str(number), "title": f"Note {number}", "text": text}))
    (tmp_path / "c.jsonl").write_text("\n".join(lines))
    return partial(invoke, "train")


@pytest.fixture(scope="session")
def base(write_bert):
    """A tiny BERT with a vocabulary of a few words."""
    words = ["a", "one", "cat", *map(str, range(40))]
    return write_bert(words, num_hidden_layers=1, num_attention_heads=2)


@pytest.mark.nightly
def test_reranker_for_an_index(run, base):
    """It is trained on judged queries; the output says whether it helps."""
    with Index.create("indexes/i", "hashing") as index:
        index.add(Document(str(n), f"one cat {n}") for n in range(20))
    lines = [f"{n},a cat {n}" for n in range(15)]
    Path("queries.csv").write_text("\n".join(["id,text", *lines]))
    lines = [f"{n},{n},1" for n in range(15)]
    Path("qrels.csv").write_text("\n".join(["query-id,document-id,relevance", *lines]))
    arguments = ["--queries", "queries.csv", "--qrels", "qrels.csv", "--negatives", 2]
    arguments += ["--base", base, "--epochs", 1, "--output", "reranker"]
    result = run("cross-encoder", "--index", "indexes/i", *arguments)
    assert "11 queries to train on, with 11 relevant passages and 22 negatives" in result.stderr
    reranked, made, verdict = result.stdout.splitlines()
    assert "4 held-out queries" in reranked
    assert made.startswith("reranker: ")
    assert verdict.startswith("reranking ")
    invoke("query", "a cat 3", "--index", "indexes/i", "--rerank", "reranker")


def test_recipes_by_stage(run, base):
    run(
        *("siamese", "--base", base, "--output", "model", "--dev", "none", "--batch-size", 8),
        *("--data", "p.csv", "--loss", "cosine", "--epochs", 2, "--learning-rate", "1e-3"),
        *("--data", "p.csv", "--loss", "cosent", "--epochs", 1, "--learning-rate", "1e-4"),
    )
    stages = json.loads(Path("model/training.json").read_text())["stages"]
    assert [stage["loss"] for stage in stages] == ["cosine", "cosent"]
    assert [stage["recipe"]["epochs"] for stage in stages] == [2, 1]
    assert [stage["recipe"]["learning_rate"] for stage in stages] == [1e-3, 1e-4]


@pytest.mark.parametrize(("setting", "message"), [("sed=2", "seed"), ("seed=x", "int")])
def test_unknown_settings_are_refused(run, setting, message):
    result = run("adapt", "c.jsonl", "--set", setting, code=2)
    assert message in result.stderr.splitlines()[-1]


def test_an_index_is_a_corpus(run):
    with Index.create("notes", "hashing") as index:
        index.add(Document(str(n), f"A cat {n}.", title="Entitled") for n in range(20))
    run("pretrain", "notes", *SHORT, "--epochs", 0, "--output", "bert")
    pieces = json.loads(Path("bert/tokenizer.json").read_text("utf-8"))["model"]["vocab"]
    assert {"cat", "entitled"} <= pieces.keys()


@pytest.mark.nightly
def test_pretrain_then_distill_then_adapt(run, tmp_path):
    """`distill` and `adapt` use the pre-trained model; output folders have default names."""
    models = tmp_path / "models"
    assert "c (held out): " in run("pretrain", "c.jsonl", *SHORT, "--set", "steps=3").stdout
    run("distill", "models/c-tiny", "c.jsonl", "--set", "steps=2")
    short = ("--base", "models/c-tiny", "--set", "steps=1", "--learning-rate", 1e-9)
    run("adapt", "c.jsonl", *short, code=1)
    assert {file.name for file in models.iterdir()} == {"c-tiny", "c-tiny-static"}
    run("contrast", "c.jsonl", "--base", "models/c-tiny", "--epochs", 1, "--output", "encoder")

    queries = "\n".join(f"q{n},cat {n}" for n in range(6))
    (tmp_path / "queries.csv").write_text(f"id,text\n{queries}\n")
    judgements = "\n".join(f"q{n},{n},1" for n in range(6))
    (tmp_path / "qrels.csv").write_text(f"query-id,document-id,relevance\n{judgements}\n")
    judged = ("--queries", "queries.csv", "--qrels", "qrels.csv", "--output", "judged")
    result = run("adapt", "c.jsonl", *short, *judged, code=1)
    assert result.stdout.startswith("c, judged queries: ")
    (tmp_path / "qrels.csv").write_text("query-id,document-id,relevance\nq1,3,1\nq2,none,1\n")
    assert "[invalid-argument]" in run("adapt", "c.jsonl", *short, *judged, code=1).stderr


@pytest.mark.nightly
def test_ctrl_c_can_be_resumed(run, base, tmp_path, interruptible):
    arguments = ["siamese", "--base", str(base), "--data", "p.csv", "--loss", "cosine"]
    arguments += ["--output", "model", "--epochs", "2000", "--set", "evaluate_every=5"]
    command = [sys.executable, "-m", "semsearch", "train", *arguments]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(command, stderr=log, cwd=tmp_path)
    try:
        deadline = time.monotonic() + 200
        while not list(tmp_path.glob("model.training/stage-0/checkpoint-*/trainer_state.json")):
            assert time.monotonic() < deadline
            assert process.poll() is None, (tmp_path / "log").read_text()
            time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        assert process.wait(100) == 130
    finally:
        process.kill()
    last = (tmp_path / "log").read_text().splitlines()[-1]
    assert last.endswith("[training-stopped]")
    assert code_of(run(*arguments, "--set", "seed=2", code=1)) == "invalid-argument"
