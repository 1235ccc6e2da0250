"""``semsearch train`` on scored pairs and judged queries."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner

from semsearch import Document, Index, Retriever
from semsearch.cli import main
from tests.cli.conftest import invoke

pytestmark = pytest.mark.slow

JUDGED = ["--index", "i", "--queries", "p.csv", "--qrels", "p.csv"]
PAIRS = "\n".join(f"a cat {n},one cat {n % 7},{n % 6}" for n in range(40))


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Call `semsearch train` in a folder with p.csv in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.csv").write_text(f"sentence1,sentence2,score\n{PAIRS}\n")

    return partial(invoke, "train")


@pytest.fixture(scope="session")
def base(write_bert):
    """A tiny BERT with a vocabulary of a few words."""
    words = ["a", "one", "cat", *map(str, range(40))]
    return write_bert(words, num_hidden_layers=1, num_attention_heads=2)


def test_trained_model_encodes_an_index(run, base):
    result = run(
        *("siamese", "--base", base, "--data", "p.csv"),
        *("--epochs", 1, "--test", "p.csv", "--keep-leaks", "--output", "model"),
    )
    assert result.stdout.splitlines() == [
        result.stdout.splitlines()[0],
        "model: the model, its card, its curve (training.png)",
    ]
    assert result.stdout.startswith("p.csv: ")
    assert "scale from 0 to 5" in result.stderr
    assert "scored pairs, cosine loss" in result.stderr
    with Index.create("indexes/i", ["./model"]) as index:
        index.add([Document("d", "a cat 3"), Document("e", "one 9")])
    with Retriever.open("indexes/i") as retriever:
        assert retriever.search("a cat 3", k=1)[0].document_id == "d"


def test_reranker_for_an_index(run, base, tmp_path):
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
    before, after, made, verdict = result.stdout.splitlines()
    for line, what in ((before, "not reranked"), (after, "reranked")):
        assert line.startswith(f"queries (4 held-out queries), {what}: ")
        assert line.endswith("(nDCG@10 x 100)")
    assert made == "reranker: the model, its card, its curve (training.png)"
    assert verdict.startswith("reranking ")
    assert "4 held-out queries); weight of the first stage 0" in verdict
    found = CliRunner().invoke(
        main, ["query", "a cat 3", "--index", "indexes/i", "--rerank", "reranker"]
    )
    assert found.exit_code == 0, found.output


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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--data", "none.csv"], "no such file: none.csv"),
        (["--data", "p.csv", "--base", "./nothing"], "no model folder ./nothing"),
        (["--data", "p.csv", "--scale", 1, 5], "p.csv:2: score 0 is outside the scale 1 to 5"),
        (["--data", "p.csv", "--dev", "p.csv"], "p.csv has only pairs that are in a development"),
        (["--data", "p.csv", "--output", "p.csv"], "p.csv exists and is not a model"),
        (["--data", "p.csv", "--output", "."], "--output must name a separate folder"),
        (["--data", "p.csv", "--resume"], "no training run to resume"),
        (
            ["--data", "p.csv", "--epochs", 1, "--epochs", 2],
            "--epochs is given 2 times for 1 stage;",
        ),
        (["--data", "p.csv", "--batch-size", 0], "batch_size must be at least 1, not 0"),
        (["--data", "stsbenchmark"], "semsearch datasets fetch stsbenchmark"),
        ([], "name what to train on: --data NAME|FILE"),
        (["--data", "p.csv", "--queries", "p.csv"], "--queries and --qrels need --index DIR"),
        (["--data", "p.csv", "--negatives", "3"], "--negatives needs --index DIR"),
        (["--data", "p.csv", "--dev", "none", "--patience", "2"], "--patience needs a development"),
        (["--index", "i"], "--index needs --queries FILE and --qrels FILE"),
        (
            [*JUDGED, "--data", "p.csv"],
            "use either --index or --data, not both",
        ),
        ([*JUDGED, "--dev", "p.csv"], "use either --index or --dev, not both"),
        ([*JUDGED, "--scale", "0", "5"], "use either --index or --scale, not both"),
        ([*JUDGED, "--keep-leaks"], "use either --index or --keep-leaks, not both"),
        ([*JUDGED, "--mix"], "use either --index or --mix, not both"),
    ],
)
def test_mistakes_are_one_line(run, base, monkeypatch, tmp_path, arguments, message):
    monkeypatch.setenv("SEMSEARCH_DATA", str(tmp_path))
    defaults = {"--base": base, "--output": "model"}
    given = [word for pair in defaults.items() if pair[0] not in arguments for word in pair]
    result = run("cross-encoder", *given, *arguments, code=1)
    *_, line = result.stderr.splitlines()
    assert line.startswith("Error: ")
    assert message in line
    assert result.stdout == ""


def test_loss_needs_its_columns(run, base):
    result = run(
        *("siamese", "--base", base, "--data", "p.csv", "--loss", "triplet", "--output", "m"),
        code=1,
    )
    assert "columns 'anchor', 'positive', 'negative' are needed" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--margin", "2"], "--margin is for the loss triplet, not cosine, ranking"),
        (["--head-learning-rate", "0.1"], "--head-learning-rate is for the loss softmax, not"),
        (["--scale", "0", "5"], None),
    ],
)
def test_options_of_losses_that_are_not_used_are_refused(run, base, arguments, message):
    Path("q.csv").write_text("anchor,positive\na cat,one cat\na dog,one dog\n")
    command = ["siamese", "--base", base, "--data", "p.csv", "--data", "q.csv", "--output", "m"]
    result = run(*command, *arguments, code=1 if message else 0)
    assert message is None or message in result.stderr


def test_a_scale_without_scores_is_refused(run, base):
    Path("q.csv").write_text("anchor,positive\na cat,one cat\na dog,one dog\n")
    command = ["siamese", "--base", base, "--data", "q.csv", "--output", "m", "--scale", "0", "5"]
    assert "the data have none" in run(*command, code=1).stderr


def test_ctrl_c_reports_how_to_resume(run, base, tmp_path, interruptible):
    arguments = ["--base", str(base), "--data", "p.csv", "--loss", "cosine", "--output", "model"]
    command = [sys.executable, "-m", "semsearch", "train", "siamese", *arguments]
    command += ["--epochs", "2000", "--evaluate-every", "1000000"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        lines = [process.stderr.readline()]
        while "step 0" not in lines[-1] and "examples, " not in lines[-1]:
            lines.append(process.stderr.readline())
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
    assert process.returncode == 130
    assert "add --resume to continue [training-stopped]" in rest
    assert "Traceback" not in rest
    assert list((tmp_path / "model.training").glob("stage-0/checkpoint-*/trainer_state.json"))


def test_help_lists_the_columns(run):
    assert "anchor, positive, negative" in run("siamese", "--help").output
    assert "cross-encoder" in run("--help").output
