"""Models on torch other than the bundled one: tiny BERTs, plain and with prompts."""

from __future__ import annotations

import numpy
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
from transformers import BertModel, BertTokenizerFast

from semsearch.encoders import load_encoder
from semsearch.encoders import torch_models as torch_runtime
from semsearch.encoders.text_model import Batching

pytestmark = pytest.mark.slow

TEXTS = ["a b c", "d", "a a a a e f"]


def test_a_plain_bert_is_mean_pooled(plain_bert):
    """Against the mean over the tokens of one text at a time, special tokens included."""
    encoder = load_encoder(str(plain_bert), device="cpu")
    tokenizer = BertTokenizerFast.from_pretrained(plain_bert)
    bert = BertModel.from_pretrained(plain_bert).eval()
    for text, vector in zip(TEXTS, encoder.encode_documents(TEXTS), strict=True):
        with torch.no_grad():
            tokens = bert(**tokenizer(text, return_tensors="pt")).last_hidden_state[0]
        mean = tokens.mean(0).numpy()
        numpy.testing.assert_allclose(vector, mean / numpy.linalg.norm(mean), atol=1e-5)


def test_prompts_are_used(plain_bert, tmp_path):
    model = SentenceTransformer(str(plain_bert), device="cpu")
    model.prompts = {"query": "query : ", "document": "document : "}
    model.save(str(tmp_path))
    encoder = load_encoder(str(tmp_path), device="cpu")
    plain = load_encoder(str(plain_bert), device="cpu")
    prompted = plain.encode_documents(["query : a b", "document : a b"])
    numpy.testing.assert_allclose(encoder.encode_queries(["a b"])[0], prompted[0], atol=1e-6)
    numpy.testing.assert_allclose(encoder.encode_documents(["a b"])[0], prompted[1], atol=1e-6)
    assert encoder.description()["prompts"] == {"query": "query : ", "document": "document : "}
    assert encoder.fingerprint != plain.fingerprint


def test_the_maximum_length_is_the_models(plain_bert):
    assert load_encoder(str(plain_bert), device="cpu").facts.max_tokens == 32 - 2


def test_token_spans_are_not_truncated(plain_bert):
    encoder = load_encoder(str(plain_bert), device="cpu")
    encoder.encode_documents(["a " * 100])  # the model's own tokenizer has truncation set by now
    assert encoder.token_spans("a " * 100).shape == (100, 2)
    assert encoder.token_spans("").shape == (0, 2)


@pytest.mark.parametrize("include_prompt", [True, False])
@pytest.mark.parametrize("pooling", ["mean", "cls", "max"])
def test_batches_by_tokens_change_nothing(
    plain_bert, tmp_path, monkeypatch, pooling, include_prompt
):
    """Compared with sentence-transformers, which makes the batches if prompts are not pooled."""
    monkeypatch.setattr(torch_runtime, "CPU_BATCHING", Batching(24, 100, least_fill=0.9))
    model = SentenceTransformer(
        modules=[
            Transformer(str(plain_bert)),
            Pooling(32, pooling_mode=pooling, include_prompt=include_prompt),
        ],
        prompts={"query": "query : ", "document": "document : "},
        device="cpu",
    )
    model.save(str(tmp_path))
    texts = [" ".join("abcdef"[: 1 + number % 6]) * (1 + number % 9) for number in range(40)]
    encoder = load_encoder(str(tmp_path), device="cpu")
    expected = model.encode_query(texts, normalize_embeddings=True)
    numpy.testing.assert_allclose(encoder.encode_queries(texts), expected, atol=1e-5)
    expected = model.encode_document(texts, normalize_embeddings=True)
    numpy.testing.assert_allclose(encoder.encode_documents(texts), expected, atol=1e-5)
    assert encoder.encode_documents([]).shape == (0, 32)
