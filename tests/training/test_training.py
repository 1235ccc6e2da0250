"""Each kind of training, for a few steps on a tiny model: the loss falls, the result works."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import signal
from dataclasses import replace

import numpy
import pytest
import torch
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from transformers import BertModel, BertTokenizerFast, ModernBertModel, Qwen3Model, T5EncoderModel

from semsearch.encoders import load_encoder
from semsearch.errors import (
    ArgumentError,
    DamagedModelError,
    MissingExtraError,
    TrainingError,
    TrainingStoppedError,
)
from semsearch.training import CrossEncoding, Loss, Recipe, Settings, Siamese, train
from semsearch.training.data import load_examples
from semsearch.training.examples import Kind
from tests.encoders.layouts import number_transformer

pytestmark = pytest.mark.slow

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
        (Loss.COSINE, "scored.csv"),
        (Loss.COSENT, "scored.csv"),
        (Loss.RANKING, "pairs.csv"),
        (Loss.RANKING, "triplets.jsonl"),
        (Loss.TRIPLET, "triplets.jsonl"),
    ],
)
def test_siamese_loss_falls(learn, loss, name):
    recipe = replace(QUICK, epochs=12)
    assert falls(losses(learn(Siamese([loss]), name, recipe=recipe, development="none").folder))


@pytest.mark.parametrize(
    ("name", "loss"),
    [
        ("labelled.tsv", "softmax"),
        ("scored.csv", "cosine"),
        ("pairs.csv", "ranking"),
        ("triplets.jsonl", "ranking"),
    ],
)
def test_columns_decide_the_loss(learn, name, loss):
    recipe = replace(QUICK, epochs=0.1)
    folder = learn(Siamese([None]), name, recipe=recipe, development="none").folder
    assert f"| loss | {loss} |" in (folder / "README.md").read_text("utf-8")


def test_card_quotes_the_name(learn, tmp_path):
    output = tmp_path / "my model's"
    learn(Siamese([None]), "scored.csv", recipe=Recipe(steps=1), output=output)
    card = (output / "README.md").read_text("utf-8")
    command = next(line for line in card.splitlines() if "--encoder" in line)
    assert shlex.split(command)[-2:] == ["--encoder", "./my model's"]
    assert """SentenceTransformer("./my model's")""" in card


def test_gradient_caching_keeps_the_loss(learn, tiny_without_dropout, monkeypatch):
    """Gradient caching changes memory, not the loss (Gao et al. 2021)."""
    base = tiny_without_dropout
    recipe = Recipe(epochs=3, learning_rate=1e-4, batch_size=32)
    first = losses(learn(Siamese([Loss.RANKING]), "pairs.csv", recipe=recipe, base=base).folder)
    monkeypatch.setattr("semsearch.training.losses.CACHED_FROM", 16)
    monkeypatch.setattr("semsearch.training.losses.CACHED_PART", 8)
    again = learn(Siamese([Loss.RANKING]), "pairs.csv", recipe=recipe, base=base, overwrite=True)
    assert losses(again.folder) == pytest.approx(first, rel=0.01)


class TestDimensions:
    """Matryoshka representation learning (Kusupati et al. 2022)."""

    RECIPE = replace(QUICK, dimensions=(4, 2))

    @pytest.mark.parametrize("loss", [Loss.COSINE, Loss.RANKING])
    def test_card_lists_each_dimension(self, learn, files, loss, monkeypatch):
        monkeypatch.setattr("semsearch.training.losses.CACHED_FROM", 4)
        name = "scored.csv" if loss is Loss.COSINE else "pairs.csv"
        held = {"development": str(files / name), "keep_leaks": True}
        folder, tests = learn(Siamese([loss]), name, recipe=self.RECIPE, **held)[:2]
        width = load_encoder(folder).dimension
        assert [test.dimension for test in tests] == [width, 4, 2]
        card = (folder / "README.md").read_text("utf-8")
        for test in tests:
            again = Siamese([loss]).score(
                SentenceTransformer(str(folder), device="cpu", truncate_dim=test.dimension),
                load_examples(str(files / name), (Kind.SCORED, Kind.POSITIVE), notify=print),
            )
            assert again == pytest.approx(test.score, abs=0.1)
            assert f"| {test.dimension} | {test.score:.2f} |" in card

    def test_truncated_vectors_improve(self, learn, files):
        """Vectors cut to two dimensions, of models trained with and without that dimension."""
        held = {"development": "none", "tests": [str(files / "opposite.csv")], "keep_leaks": True}
        recipe = replace(QUICK, epochs=12, dimensions=(2,))
        tests = learn(Siamese([Loss.COSINE]), "opposite.csv", recipe=recipe, **held).tests
        recipe = replace(recipe, dimensions=())
        folder = learn(
            Siamese([Loss.COSINE]), "opposite.csv", recipe=recipe, overwrite=True, **held
        ).folder
        model = SentenceTransformer(str(folder), device="cpu")
        examples = load_examples(str(files / "opposite.csv"), (Kind.SCORED,), notify=print)
        assert tests[-1].score > Siamese([None]).score(model, examples, 2) + 10

    @pytest.mark.parametrize(
        ("loss", "name", "dimensions", "message"),
        [
            (Loss.SOFTMAX, "labelled.tsv", (4,), "softmax loss does not support"),
            (Loss.COSINE, "scored.csv", (999,), "dimensions, not 999"),
        ],
    )
    def test_unsupported_dimensions_are_rejected(self, learn, loss, name, dimensions, message):
        with pytest.raises(ArgumentError, match=message):
            learn(Siamese([loss]), name, recipe=replace(QUICK, dimensions=dimensions))


def test_cross_encoder_of_a_bert_in_a_subfolder(tiny, tmp_path):
    SentenceTransformer(str(tiny), device="cpu").save(str(tmp_path))
    number_transformer(tmp_path)
    assert CrossEncoding().load(tmp_path, 1).num_labels == 1


@pytest.mark.parametrize("change", [{"vocab_size": 30}, {}])
def test_a_cross_encoder_of_an_incomplete_bert_is_refused(tiny, tmp_path, change):
    """Only the head may be new: neither missing weights nor those of another shape."""
    shutil.copytree(tiny, tmp_path / "bert")
    if change:
        config = json.loads((tiny / "config.json").read_text("utf-8"))
        (tmp_path / "bert" / "config.json").write_text(json.dumps(config | change))
    else:
        weights = load_file(tiny / "model.safetensors")
        del weights["embeddings.word_embeddings.weight"]
        save_file(weights, tmp_path / "bert" / "model.safetensors", {"format": "pt"})
    with pytest.raises(DamagedModelError, match=r"lacks weights: \S+word_embeddings\.weight$"):
        CrossEncoding().load(tmp_path / "bert", 1)


def test_a_cross_encoder_of_a_bert_without_a_pooler(tiny, tmp_path):
    BertModel.from_pretrained(tiny, add_pooling_layer=False).save_pretrained(tmp_path)
    BertTokenizerFast.from_pretrained(tiny).save_pretrained(tmp_path)
    assert CrossEncoding().load(tmp_path, 1).num_labels == 1


def test_the_scores_of_a_new_head_are_probabilities(tiny, tmp_path):
    """A model with three outputs stores that it has no activation, which is for these only."""
    CrossEncoding().load(tiny, 3).save_pretrained(str(tmp_path / "three"))
    made = CrossEncoding().load(tmp_path / "three", 1)
    assert isinstance(made.activation_fn, torch.nn.Sigmoid)
    made.activation_fn = torch.nn.Identity()  # as of models trained on MS MARCO
    made.save_pretrained(str(tmp_path / "logits"))
    same = CrossEncoding().load(tmp_path / "logits", 1)
    assert isinstance(same.activation_fn, torch.nn.Identity)


@pytest.mark.parametrize("name", ["rated.csv", "sorted.tsv", "binary.csv"])
def test_cross_encoder(learn, files, name):
    from sentence_transformers import CrossEncoder

    recipe = replace(QUICK, epochs=12, seed=2)
    held = {"development": str(files / name), "tests": [str(files / name)], "keep_leaks": True}
    folder, (test,), _ = learn(CrossEncoding(), name, recipe=recipe, **held)
    assert falls(losses(folder))
    assert test.score > 90
    model = CrossEncoder(str(folder))
    scores = model.predict([("the cat sleeps", "one cat sleeps"), ("the cat sleeps", "one dog")])
    assert scores.shape == ((2, 3) if name == "sorted.tsv" else (2,))
    card = (folder / "README.md").read_text("utf-8")
    assert ("--rerank" in card) == (name != "sorted.tsv")
    assert ("(scores high)" in card) == (name == "binary.csv")
    again = CrossEncoding().load(folder).predict([("the cat sleeps", "one dog")])
    assert again[0] == pytest.approx(scores[1], abs=1e-5)


class TestResult:
    @pytest.fixture(scope="class")
    @classmethod
    def trained(cls, tiny, files, tmp_path_factory):
        learn = learning(tiny, files, tmp_path_factory.mktemp("result"))
        return learn(
            Siamese([Loss.COSINE]),
            "opposite.csv",
            development=str(files / "opposite.csv"),
            tests=[str(files / "opposite.csv")],
            keep_leaks=True,
        )

    def test_a_round_trip_gives_the_same_vectors(self, trained):
        """Plain sentence-transformers, our torch runtime and the fast one agree."""
        from sentence_transformers import SentenceTransformer

        plain = SentenceTransformer(str(trained.folder)).encode(TEXTS, normalize_embeddings=True)
        torch_runtime = load_encoder(str(trained.folder), device="cpu", precision="fp32")
        assert numpy.abs(torch_runtime.encode_documents(TEXTS) - plain).max() < 1e-5
        fast = load_encoder(str(trained.folder), precision="fp32")
        assert "OpenVINO" in type(fast).__name__
        assert numpy.abs(fast.encode_documents(TEXTS) - plain).max() < 1e-4

    def test_best_checkpoint_is_kept(self, trained):
        """The final model's score is the best one seen in training, up to bf16 rounding."""
        history = record(trained.folder)["results"][0]["history"]
        scores = {one["step"]: one["score"] for one in history if "score" in one}
        assert list(scores) == [0, 16, 32, 48]
        assert scores[0] < -80
        assert max(scores.values()) > 0
        assert trained.tests[0].score == pytest.approx(max(scores.values()), abs=1)
        assert trained.tests[0].measure == "Spearman x 100"

    def test_contents_of_the_folder(self, trained):
        assert not trained.folder.with_name("model.training").exists()
        assert [path.name for path in trained.folder.parent.iterdir()] == ["model"]
        assert not list(trained.folder.rglob("*.bin"))
        assert (trained.folder / "training.png").read_bytes().startswith(b"\x89PNG")
        card = (trained.folder / "README.md").read_text()
        for line in ("pipeline_tag: sentence-similarity", "64 scored pairs", "| seed | 1 |"):
            assert line in card

    def test_existing_model_is_not_overwritten(self, trained, learn, tmp_path):
        shutil.copytree(trained.folder, tmp_path / "model")
        weights = tmp_path / "model" / "model.safetensors"
        before = weights.read_bytes()
        with pytest.raises(ArgumentError, match="model exists; name another --output"):
            learn(Siamese([Loss.COSINE]), "scored.csv")
        assert weights.read_bytes() == before
        recipe = Recipe(steps=1)
        learn(Siamese([Loss.COSINE]), "scored.csv", recipe=recipe, overwrite=True)
        assert weights.read_bytes() != before
        assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_stages_in_turn(learn):
    """The second stage needs another head."""
    recipe = replace(QUICK, epochs=12)
    folder = learn(CrossEncoding(), "sorted.tsv", "rated.csv", recipe=recipe).folder
    assert [stage["loss"] for stage in record(folder)["stages"]] == [
        "cross-entropy",
        "binary cross-entropy",
    ]
    assert falls(losses(folder, 0))
    assert json.loads((folder / "config.json").read_text())["id2label"].keys() == {"0"}
    assert "### Stage 2" in (folder / "README.md").read_text()


