"""Cross-encoders score as in transformers; other models are refused."""

from __future__ import annotations

import numpy
import pytest
import torch
from sentence_transformers import CrossEncoder
from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

from semsearch.encoders import load_encoder, load_reranker
from semsearch.encoders.openvino_models import OpenVINOReranker
from semsearch.errors import EncoderError, ModelNotFoundError

pytestmark = pytest.mark.slow

PAIRS = [
    ("a b", "c"),
    ("a b", "f e d c b a"),
    ("d", "d"),
    ("", "a"),
    ("a b c " * 9, "d e f " * 5),  # longer than the model reads
    ("f", "b " * 40),
]


@pytest.fixture(scope="module")
def classifier(plain_bert, tmp_path_factory):
    """Makes a folder with a BERT whose random head has `labels` outputs."""

    def make(labels):
        folder = tmp_path_factory.mktemp("classifier")
        torch.manual_seed(1)
        config = BertConfig.from_pretrained(plain_bert, num_labels=labels)
        model = BertForSequenceClassification(config).eval()
        for weights in (model.bert.pooler.dense.weight, model.classifier.weight):
            weights.data *= 20  # the initial weights would score all pairs alike
        model.save_pretrained(folder)
        BertTokenizerFast.from_pretrained(plain_bert).save_pretrained(folder)
        return folder

    return make


@pytest.fixture(scope="module")
def folder(classifier):
    return classifier(1)


@pytest.mark.parametrize("device", [None, "cpu"])
def test_scores_are_those_of_transformers(folder, device):
    reranker = load_reranker(f"cross-encoder:{folder}", device, "fp32")
    assert isinstance(reranker, OpenVINOReranker) == (device is None)
    assert reranker.spec == f"cross-encoder:{folder}"
    tokenizer = BertTokenizerFast.from_pretrained(folder)
    model = BertForSequenceClassification.from_pretrained(folder).eval()
    expected = []
    for left, right in PAIRS:
        with torch.no_grad():
            inputs = tokenizer(left, right, truncation=True, max_length=32, return_tensors="pt")
            logit = model(**inputs).logits
        expected.append(torch.sigmoid(logit).item())
    assert len({round(score, 4) for score in expected}) == len(PAIRS)
    numpy.testing.assert_allclose(reranker.score_pairs(PAIRS), expected, atol=1e-5)
    few = reranker.score("a b", [right for _, right in PAIRS[:2]])  # one by one
    numpy.testing.assert_allclose(few, expected[:2], atol=1e-5)
    assert reranker.score("a", []).shape == (0,)


def test_the_order_of_a_pair_counts(folder):
    reranker = load_reranker(str(folder), precision="fp32")
    one, other = reranker.score_pairs([("a b", "f"), ("f", "a b")])
    assert abs(one - other) > 1e-4


def test_int8_is_refused(folder):
    with pytest.raises(EncoderError, match="do not support int8"):
        load_reranker(str(folder), precision="int8")


def test_a_pooling_is_refused(folder):
    with pytest.raises(EncoderError, match="a cross-encoder has no pooling; remove the suffix"):
        load_reranker(f"{folder}@cls")


def test_a_plain_bert_is_refused(plain_bert):
    with pytest.raises(EncoderError, match="is not a cross-encoder: it has no trained head"):
        load_reranker(str(plain_bert))


def test_it_is_no_bi_encoder(folder, tmp_path):
    """As sentence-transformers and `train cross-encoder` save it; with a pooling, it is a BERT."""
    CrossEncoder(str(folder), device="cpu").save_pretrained(str(tmp_path))
    with pytest.raises(EncoderError, match=r"is a cross-encoder: .* use it for reranking"):
        load_encoder(str(tmp_path))
    assert load_encoder(f"{tmp_path}@mean").dimension == 32
    assert load_reranker(str(tmp_path)).score("a b", ["c"]).shape == (1,)


def test_more_words_than_weights(plain_bert, tmp_path):
    config = BertConfig.from_pretrained(plain_bert, num_labels=1, vocab_size=6)
    BertForSequenceClassification(config).save_pretrained(tmp_path)
    BertTokenizerFast.from_pretrained(plain_bert).save_pretrained(tmp_path)
    for load in (load_reranker, load_encoder):
        with pytest.raises(
            EncoderError, match=r"weights for 6 tokens, .* tokenizer has \d+: it is"
        ):
            load(str(tmp_path))


@pytest.mark.parametrize("labels", [2, 3])
def test_several_outputs_are_refused(classifier, labels):
    with pytest.raises(EncoderError, match=f"returns {labels} values per pair"):
        load_reranker(str(classifier(labels)))


def test_no_such_model():
    with pytest.raises(ModelNotFoundError, match="no model folder /nowhere"):
        load_reranker("cross-encoder:/nowhere")
