"""Each kind of training, for a few steps on a tiny model: the loss falls, the result works."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace

import numpy
import pytest
import torch
from safetensors.torch import load_file
from sentence_transformers import CrossEncoder, SentenceTransformer

from semsearch.encoders import load_encoder
from semsearch.errors import ArgumentError, TrainingError, TrainingStoppedError
from semsearch.training import CrossEncoding, Loss, Recipe, Settings, Siamese, train
from semsearch.training.data import load_examples
from semsearch.training.encoder import TRAINABLE, default_loss
from semsearch.training.reranker import load_cross_encoder

#: With a large learning rate: the model is small and the steps are few.
QUICK = Recipe(epochs=6, learning_rate=2e-3, batch_size=8, evaluate_every=16)
TEXTS = ["the cat sleeps", "one cat sleeps now", "the river burns", "one dog"]


@pytest.fixture
def learn(tiny, files, tmp_path):
    """Train on files; messages and progress are in `learn.messages` and `learn.steps`."""
    return learning(tiny, files, tmp_path)


def learning(tiny, files, folder):
    def call(task, *names, recipe=QUICK, base=None, on_step=None, **settings):
        call.messages, call.steps = [], []

        def on_progress(done, fraction):
            call.steps.append((done, fraction))
            if on_step:
                on_step(done)

        settings = {"output": folder / "model"} | settings
        data = [str(files / name) for name in names]
        wanted = Settings(base=str(base or tiny), data=data, recipes=[recipe], **settings)
        return train(task, wanted, call.messages.append, on_progress)

    return call


def other_pairs(file, folder):
    """A copy of a file with another first word in each pair, so that the files do not overlap."""
    copy = folder / f"other-{file.name}"
    copy.write_text(file.read_text().replace("\nthe ", "\nnow "))
    return str(copy)


def record(folder):
    return json.loads((folder / "training.json").read_text())


def losses(folder, stage=0):
    history = record(folder)["results"][stage]["history"]
    return [one["loss"] for one in history if "loss" in one]


def falls(values):
    return numpy.mean(values[-8:]) < 0.9 * numpy.mean(values[:8])


@pytest.mark.parametrize(
    ("loss", "name"),
    [
        (Loss.SOFTMAX, "labelled.tsv"),
        (Loss.COSENT, "scored.csv"),
        (Loss.RANKING, "triplets.jsonl"),
        (Loss.TRIPLET, "triplets.jsonl"),
    ],
)
def test_siamese_loss_falls(learn, loss, name):
    """The cosine loss is that of TestResult."""
    recipe = replace(QUICK, epochs=8)
    assert falls(losses(learn(Siamese([loss]), name, recipe=recipe, development="none").folder))


@pytest.mark.parametrize(
    ("name", "loss"),
    [
        ("labelled.tsv", "softmax"),
        ("binary.csv", "contrastive"),
        ("scored.csv", "cosine"),
        ("pairs.csv", "ranking"),
        ("triplets.jsonl", "ranking"),
    ],
)
def test_columns_decide_the_loss(files, name, loss):
    examples = load_examples(str(files / name), TRAINABLE, notify=print)
    assert default_loss(examples).value == loss


def test_the_scores_of_a_new_head_are_probabilities(tiny, tmp_path):
    """A model with three outputs stores that it has no activation, which is for these only."""
    CrossEncoder(str(tiny), num_labels=3).save_pretrained(str(tmp_path / "three"))
    made = load_cross_encoder(tmp_path / "three")
    assert isinstance(made.activation_fn, torch.nn.Sigmoid)
    made.activation_fn = torch.nn.Identity()  # as of models trained on MS MARCO
    made.save_pretrained(str(tmp_path / "logits"))
    same = load_cross_encoder(tmp_path / "logits")
    assert isinstance(same.activation_fn, torch.nn.Identity)


def test_cross_encoder(learn, files, tmp_path):
    name = "binary.csv"
    recipe = replace(QUICK, epochs=12, seed=2)
    others = other_pairs(files / name, tmp_path)
    held = {"development": others, "tests": [others]}
    folder, (test,), *_ = learn(CrossEncoding(), name, recipe=recipe, **held)
    assert falls(losses(folder))
    assert test.score > 90
    pairs = [("the cat sleeps", "one cat sleeps"), ("the cat sleeps", "one dog")]
    scores = CrossEncoder(str(folder)).predict(pairs)
    assert scores.shape == (2,)
    assert test.measure == "average precision x 100"
    again = load_cross_encoder(folder).predict(pairs)
    assert again == pytest.approx(scores, abs=1e-5)


class TestResult:
    @pytest.fixture(scope="class")
    @classmethod
    def trained(cls, tiny, files, tmp_path_factory):
        folder = tmp_path_factory.mktemp("result")
        return learning(tiny, files, folder)(
            Siamese([Loss.COSINE]),
            "opposite.csv",
            output=folder / "my model's",
            development=(others := other_pairs(files / "opposite.csv", files)),
            tests=[others],
        )

    def test_a_round_trip_gives_the_same_vectors(self, trained):
        """Plain sentence-transformers, our torch runtime and the fast one agree."""
        plain = SentenceTransformer(str(trained.folder)).encode(TEXTS, normalize_embeddings=True)
        torch_runtime = load_encoder(str(trained.folder), device="cpu", precision="fp32")
        assert numpy.abs(torch_runtime.encode_documents(TEXTS) - plain).max() < 1e-5
        fast = load_encoder(str(trained.folder), precision="fp32")
        assert "OpenVINO" in type(fast).__name__
        assert numpy.abs(fast.encode_documents(TEXTS) - plain).max() < 1e-4

    def test_best_checkpoint_is_kept(self, trained):
        """The final model's score is the best one seen in training, up to bf16 rounding."""
        history = record(trained.folder)["results"][0]["history"]
        scores = {one["step"]: one["eval_score"] for one in history if "eval_score" in one}
        assert list(scores) == [0, 16, 32, 48]
        assert falls(losses(trained.folder))
        assert scores[0] < -80
        assert max(scores.values()) > 0
        assert trained.tests[0].score == pytest.approx(max(scores.values()), abs=1)
        assert trained.tests[0].measure == "Spearman x 100"

    def test_contents_of_the_folder(self, trained):
        assert [path.name for path in trained.folder.parent.iterdir()] == ["my model's"]
        assert not list(trained.folder.rglob("*.bin"))
        card = (trained.folder / "README.md").read_text()
        for line in ("pipeline_tag: sentence-similarity", "loss:CosineSimilarityLoss", "Spearman"):
            assert line in card
        command = next(line for line in card.splitlines() if "--encoder" in line)
        assert shlex.split(command)[-2:] == ["--encoder", "./my model's"]