def test_a_stage_starts_from_the_weights_of_the_one_before(tiny, files, tmp_path):
    def weights(*stages):
        names, recipes = zip(*stages, strict=True)
        settings = Settings(
            base=str(tiny),
            output=tmp_path / f"{len(stages)}",
            data=[str(files / name) for name in names],
            recipes=recipes,
            development="none",
        )
        folder = train(CrossEncoding(), settings, lambda message: None, lambda done, part: None)
        return load_file(folder.folder / "model.safetensors")

    standing = replace(QUICK, epochs=1, learning_rate=1e-12)
    first = weights(("sorted.tsv", QUICK))
    both = weights(("sorted.tsv", QUICK), ("rated.csv", standing))
    shared = [name for name in both if not name.startswith("classifier")]
    assert max((both[name] - first[name]).abs().max() for name in shared) < 1e-6


def test_mixed_files_are_one_stage(learn, files):
    task = Siamese([Loss.RANKING] * 2)
    folder = learn(task, "pairs.csv", "pairs.csv", mix=True, development="none").folder
    (stage,) = record(folder)["stages"]
    assert stage["data"]["examples"] == 128
    assert record(folder)["results"][0]["steps"] == 128 // 8 * 6


def test_early_stopping(learn, files):
    recipe = Recipe(epochs=50, learning_rate=1e-12, evaluate_every=4, patience=2)
    folder = learn(
        Siamese([Loss.COSINE]),
        "scored.csv",
        recipe=recipe,
        development=str(files / "scored.csv"),
        keep_leaks=True,
    ).folder
    assert record(folder)["results"][0]["steps"] == 12  # the first score, and two no better


