"""Cross-encoders give what transformers gives; what is none is refused."""

from __future__ import annotations

import numpy
import pytest
import torch
from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

from semsearch.encoders import load_reranker
from semsearch.errors import EncoderError, ModelNotFoundError

PAIRS = [("a b", "c"), ("a b", "f e d c b a"), ("d", "d"), ("", "a")]


@pytest.fixture(scope="module")
def classifier(plain_bert, tmp_path_factory):
    """Makes a folder with a BERT that has a random head of so many outputs."""

    def make(labels):
        folder = tmp_path_factory.mktemp("classifier")
        torch.manual_seed(1)
        config = BertConfig.from_pretrained(plain_bert, num_labels=labels)
        BertForSequenceClassification(config).eval().save_pretrained(folder)
        BertTokenizerFast.from_pretrained(plain_bert).save_pretrained(folder)
        return folder

    return make


@pytest.fixture(scope="module")
def folder(classifier):
    return classifier(1)


def test_scores_are_those_of_transformers(folder):
    reranker = load_reranker(f"cross-encoder:{folder}")
    assert reranker.spec == f"cross-encoder:{folder}"
    tokenizer = BertTokenizerFast.from_pretrained(folder)
    model = BertForSequenceClassification.from_pretrained(folder).eval()
    expected = []
    for left, right in PAIRS:
        with torch.no_grad():
            logit = model(**tokenizer(left, right, return_tensors="pt")).logits
        expected.append(torch.sigmoid(logit).item())
    assert len(set(expected)) == len(PAIRS)
    numpy.testing.assert_allclose(reranker.score_pairs(PAIRS), expected, atol=1e-5)
    numpy.testing.assert_allclose(
        reranker.score("a b", [b for _, b in PAIRS[:2]]), expected[:2], atol=1e-5
    )
    assert reranker.score("a", []).shape == (0,)


def test_a_plain_bert_is_refused(plain_bert):
    with pytest.raises(EncoderError, match="is no cross-encoder: it has no trained head"):
        load_reranker(str(plain_bert))


@pytest.mark.parametrize("labels", [2, 3])
def test_several_outputs_are_refused(classifier, labels):
    with pytest.raises(EncoderError, match=f"gives {labels} values a pair"):
        load_reranker(str(classifier(labels)))


def test_no_such_model():
    with pytest.raises(ModelNotFoundError, match="no model folder /nowhere"):
        load_reranker("cross-encoder:/nowhere")
