"""BERT from scratch, in miniature: both losses are BERT's, they fall, and the result is a BERT."""

from __future__ import annotations

import os
import signal
from itertools import chain

import numpy
import pytest
import torch
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformer
from transformers import BertForPreTraining, BertModel

from semsearch import Document
from semsearch.encoders import load_encoder
from semsearch.errors import ArgumentError, EncoderError, TrainingError, TrainingStoppedError
from semsearch.runs import Workspace
from semsearch.unsupervised import loop, pretraining
from semsearch.unsupervised.bert import BertSize, load_bert, new_bert, predict_frequencies
from semsearch.unsupervised.loop import Length
from semsearch.unsupervised.pretraining import PretrainingSettings, pretrain
from semsearch.unsupervised.pretraining_batches import PairBatches
from semsearch.unsupervised.pretraining_losses import measured_losses, pretraining_loss
from semsearch.unsupervised.wordpieces import learn_word_pieces

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def exact_and_single():
    """fp32 and one thread: the tiny products here are not worth more."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def settings(steps=40, **others):
    chosen = {"size": BertSize.TINY, "vocabulary": 200, "max_tokens": 32, "batch": 16, **others}
    return PretrainingSettings(Length(steps), **chosen)


@pytest.fixture(scope="module")
def trained(documents, tmp_path_factory):
    """A model of 40 steps: its folder, what was told, its losses."""
    told = []
    folder = tmp_path_factory.mktemp("pretrained") / "tiny"
    losses = pretrain(documents, Workspace(folder), settings(), notify=told.append)
    return folder, told, losses


def test_no_steps_are_random_weights(tmp_path):
    """Texts of one sentence and titles count for the vocabulary; the seed decides the weights."""
    corpus = [Document(str(n), f"word{n} here", title="entitled") for n in range(3)]
    for name, seed in [("one", 0), ("again", 0), ("other", 1)]:
        assert pretrain(corpus, Workspace(tmp_path / name), settings(0, seed=seed)) is None
    one, again, other = (
        load_file(tmp_path / name / "model.safetensors") for name in ("one", "again", "other")
    )
    name = "bert.embeddings.word_embeddings.weight"
    assert torch.equal(one[name], again[name])
    assert not torch.equal(one[name], other[name])
    assert float(one[name].std()) == pytest.approx(0.02, rel=0.05)  # BertConfig.initializer_range
    assert "entitled" in (tmp_path / "one" / "vocab.txt").read_text("utf-8").split()


def test_the_loss_is_that_of_transformers():
    """Computed for the masked tokens alone, against BertForPreTraining over all tokens."""
    texts = [["one two three", "four five six"], ["seven eight", "nine ten one"]] * 3
    tokenizer = learn_word_pieces(lambda: chain(*texts, *texts), 120, 32)
    torch.manual_seed(0)
    model = new_bert(BertSize.TINY, tokenizer).eval()
    batches = PairBatches(texts, tokenizer, 32, 8)
    generator = numpy.random.default_rng(0)
    (pairs,) = batches.epoch(generator)
    batch = batches.batch(pairs, generator, "cpu")
    labels = torch.full_like(batch.features["input_ids"], -100)
    labels.view(-1)[batch.places] = batch.answers
    expected = model(
        **batch.features, labels=labels, next_sentence_label=batch.not_next
    ).loss.detach()
    ours = pretraining_loss(model, batch).detach()
    assert float(ours) == pytest.approx(float(expected), rel=2e-2)  # bf16, where there is
    measured = measured_losses(model, [batch])
    assert measured.masked_loss + measured.next_loss == pytest.approx(float(ours), rel=2e-3)


def test_pairs_become_what_bert_reads():
    """[CLS] first [SEP] second [SEP], segments 0 and 1, as a tokenizer writes two texts."""
    texts = [[f"alpha{n} beta", f"gamma{n} delta epsilon"] for n in range(6)]
    tokenizer = learn_word_pieces(lambda: chain(*texts, *texts), 120, 64)
    batches = PairBatches(texts, tokenizer, 64, 6)
    generator = numpy.random.default_rng(0)
    (pairs,) = batches.epoch(generator)
    batch = batches.batch(pairs, generator, "cpu")
    ids = batch.features["input_ids"].clone()
    ids.view(-1)[batch.places] = batch.answers
    by_words = {tuple(tokenizer(a, b).input_ids) for a, _ in texts for _, b in texts}
    for row, is_next in enumerate(pairs.is_next):
        length = int(batch.features["attention_mask"][row].sum())
        assert tuple(ids[row, :length].tolist()) in by_words
        assert not batch.features["attention_mask"][row, length:].any()
        segments = batch.features["token_type_ids"][row].tolist()
        assert segments[:length].index(1) == ids[row].tolist().index(tokenizer.sep_token_id) + 1
        assert bool(batch.not_next[row]) != bool(is_next)


def test_sizes():
    """Turc et al. 2019; BERT-base has 199 named parameters without a head, 110 million."""
    tokenizer = learn_word_pieces(lambda: ["some words here"] * 2, 60, 32)
    layers = {size: (size.layers, size.width) for size in BertSize}
    assert list(layers.values()) == [(2, 128), (4, 256), (4, 512), (12, 768)]
    with torch.device("meta"):
        base = new_bert(BertSize.BASE, tokenizer).bert
    assert len(list(base.named_parameters())) == 199
    count = sum(parameter.numel() for parameter in base.parameters())
    assert count + (30_522 - len(tokenizer)) * 768 == 109_482_240  # bert-base-uncased


def test_masked_words_begin_with_their_frequencies():
    """log((count + 1/2) / (all + 1/2 for each)), by hand."""
    tokenizer = learn_word_pieces(lambda: ["one two"] * 2, 60, 32)
    model = new_bert(BertSize.TINY, tokenizer)
    one, two = tokenizer.convert_tokens_to_ids(["one", "two"])
    predict_frequencies(model, numpy.array([one, two, one, one]))
    bias = model.cls.predictions.decoder.bias.detach().exp()
    pieces = len(tokenizer)
    assert float(bias[one]) == pytest.approx(3.5 / (4 + pieces / 2))
    assert float(bias[two]) == pytest.approx(1.5 / (4 + pieces / 2))
    assert float(bias.sum()) == pytest.approx(1)


def test_rare_words_do_not_become_alike(tmp_path):
    """After 600 steps; from a bias of zeros, the rare half of these words came to 0.36."""
    random = numpy.random.default_rng(0)
    syllables = [first + second for first in "bdfgklmnprst" for second in "aeiou"]
    words = ["".join(random.choice(syllables, 3)) for _ in range(500)]
    zipf = 1 / numpy.arange(1, len(words) + 1)
    texts = [
        ". ".join(" ".join(random.choice(words, 8, p=zipf / zipf.sum())) for _ in range(4))
        for _ in range(600)
    ]
    documents = [Document(str(number), text) for number, text in enumerate(texts)]
    asked = settings(600, vocabulary=700, batch=8)
    pretrain(documents, Workspace(tmp_path / "bert"), asked)
    bert, tokenizer, _ = load_bert(str(tmp_path / "bert"))
    ids = tokenizer(" ".join(texts), add_special_tokens=False, verbose=False).input_ids
    counts = numpy.bincount(ids, minlength=len(tokenizer))
    by_count = numpy.argsort(-counts)[: numpy.count_nonzero(counts)]
    rare = bert.bert.embeddings.word_embeddings.weight[by_count[len(by_count) // 2 :]]
    unit = torch.nn.functional.normalize(rare.detach())
    mean_cosine = float((unit @ unit.T).fill_diagonal_(0).sum()) / (len(unit) * (len(unit) - 1))
    assert mean_cosine < 0.2


def test_the_losses_fall(trained):
    _, told, losses = trained
    first = next(line for line in told if line.startswith("step 1:"))
    before = float(first.split("masked words: loss ")[1].split(",")[0])
    assert losses.masked_loss < before - 1
    assert losses.masked_accuracy > 0.05
    assert "120" not in told[0]
    assert told[0] == "114 documents of two sentences or more to train on, 6 held out"


def test_round_trip(trained):
    """As sentence-transformers pools it, and as its own heads predict."""
    folder, _, _ = trained
    model = SentenceTransformer(str(folder), device="cpu")
    assert model.max_seq_length == 32
    vectors = load_encoder(str(folder), device="cpu").encode_documents(["The wave salt harbour."])
    bert, tokenizer, new_heads = load_bert(str(folder))
    assert not new_heads
    with torch.no_grad():
        tokens = bert.eval().bert(**tokenizer("The wave salt harbour.", return_tensors="pt"))[0][0]
    expected = tokens.mean(0).numpy()
    numpy.testing.assert_allclose(vectors[0], expected / numpy.linalg.norm(expected), atol=1e-5)
    assert "held out at the end" in (folder / "README.md").read_text("utf-8")


def test_a_stopped_run_goes_on_as_if_it_had_not(trained, documents, tmp_path):
    folder, _, losses = trained

    def stop(steps, fraction):
        if steps == 17:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(TrainingStoppedError, match="stopped after step 17; .* --resume goes on"):
        pretrain(documents, Workspace(tmp_path / "m"), settings(), on_progress=stop)
    assert not (tmp_path / "m").exists()
    workspace = Workspace(tmp_path / "m", resume=True)
    with pytest.raises(ArgumentError, match="was started with batch 16, not 8"):
        pretrain(documents, workspace, settings(batch=8))
    with pytest.raises(ArgumentError, match="was started with corpus"):
        pretrain(documents[1:], workspace, settings())
    again = pretrain(documents, Workspace(tmp_path / "m", resume=True), settings())
    assert again == losses
    expected = load_file(folder / "model.safetensors")
    found = load_file(tmp_path / "m" / "model.safetensors")
    assert expected.keys() == found.keys()
    assert all(torch.equal(expected[name], found[name]) for name in expected)


def test_it_goes_on_from_a_bert(trained, documents, tmp_path):
    folder, _, losses = trained
    further = pretrain(
        documents, Workspace(tmp_path / "m"), settings(20, base=str(folder), learning_rate=1e-3)
    )
    assert further.masked_loss < losses.masked_loss


def test_it_goes_on_from_a_bert_without_heads(trained, documents, tmp_path):
    folder, _, _ = trained
    plain = tmp_path / "plain"
    bert = BertForPreTraining.from_pretrained(folder).bert
    assert isinstance(bert, BertModel)
    bert.save_pretrained(plain)
    load_bert(str(folder)).tokenizer.save_pretrained(plain)
    told = []
    pretrain(documents, Workspace(tmp_path / "m"), settings(2, base=str(plain)), notify=told.append)
    assert any("without the heads of pre-training" in line for line in told)


def test_other_models_are_refused(documents, tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "roberta"}')
    (tmp_path / "model.safetensors").touch()
    with pytest.raises(EncoderError, match="is a roberta, and it takes a BERT"):
        load_bert(str(tmp_path))


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ([], "0 different documents of two sentences"),
        (["One sentence."] * 50, "0 different documents of two sentences"),
        (["One. Two."] * 50, "1 different documents of two sentences"),
    ],
)
def test_too_little_is_told_first(texts, message, tmp_path, monkeypatch):
    monkeypatch.setattr(pretraining, "fit", lambda *_, **__: pytest.fail("trained"))
    documents = [Document(None, text) for text in texts]
    with pytest.raises(TrainingError, match=message):
        pretrain(documents, Workspace(tmp_path / "m"), settings())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "wrong", [{"max_tokens": 600}, {"max_tokens": 4}, {"batch": 1}, {"seed": -1}]
)
def test_settings_that_cannot_be(wrong):
    with pytest.raises(ArgumentError):
        settings(**wrong)


def test_bf16_is_used_where_it_is_fast(monkeypatch):
    from semsearch.encoders.specs import Precision

    for precision in (Precision.FP32, Precision.BF16):
        monkeypatch.setattr(
            "semsearch.encoders.openvino_runtime.float_precision",
            lambda _, answer=precision: answer,
        )
        with loop.autocast("cpu"):
            product = torch.ones(2, 2) @ torch.ones(2, 2)
        assert (product.dtype is torch.bfloat16) == (precision is Precision.BF16)