def test_weights_depend_on_the_seed(learn, tmp_path):
    def weights(name, seed):
        recipe = Recipe(epochs=1, seed=seed, batch_size=8, precision=QUICK.precision)
        folder = learn(
            Siamese([Loss.SOFTMAX]), "labelled.tsv", recipe=recipe, output=tmp_path / name
        )
        return (folder.folder / "model.safetensors").read_bytes()

    first = weights("a", 1)
    assert weights("b", 1) == first
    assert weights("c", 2) != first


class TestResuming:
    @pytest.fixture(scope="class")
    @classmethod
    def whole(cls, tiny, files, tmp_path_factory):
        """The weights and losses of an uninterrupted run."""
        learn = learning(tiny, files, tmp_path_factory.mktemp("whole"))
        folder = learn(Siamese([Loss.SOFTMAX]), "labelled.tsv").folder
        return (folder / "model.safetensors").read_bytes(), losses(folder)

    def test_after_a_kill(self, learn, whole):
        """The run continues from the last checkpoint and ends as the uninterrupted one."""

        def die(done):
            if done == 25 * 8:
                raise MemoryError

        with pytest.raises(MemoryError):
            learn(Siamese([Loss.SOFTMAX]), "labelled.tsv", on_step=die)
        folder = learn(Siamese([Loss.SOFTMAX]), "labelled.tsv", resume=True).folder
        assert "resuming from step 16" in learn.messages
        assert learn.steps[0] == (16 * 8, 16 / 48)
        assert (folder / "model.safetensors").read_bytes() == whole[0]
        assert losses(folder) == whole[1]

    def test_checkpoints_by_time(self, learn, monkeypatch):
        """Also between evaluations, if these are far apart."""
        monkeypatch.setattr("semsearch.training.trainers.CHECKPOINT_EVERY_SECONDS", 0.0)

        def die(done):
            if done == 25 * 8:
                raise MemoryError

        with pytest.raises(MemoryError):
            learn(Siamese([Loss.COSINE]), "scored.csv", on_step=die)
        learn(Siamese([Loss.COSINE]), "scored.csv", resume=True)
        assert "resuming from step 24" in learn.messages

    def test_after_ctrl_c(self, learn, whole):
        def interrupt(done):
            if done == 21 * 8:
                signal.raise_signal(signal.SIGINT)

        before = signal.getsignal(signal.SIGINT)
        with pytest.raises(TrainingStoppedError, match=r"after step 21; .* --resume to continue"):
            learn(Siamese([Loss.SOFTMAX]), "labelled.tsv", on_step=interrupt)
        assert signal.getsignal(signal.SIGINT) is before
        folder = learn(Siamese([Loss.SOFTMAX]), "labelled.tsv", resume=True).folder
        assert "resuming from step 21" in learn.messages
        assert (folder / "model.safetensors").read_bytes() == whole[0]

    def test_patience_goes_on(self, learn, files):
        """It stops after as many evaluations without a better score as an uninterrupted run."""
        recipe = replace(QUICK, epochs=20, learning_rate=1e-12, evaluate_every=4, patience=3)
        options = {"recipe": recipe, "development": str(files / "scored.csv"), "keep_leaks": True}

        def interrupt(done):
            if done == 10 * 8:
                signal.raise_signal(signal.SIGINT)

        with pytest.raises(TrainingStoppedError):
            learn(Siamese([Loss.COSINE]), "scored.csv", on_step=interrupt, **options)
        folder = learn(Siamese([Loss.COSINE]), "scored.csv", resume=True, **options).folder
        last = max(one["step"] for one in record(folder)["results"][0]["history"] if "score" in one)
        whole = folder.with_name("whole")
        learn(Siamese([Loss.COSINE]), "scored.csv", output=whole, **options)
        history = record(whole)["results"][0]["history"]
        assert last == max(one["step"] for one in history if "score" in one)
        assert last < 160

    def test_incomplete_checkpoint_is_skipped(self, learn, tmp_path):
        def die(done):
            if done == 40 * 8:
                raise MemoryError

        with pytest.raises(MemoryError):
            learn(Siamese([Loss.COSINE]), "scored.csv", on_step=die)
        stage = tmp_path / "model.training" / "stage-0"
        (stage / "checkpoint-32" / "trainer_state.json").unlink()
        learn(Siamese([Loss.COSINE]), "scored.csv", resume=True)
        assert "resuming from step 16" in learn.messages

    def test_unfinished_run_is_not_overwritten(self, learn):
        def interrupt(done):
            if done:
                signal.raise_signal(signal.SIGINT)

        with pytest.raises(TrainingStoppedError):
            learn(Siamese([Loss.COSINE]), "scored.csv", on_step=interrupt)
        with pytest.raises(
            ArgumentError, match="unfinished training run; continue it with --resume"
        ):
            learn(Siamese([Loss.COSINE]), "scored.csv")
        other = Recipe(epochs=2, learning_rate=2e-3, batch_size=8, evaluate_every=16)
        with pytest.raises(
            ArgumentError, match=r"was started with epochs 6, not 2; resume it with that"
        ):
            learn(Siamese([Loss.COSINE]), "scored.csv", recipe=other, resume=True)

    def test_nothing_to_resume(self, learn):
        with pytest.raises(ArgumentError, match="no training run to resume"):
            learn(Siamese([Loss.COSINE]), "scored.csv", resume=True)


