"""Models other than the bundled one: tiny BERTs, plain and changed; cross-encoders."""

from __future__ import annotations

import json
import shutil

import numpy
import pytest
import torch
from safetensors.torch import load_file, save_file
from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.sentence_transformer import modules
from transformers import BertForSequenceClassification, BertModel, BertTokenizerFast

from semsearch.encoders import load_encoder, load_reranker
from semsearch.encoders import torch_models as torch_runtime
from semsearch.encoders.openvino.models import OpenVINOEncoder, OpenVINOReranker
from semsearch.encoders.specs import Pooling
from semsearch.encoders.text_model import Batching
from semsearch.errors import EncoderError, ModelNotFoundError

TEXTS = ["a b c", "d", "a a a a e f", "f e d c b a a b c"]
POOLINGS = [pooling.value for pooling in Pooling]


@pytest.fixture
def copied(plain_bert, tmp_path):
    """A bi-encoder of the tiny BERT, to be changed."""
    SentenceTransformer(str(plain_bert), device="cpu").save(str(tmp_path / "model"))
    return tmp_path / "model"


def change_weights(folder, change):
    """Rewrite the weights of a model."""
    weights = change(load_file(folder / "model.safetensors"))
    save_file(weights, folder / "model.safetensors", {"format": "pt"})


def without(part):
    return lambda weights: {name: weights[name] for name in weights if part not in name}


@pytest.mark.parametrize(
    "change",
    [
        lambda weights: {f"_orig_mod.{name}": weights[name] for name in weights},  # torch.compile
        without("layer.1"),
    ],
)
@pytest.mark.parametrize("device", [None, "cpu"])  # the former is converted for OpenVINO
def test_missing_weights_are_refused(copied, change, device):
    """They would be random, and different in each process."""
    change_weights(copied, change)
    with pytest.raises(EncoderError, match=r"encoder\.|emb"):
        load_encoder(str(copied), device=device).encode_documents(["a"])


def test_a_model_without_a_tokenizer_is_refused(copied):
    for name in ("tokenizer.json", "tokenizer_config.json", "vocab.txt"):
        (copied / name).unlink(missing_ok=True)
    with pytest.raises(EncoderError):
        load_encoder(str(copied), device="cpu").encode_documents(["a"])


@pytest.mark.parametrize("device", [None, "cpu"])
def test_settings_of_the_model_count(copied, device):
    """Its vectors may be truncated, and its texts cut at the beginning."""
    for name, change in (
        ("config_sentence_transformers.json", {"truncate_dim": 8}),
        ("tokenizer_config.json", {"truncation_side": "left"}),
    ):
        content = json.loads((copied / name).read_text())
        (copied / name).write_text(json.dumps(content | change))
    long = "a " * 40 + "b c d e f " * 8
    encoder = load_encoder(str(copied), device=device)
    model = SentenceTransformer(str(copied), device="cpu")
    expected = model.encode([long, "b c d e f " * 8], normalize_embeddings=True)
    assert expected[0] @ expected[1] > 0.999
    found = encoder.encode_documents([long])
    assert found.shape == (1, encoder.dimension) == (1, 8)
    numpy.testing.assert_allclose(found, expected[:1], atol=1e-4)
    spans = encoder.token_spans(long)
    assert len(spans) == 80
    assert (numpy.diff(spans[:, 0]) > 0).all()


@pytest.mark.parametrize("include_prompt", [True, False])
@pytest.mark.parametrize("pooling", ["mean", "cls", "max"])
def test_batches_by_tokens_change_nothing(
    plain_bert, tmp_path, monkeypatch, pooling, include_prompt
):
    """Compared with sentence-transformers, which makes the batches if prompts are not pooled."""
    monkeypatch.setattr(torch_runtime, "CPU_BATCHING", Batching(24, 100, least_fill=0.9))
    parts = [
        modules.Transformer(str(plain_bert)),
        modules.Pooling(32, pooling_mode=pooling, include_prompt=include_prompt),
    ]
    prompts = {"query": "query : ", "document": "document : "}
    model = SentenceTransformer(modules=parts, prompts=prompts, device="cpu")
    model.save(str(tmp_path))
    texts = [" ".join("abcdef"[: 1 + number % 6]) * (1 + number % 9) for number in range(40)]
    encoder = load_encoder(str(tmp_path), device="cpu")
    expected = model.encode_query(texts, normalize_embeddings=True)
    numpy.testing.assert_allclose(encoder.encode_queries(texts), expected, atol=1e-5)
    expected = model.encode_document(texts, normalize_embeddings=True)
    numpy.testing.assert_allclose(encoder.encode_documents(texts), expected, atol=1e-5)
    assert encoder.encode_documents([]).shape == (0, 32)


