"""Cross-encoders score as in transformers; other models are refused."""

from __future__ import annotations

import numpy
import pytest
import torch
from sentence_transformers import CrossEncoder
from transformers import BertForSequenceClassification, BertTokenizerFast

from semsearch.encoders import load_encoder, load_reranker
from semsearch.encoders.openvino.models import OpenVINOReranker
from semsearch.errors import EncoderError, ModelNotFoundError

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


def test_what_is_refused(folder, classifier, plain_bert):
    for spec in (f"{folder}@cls", str(plain_bert), str(classifier(2)), str(classifier(3))):
        with pytest.raises(EncoderError):
            load_reranker(spec)
    with pytest.raises(EncoderError):
        load_reranker(str(folder), precision="int8")
    with pytest.raises(ModelNotFoundError):
        load_reranker("cross-encoder:/nowhere")


def test_it_is_no_bi_encoder(folder, tmp_path):
    """As sentence-transformers and `train cross-encoder` save it; with a pooling, it is a BERT."""
    CrossEncoder(str(folder), device="cpu").save_pretrained(str(tmp_path))
    with pytest.raises(EncoderError, match="is a cross-encoder"):
        load_encoder(str(tmp_path))
    assert load_encoder(f"{tmp_path}@mean").dimension == 32
    assert load_reranker(str(tmp_path)).score("a b", ["c"]).shape == (1,)