def test_loss_that_is_not_finite_is_reported(learn):
    recipe = Recipe(epochs=2, learning_rate=1e30, warmup=0)
    with pytest.raises(TrainingError, match=r"not finite at step \d+; lower --learning-rate"):
        learn(Siamese([Loss.SOFTMAX]), "labelled.tsv", recipe=recipe)


def test_missing_extra_is_reported(learn, monkeypatch):
    monkeypatch.setattr("semsearch.training.run.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'semsearch\[train\]'"):
        learn(Siamese([Loss.COSINE]), "scored.csv")


WIDTHS = {
    "vocab_size": 8,
    "hidden_size": 8,
    "intermediate_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
}
SPECIAL = {f"{name}_token_id": 0 for name in ("pad", "bos", "eos", "cls", "sep")}


@pytest.mark.parametrize(
    ("kind", "sizes", "layer", "embeddings"),
    [
        (BertModel, WIDTHS, "encoder.layer.{}.", "embeddings."),
        (ModernBertModel, WIDTHS | SPECIAL, "layers.{}.", "embeddings."),
        (Qwen3Model, WIDTHS | {"num_key_value_heads": 2}, "layers.{}.", "embed_tokens."),
        (T5EncoderModel, {"vocab_size": 8, "num_layers": 2}, "encoder.block.{}.", "shared."),
    ],
)
def test_layer_decay(kind, sizes, layer, embeddings):
    from semsearch.training.stage_trainer import learning_rates

    model = torch.nn.ModuleDict({"model": kind(kind.config_class(**sizes))})
    rates = learning_rates(model, Recipe(learning_rate=1.0, layer_decay=0.5))
    expected = {
        f"model.{layer.format(0)}": 0.25,
        f"model.{layer.format(1)}": 0.5,
        f"model.{embeddings}": 0.125,
    }
    for name, _ in model.named_parameters():
        found = [rate for pattern, rate in rates.items() if re.search(pattern, name)]
        assert found == [rate for start, rate in expected.items() if name.startswith(start)], name
    assert learning_rates(model, Recipe()) == {}


