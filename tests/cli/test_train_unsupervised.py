"""``semsearch train`` on a corpus; training itself is tested in tests/training."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
from sentence_transformers import SentenceTransformer

from semsearch.training import Adaptation, Contrast, Distillation, Pretraining
from tests.cli.conftest import invoke

pytestmark = pytest.mark.slow

SHORT = ("--size", "tiny", "--vocabulary", 120, "--max-tokens", 32, "--batch-size", 4)


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Call `semsearch train` in a folder with c.jsonl, 40 documents of three sentences."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SEMSEARCH_DATA", raising=False)
    lines = []
    for number in range(40):
        text = " ".join(f"The {word} {number} is here now." for word in ("cat", "dog", "owl"))
        lines.append(json.dumps({"id": str(number), "title": f"Note {number}", "text": text}))
    (tmp_path / "c.jsonl").write_text("\n".join(lines))

    return partial(invoke, "train")


def test_pretrain_then_distil_then_adapt(run, tmp_path):
    """`distil` and `adapt` use the pre-trained model; output folders have default names."""
    result = run("pretrain", "c.jsonl", *SHORT, "--steps", 3)
    lines = result.stdout.splitlines()
    assert lines[0].startswith("c (held out): ")
    assert lines[0].endswith(" (masked words, loss)")
    assert lines[-1] == "models/c-tiny: the model, its card, its curve (training.png)"
    assert "step 3: loss" in result.stderr
    assert "c.jsonl: text from 'text', title from 'title'" in result.stderr

    result = run("distil", "models/c-tiny", "c.jsonl", "--layers", 1, "--steps", 2)
    speed, place = result.stdout.splitlines()
    assert re.fullmatch(r"notes of .*: [\d.]+, base model [\d.]+ \(texts/s\)", speed)
    assert place.startswith("models/c-tiny-1-layers: ")
    assert SentenceTransformer("models/c-tiny-1-layers", device="cpu").encode(["a"]).shape == (
        1,
        128,
    )

    short = ("--steps", 1, "--learning-rate", 1e-9)
    result = run("adapt", "c.jsonl", "--encoder", "models/c-tiny", *short, code=1)
    ranks, verdict = result.stdout.splitlines()
    assert ranks.startswith("c, keyword queries: ")
    assert verdict.startswith("not kept, the gain is not significant: nDCG@10 ")
    assert verdict.endswith("nothing was written, keep using models/c-tiny")
    assert not (tmp_path / "models" / "c-adapted").exists()
    result = run("adapt", "c.jsonl", "--encoder", "models/c-tiny", *short, "--keep-anyway")
    assert "kept because of --keep-anyway, although the gain is not significant:" in result.stdout
    card = Path("models/c-adapted/README.md").read_text("utf-8")
    assert "It was kept although the gain is not significant" in card
    assert sorted(file.name for file in (tmp_path / "models").iterdir()) == [
        "c-adapted",
        "c-tiny",
        "c-tiny-1-layers",
    ]


def test_from_random_weights_to_an_encoder(run, tmp_path):
    """The example in the help of `contrast`."""
    result = run("pretrain", "c.jsonl", *SHORT, "--steps", 0, "--output", "bert")
    assert result.stdout == "bert: the model, its card\n"
    assert not Path("bert/training.png").exists()
    assert "training.png" not in Path("bert/README.md").read_text("utf-8")
    short = ("--epochs", 1, "--batch-size", 16)
    result = run("contrast", "c.jsonl", "--base", "bert", *short, "--output", "encoder")
    assert result.stdout == "encoder: the model, its card, its curve (training.png)\n"
    assert "c: 108 positive pairs, ranking loss; scored on c (held out)" in result.stderr
    (tmp_path / "p.csv").write_text("sentence1,sentence2,score\na,b,1\na,c,0\n")
    run("siamese", "--base", "encoder", "--data", "p.csv", "--dev", "none", "--output", "done")
    assert SentenceTransformer("done", device="cpu").encode(["a"]).shape == (1, 128)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["pretrain", "none.csv"], "no such file: none.csv"),
        (["pretrain", "c.jsonl", "--steps", -1], "steps must be at least 0, not -1"),
        (["pretrain", "c.jsonl", "--steps", 0, "--from", "x"], "are for a BERT from scratch"),
        (["contrast", "c.jsonl", "--base", "./x"], "no model folder ./x"),
        (["contrast", "none.csv", "--base", "minilm"], "no such file: none.csv"),
        (["contrast", "c.jsonl", "--base", "minilm", "--epochs", 0], "epochs must be above 0"),
        (["pretrain", "c.jsonl", "--minutes", -1], "minutes must be above 0, not -1"),
        (
            ["pretrain", "c.jsonl", "--steps", 1, "--minutes", 1],
            "exclude each other",
        ),
        (["pretrain", "c.jsonl", "--from", "x", "--size", "tiny"], "for a BERT from scratch"),
        (["pretrain", "c.jsonl", "--from", "./x"], "no model folder ./x"),
        (["pretrain", "c.jsonl", "--learning-rate", 0], "learning_rate must be above 0"),
        (["pretrain", "c.jsonl", "--vocabulary", 0], "a vocabulary of 0 pieces is too small"),
        (["pretrain", "c.jsonl", "--from", "x", "--vocabulary", 0], "for a BERT from scratch"),
        (
            ["pretrain", "c.jsonl", "--resume"],
            "to resume in models/c-small.training",
        ),
        (["pretrain", "c.jsonl", "--text-column", "title"], "documents of two sentences or more"),
        (["pretrain", "c.jsonl", "--output", "c.jsonl"], "c.jsonl exists and is not a model"),
        (["adapt", "c.jsonl", "--encoder", "./x"], "no model folder ./x"),
        (["distil", "minilm"], "choose a student: --static or --layers N"),
        (["distil", "minilm", "--static", "--layers", 2], "choose a student"),
        (["distil", "minilm", "--layers", 2], "layers, epochs, steps and minutes need a corpus"),
        (["distil", "minilm", "--static", "--dimension", 0], "from 1 to 384, not 0"),
        (["distil", "minilm", "--static", "--epochs", 2], "steps and minutes need a corpus"),
        (["distil", "minilm", "c.jsonl", "--layers", 6, "--steps", 1], "from 1 to 5, not 6"),
    ],
)
def test_mistakes_are_one_line(run, tmp_path, arguments, message):
    result = run(*arguments, code=1)
    assert result.stdout == ""
    *notes, line = result.stderr.splitlines()
    assert line.startswith("Error: ")
    assert message in line
    assert not any(note.startswith("Error") for note in notes)
    assert [file.name for file in tmp_path.iterdir()] == ["c.jsonl"]


def test_ctrl_c_reports_how_to_resume(run, tmp_path, interruptible):
    arguments = ["pretrain", "c.jsonl", *map(str, SHORT), "--steps", "100000", "--output", "m"]
    command = [sys.executable, "-m", "semsearch", "train", *arguments]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(command, stderr=log, cwd=tmp_path)
        try:
            deadline = time.monotonic() + 200
            while b"step 0:" not in (tmp_path / "log").read_bytes():
                assert time.monotonic() < deadline
                assert process.poll() is None, (tmp_path / "log").read_text()
                time.sleep(0.2)
            process.send_signal(signal.SIGINT)
            assert process.wait(100) == 130
        finally:
            process.kill()
    last = (tmp_path / "log").read_text().splitlines()[-1]
    assert re.fullmatch(
        r"stopped after step \d+; add --resume to continue \[training-stopped\]", last
    )
    result = run(*arguments, code=1)
    assert "m.training holds an unfinished training run; continue it with --resume" in result.stderr


def test_help_lists_the_commands(run):
    assert "pretrain" in run("--help").stdout
    for name in ("pretrain", "adapt", "distil"):
        assert "semsearch train" in run(name, "--help").stdout


def test_adapt_is_evaluated_with_judged_queries(run, tmp_path):
    run("pretrain", "c.jsonl", *SHORT, "--steps", 1)
    queries = "\n".join(f"q{n},cat {n}" for n in range(6))
    (tmp_path / "queries.csv").write_text(f"id,text\n{queries}\n")
    judgements = "\n".join(f"q{n},{n},1" for n in range(6))
    (tmp_path / "qrels.csv").write_text(f"query-id,document-id,relevance\n{judgements}\n")
    short = ("--encoder", "models/c-tiny", "--steps", 1, "--learning-rate", 1e-9)
    judged = ("--queries", "queries.csv", "--qrels", "qrels.csv")
    result = run("adapt", "c.jsonl", *short, *judged, code=1)
    assert "evaluated on 6 judged queries" in result.stderr
    assert result.stdout.startswith("c, judged queries: ")
    result = run("adapt", "c.jsonl", *short, *judged[:2], code=1)
    assert "Error: --queries and --qrels go together" in result.stderr
    (tmp_path / "qrels.csv").write_text("query-id,document-id,relevance\nq1,3,1\nq2,none,1\n")
    result = run("adapt", "c.jsonl", *short, *judged, code=1)
    assert "queries has 1 query with a relevant document in this corpus" in result.stderr


@pytest.mark.parametrize(
    ("command", "recipe"),
    [
        ("contrast", Contrast.recipe),
        ("adapt", Adaptation.recipe),
        ("pretrain", Pretraining.recipe),
        ("distil", Distillation([], "x", layers=3).recipe),
    ],
)
def test_help_has_the_defaults_of_each_command(run, command, recipe):
    text = " ".join(run(command, "--help").stdout.split())
    duration = "none, but 10000 steps" if recipe.steps else f"{recipe.epochs or 1:g}"
    assert f"Or passes over the corpus. [default: {duration}]" in text
    assert recipe.steps in (None, 10_000)
    assert f"Texts or pairs per step. [default: {recipe.batch_size}]" in text