def test_a_stage_starts_from_the_weights_of_the_one_before(tiny, files, tmp_path):
    def stages(*names):
        recipes = [replace(QUICK, epochs=1), replace(QUICK, epochs=1, learning_rate=1e-12)]
        data = [str(files / name) for name in names]
        output = tmp_path / f"{len(names)}"
        settings = Settings(str(tiny), output, data, recipes[: len(names)], development="none")
        return train(CrossEncoding(), settings).folder

    first, both = stages("binary.csv"), stages("binary.csv", "rated.csv")
    assert [stage["kind"] for stage in record(both)["stages"]] == ["labelled pairs", "scored pairs"]
    before, after = (load_file(folder / "model.safetensors") for folder in (first, both))
    shared = [name for name in after if not name.startswith("classifier")]
    assert max((after[name] - before[name]).abs().max() for name in shared) < 1e-6


def test_early_stopping(learn, files, tmp_path):
    recipe = Recipe(epochs=50, learning_rate=1e-12, evaluate_every=4, patience=2)
    held = other_pairs(files / "scored.csv", tmp_path)
    folder = learn(Siamese([Loss.COSINE]), "scored.csv", recipe=recipe, development=held).folder
    steps = [one["step"] for one in record(folder)["results"][0]["history"]]
    assert max(steps) == 12  # the first score, and two no better