def test_layer_decay_without_layers_is_rejected():
    from semsearch.training.stage_trainer import learning_rates

    with pytest.raises(ArgumentError, match="--layer-decay does not support this model"):
        learning_rates(torch.nn.Embedding(2, 2), Recipe(layer_decay=0.5))


def test_a_new_classifier_learns_faster(tiny):
    from sentence_transformers.sentence_transformer.losses import SoftmaxLoss

    from semsearch.training.stage_trainer import learning_rates

    loss = SoftmaxLoss(Siamese([Loss.SOFTMAX]).load(tiny), 32, 3)
    [(pattern, rate)] = learning_rates(loss, Recipe(head_learning_rate=0.5)).items()
    names = [name for name, _ in loss.named_parameters() if re.search(pattern, name)]
    assert names == ["classifier.weight", "classifier.bias"]
    assert rate == 0.5


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("epochs", 0),
        ("learning_rate", float("nan")),
        ("head_learning_rate", 0),
        ("batch_size", 0),
        ("warmup", 1),
        ("layer_decay", 1.5),
        ("seed", -1),
        ("patience", 0),
        ("max_tokens", 2),
    ],
)
def test_invalid_recipes_are_rejected(name, value):
    with pytest.raises(ArgumentError, match=f"^{name} must be"):
        Recipe(**{name: value})