def by_hand(folder, pooling, text):
    """The unit vector of one text alone, without padding: Reimers & Gurevych 2019, section 3."""
    inputs = BertTokenizerFast.from_pretrained(folder)(text, return_tensors="pt")
    with torch.no_grad():
        output = BertModel.from_pretrained(folder).eval()(**inputs)
    tokens = output.last_hidden_state[0].numpy()
    vector = {
        "mean": tokens.mean(axis=0),
        "cls": tokens[0],
        "max": tokens.max(axis=0),
        "pooler": output.pooler_output[0].numpy(),
    }[pooling]
    return vector / numpy.linalg.norm(vector)


@pytest.mark.parametrize("device", [None, "cpu"])
@pytest.mark.parametrize("pooling", POOLINGS)
def test_padding_never_changes_a_vector(plain_bert, pooling, device):
    encoder = load_encoder(f"{plain_bert}@{pooling}", device=device, precision="fp32")
    assert isinstance(encoder, OpenVINOEncoder) == (device is None)
    expected = [by_hand(plain_bert, pooling, text) for text in TEXTS]
    padded = encoder.encode_documents(TEXTS * 4)[: len(TEXTS)]
    numpy.testing.assert_allclose(padded, expected, atol=1e-5)
    alone = [encoder.encode_queries([text])[0] for text in TEXTS]
    numpy.testing.assert_allclose(alone, expected, atol=1e-5)


def test_a_missing_pooler_is_not_used(plain_bert, tmp_path):
    expected = load_encoder(f"{plain_bert}@cls", device="cpu").encode_documents(["a b"])
    folder = shutil.copytree(plain_bert, tmp_path / "model")
    change_weights(folder, without("pooler"))
    with pytest.raises(EncoderError):
        load_encoder(f"{folder}@pooler")
    (folder / "checkpoint-5").mkdir()  # another model's weights, which are not read
    shutil.copy(plain_bert / "model.safetensors", folder / "checkpoint-5")
    with pytest.raises(EncoderError):
        load_encoder(f"{folder}@pooler")
    found = load_encoder(f"{folder}@cls", device="cpu").encode_documents(["a b"])
    numpy.testing.assert_allclose(found, expected, atol=1e-6)


#: The last two are longer than the model reads.
PAIRS = [("a b", "c"), ("a b", "f e d c b a"), ("d", "d"), ("", "a")]
PAIRS += [("a b c " * 9, "d e f " * 5), ("f", "b " * 40)]


@pytest.fixture(scope="module")
def folder(classifier):
    return classifier()


@pytest.mark.parametrize("device", [None, "cpu"])
def test_scores_are_those_of_transformers(folder, device):
    reranker = load_reranker(f"cross-encoder:{folder}", device, "fp32")
    assert isinstance(reranker, OpenVINOReranker) == (device is None)
    assert reranker.spec == f"cross-encoder:{folder}"
    tokenizer = BertTokenizerFast.from_pretrained(folder)
    model = BertForSequenceClassification.from_pretrained(folder).eval()
    expected = []
    for pair in PAIRS:
        inputs = tokenizer(*pair, truncation=True, max_length=32, return_tensors="pt")
        expected.append(torch.sigmoid(model(**inputs).logits).item())
    assert len({round(score, 4) for score in expected}) == len(PAIRS)
    numpy.testing.assert_allclose(reranker.score_pairs(PAIRS), expected, atol=1e-5)
    few = reranker.score("a b", [right for _, right in PAIRS[:2]])  # one by one
    numpy.testing.assert_allclose(few, expected[:2], atol=1e-5)
    assert reranker.score("a", []).shape == (0,)


def test_what_is_no_cross_encoder(folder, classifier, plain_bert):
    specs = (f"{folder}@cls", str(plain_bert), str(classifier(2)), str(classifier(3)))
    for spec, precision in (*((spec, "auto") for spec in specs), (str(folder), "int8")):
        with pytest.raises(EncoderError):
            load_reranker(spec, precision=precision)
    with pytest.raises(ModelNotFoundError):
        load_reranker("cross-encoder:/nowhere")


def test_it_is_no_bi_encoder(folder, tmp_path):
    """As sentence-transformers and `train cross-encoder` save it; with a pooling, it is a BERT."""
    CrossEncoder(str(folder), device="cpu").save_pretrained(str(tmp_path))
    with pytest.raises(EncoderError, match="is a cross-encoder"):
        load_encoder(str(tmp_path))
    assert load_encoder(f"{tmp_path}@mean").dimension == 32
    assert load_reranker(str(tmp_path)).score("a b", ["c"]).shape == (1,)