def test_weights_depend_on_the_seed(learn, tmp_path):
    def weights(name, seed):
        recipe = Recipe(steps=2, seed=seed, batch_size=8)
        task, output = Siamese([Loss.SOFTMAX]), tmp_path / name
        folder = learn(task, "labelled.tsv", recipe=recipe, output=output).folder
        return (folder / "model.safetensors").read_bytes()

    first = weights("a", 1)
    assert weights("b", 1) == first
    assert weights("c", 2) != first


@pytest.mark.parametrize(
    ("loss", "name", "resumed"),
    [(Loss.COSINE, "scored.csv", 8), (Loss.SOFTMAX, "labelled.tsv", 0)],
)
def test_a_stopped_run_is_continued(learn, tmp_path, loss, name, resumed):
    """From its last checkpoint; a classifier, which is not in it, from the beginning."""

    def interrupt(done):
        if done == 13 * QUICK.batch_size:
            raise KeyboardInterrupt

    recipe = replace(QUICK, epochs=3, evaluate_every=8)  # 24 steps
    whole = learn(Siamese([loss]), name, recipe=recipe, output=tmp_path / "whole").folder
    with pytest.raises(TrainingStoppedError):
        learn(Siamese([loss]), name, recipe=recipe, on_step=interrupt)
    with pytest.raises(ArgumentError, match="stages"):
        learn(Siamese([loss]), name, recipe=replace(recipe, epochs=2))
    folder = learn(Siamese([loss]), name, recipe=recipe).folder
    assert learn.steps[0] == (8 * resumed, resumed / 24)
    assert (f"resuming from step {resumed}" in learn.messages) == bool(resumed)
    assert [path.name for path in tmp_path.iterdir() if "model" in path.name] == ["model"]
    weights = [(one / "model.safetensors").read_bytes() for one in (folder, whole)]
    assert weights[0] == weights[1]
    assert losses(folder) == losses(whole)


@pytest.mark.parametrize("name", ["model", "model.training"])
def test_other_files_are_not_replaced(learn, tmp_path, name):
    (tmp_path / name).mkdir()
    (tmp_path / name / "to-my-aunt.txt").touch()
    with pytest.raises(ArgumentError, match=f"{name} exists"):
        learn(Siamese([Loss.COSINE]), "scored.csv")
    assert [path.name for path in tmp_path.rglob("*")] == [name, "to-my-aunt.txt"]


def test_loss_that_is_not_finite_is_reported(learn):
    recipe = Recipe(epochs=2, learning_rate=1e30, warmup=0)
    with pytest.raises(TrainingError, match=r"not finite at step \d+"):
        learn(Siamese([Loss.SOFTMAX]), "labelled.tsv", recipe=recipe)


@pytest.mark.parametrize("names", [["yes", "no"], ["a", "b"]])
def test_yes_no_pairs_train_the_encoder(learn, files, tmp_path, names):
    """Its score is that of search, beside the base model's; other labels train a classifier."""
    rows = (files / "binary.csv").read_text().splitlines()[1:]
    changed = [f"{row[:-1]}{names[int(row[-1])]}" for row in rows]
    (tmp_path / "b.csv").write_text("\n".join(["left,right,label", *changed]) + "\n")
    spec = str(tmp_path / "b.csv")
    held = other_pairs(tmp_path / "b.csv", tmp_path)
    recipe = replace(QUICK, epochs=12)
    folder, tests, *_ = learn(Siamese([None]), spec, recipe=recipe, development=held)
    announced = " ".join(learn.messages)
    if names == ["a", "b"]:
        assert tests == []
        assert "accuracy of the classifier, %" in announced
        return
    (test,) = tests
    assert test.measure == "average precision x 100"
    assert test.score > test.before
    assert test.low <= test.score - test.before <= test.high
    assert record(folder)["stages"][0]["loss"] == "contrastive"


@pytest.mark.parametrize(
    "given",
    [{"epochs": -1}, {"steps": 0}, {"learning_rate": numpy.nan}]
    + [{"batch_size": 0}, {"warmup": 1}, {"patience": 0}],
)
def test_invalid_recipes_are_rejected(given):
    (name,) = given
    with pytest.raises(ArgumentError, match=f"^{name} must be"):
        Recipe(**given)
