"""The bundled encoder against plain sentence-transformers."""

from __future__ import annotations

import numpy
import pytest
from sentence_transformers import SentenceTransformer

from semsearch.encoders import load_encoder
from semsearch.encoders.model_folder import find_model

pytestmark = pytest.mark.slow

SENTENCES = ["A cat sleeps.", "He will get scared", "Ein Satz auf Deutsch, mit Umlauten: äöü.", "x"]

#: Word-piece ids with the vocabulary of bert-base-uncased, by transformers' BertTokenizer.
WORD_PIECES = {
    "He will get scared": [101, 2002, 2097, 2131, 6015, 102],
    "She will get the drinks": [101, 2016, 2097, 2131, 1996, 8974, 102],
    "Sinan loves a beautiful day": [101, 8254, 2319, 7459, 1037, 3376, 2154, 102],
}


@pytest.fixture(scope="module")
def plain():
    return SentenceTransformer(str(find_model("minilm").path), device="cpu")


@pytest.fixture(scope="module", params=["openvino", "torch"])
def encoder(request, cache):
    """The encoder on each of its runtimes, in full precision."""
    device = None if request.param == "openvino" else "cpu"
    return load_encoder("minilm", device=device, precision="fp32")


@pytest.mark.parametrize("text", WORD_PIECES)
def test_word_piece_ids(plain, encoder, text):
    assert plain.tokenizer(text)["input_ids"] == WORD_PIECES[text]
    spans = encoder.token_spans(text)  # [CLS] and [SEP] stand for no characters
    assert len(spans) == len(WORD_PIECES[text]) - 2
    assert "".join(text[start:end] for start, end in spans) == text.replace(" ", "")


def test_vectors_are_those_of_plain_sentence_transformers(plain, encoder):
    expected = plain.encode(SENTENCES, normalize_embeddings=True)
    for encode in (encoder.encode_documents, encoder.encode_queries):
        vectors = encode(SENTENCES)
        assert vectors.dtype == numpy.float32
        assert vectors.shape == (4, encoder.dimension) == (4, 384)
        numpy.testing.assert_allclose(vectors, expected, atol=1e-4)
        numpy.testing.assert_allclose(numpy.linalg.norm(vectors, axis=1), 1, atol=1e-6)


def test_encoding_nothing_gives_no_rows(encoder):
    assert encoder.encode_documents([]).shape == (0, 384)


def test_reads_256_tokens_including_special_ones(encoder):
    assert encoder.max_document_tokens == encoder.max_query_tokens == 254
    words = " ".join(["word"] * 300)
    cut = " ".join(["word"] * 254)
    left, right = encoder.encode_documents([words, cut])
    assert left @ right == pytest.approx(1, abs=1e-6)


def test_vectors_keep_the_order_of_texts(plain, encoder):
    texts = [
        " ".join(["many words", *SENTENCES[number % 3].split()] * (1 + number % 13))
        for number in range(50)
    ]
    cosines = encoder.encode_documents(texts) * plain.encode(texts, normalize_embeddings=True)
    assert cosines.sum(axis=1).min() > 0.99999
