"""``semsearch train``: what commands make of their options; tests/training trains.

golden/train.txt pre-trains, trains on pairs and indexes with the model.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from semsearch import Document, Index
from semsearch.cli import training_options
from semsearch.errors import TrainingStoppedError
from semsearch.training import Trained
from tests.cli.conftest import invoke

PAIRS = "\n".join(f"a cat {n},one cat {n % 7},{n % 6}" for n in range(40))


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Call `semsearch train` in a folder with pairs, a corpus, an index and judged queries."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.csv").write_text(f"sentence1,sentence2,score\n{PAIRS}\n")
    (tmp_path / "c.csv").write_text("id,title,text\n1,A note,A cat sleeps. A dog barks.\n")
    (tmp_path / "queries.csv").write_text("id,text\nq,a cat\n")
    (tmp_path / "qrels.csv").write_text("query-id,document-id,relevance\nq,1,1\n")
    with Index.create("i", "hashing") as index:
        index.add(Document(str(n), f"one cat {n}", title="Entitled") for n in range(20))
    return partial(invoke, "train")


@pytest.fixture
def calls(monkeypatch):
    """The tasks and settings of trainings, none of which runs."""
    found = []

    def train(task, settings, notify, on_progress):
        notify("a message")
        found.append((task, settings))
        return Trained(settings.output, [], "a verdict")

    monkeypatch.setattr(training_options, "train", train)
    return found


JUDGED = "--queries queries.csv --qrels qrels.csv"


@pytest.mark.parametrize(
    ("words", "task", "base", "folder"),
    [
        ("siamese --data p.csv", "Siamese", "minilm", "models/p-siamese"),
        ("siamese --data stsbenchmark:train --base b", "Siamese", "b", "models/*-siamese"),
        ("cross-encoder --data p.csv --output m", "CrossEncoding", "minilm", "m"),
        (f"cross-encoder --index i {JUDGED}", "Reranking", "minilm", "models/queries-*"),
        ("adapt c.csv", "Adaptation", "minilm", "models/c-adapted"),
        (f"adapt i {JUDGED}", "Adaptation", "minilm", "models/i-adapted"),
        ("pretrain c.csv", "Pretraining", None, "models/c-small"),
        ("pretrain c.csv --size tiny", "Pretraining", None, "models/c-tiny"),
        ("contrast c.csv --base minilm", "Contrast", "minilm", "models/c-contrast"),
        ("translate --parallel p.csv --language pt", "Translation", "minilm", "models/p-*"),
        ("distill ./my/model c.csv", "Distillation", "./my/model", "models/model-static"),
    ],
)
def test_tasks_and_default_folders(run, calls, words, task, base, folder):
    result = run(*words.split())
    [(made, settings)] = calls
    assert (type(made).__name__, settings.base) == (task, base)
    assert settings.output.match(folder)
    assert result.stdout == f"{settings.output}: the model and its card\na verdict\n"
    assert "a message" in result.stderr


def test_the_exit_status_of_adapt_says_whether_the_model_is_kept(run, monkeypatch):
    kept = Trained(Path("m"), [], "no gain", is_kept=False)
    monkeypatch.setattr(training_options, "train", lambda *arguments: kept)
    assert run("adapt", "c.csv", code=1).stdout == "no gain\n"


def test_recipes_by_stage(run, calls):
    run(
        *("siamese", "--dev", "none", "--batch-size", 8, "--set", "seed=3"),
        *("--data", "p.csv", "--loss", "cosine", "--epochs", 2, "--learning-rate", "1e-3"),
        *("--data", "q.csv", "--loss", "cosent", "--epochs", 1, "--learning-rate", "1e-4"),
        *("--test", "stsbenchmark", "--set", "weight_decay=0.5"),
    )
    [(task, settings)] = calls
    assert [loss.value for loss in task.losses] == ["cosine", "cosent"]
    assert (settings.development, [*settings.tests]) == ("none", ["stsbenchmark"])
    found = [(one.epochs, one.learning_rate, one.batch_size) for one in settings.recipes]
    assert found == [(2, 1e-3, 8), (1, 1e-4, 8)]
    assert [(one.seed, one.weight_decay) for one in settings.recipes] == 2 * [(3, 0.5)]


def test_the_recipe_of_a_corpus(run, calls):
    run("contrast", "c.csv", "--base", "minilm", "--epochs", 1.5, "--set", "warmup=0.2")
    [(_, settings)] = calls
    recipe = settings.recipe
    assert (recipe.epochs, recipe.warmup, recipe.batch_size) == (1.5, 0.2, 256)


@pytest.mark.parametrize(
    ("setting", "message"),
    [("sed=2", "seed"), ("seed=x", "int"), ("epochs=1", "seed")],
)
def test_unknown_settings_are_refused(run, setting, message):
    result = run("adapt", "c.csv", "--set", setting, code=2)
    assert message in result.stderr.splitlines()[-1]


def test_an_index_is_a_corpus(run, calls):
    run("pretrain", "i")
    [(task, _)] = calls
    assert [document.id for document in task.documents] == [str(n) for n in range(20)]


def test_ctrl_c_can_be_resumed(run, monkeypatch):
    def stopped(*arguments):
        raise TrainingStoppedError("run the same command again")

    monkeypatch.setattr(training_options, "train", stopped)
    result = run("siamese", "--data", "p.csv", code=130)
    assert result.stderr.splitlines()[-1] == "run the same command again [training-stopped]"
