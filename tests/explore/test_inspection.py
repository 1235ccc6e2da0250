"""Inspection of encoders, against published ids, transformers, numpy and hand calculation."""

from __future__ import annotations

import numpy
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer
from transformers import BertModel, BertTokenizerFast

from semsearch.encoders import load_encoder
from semsearch.encoders.hashing import HashingEncoder
from semsearch.errors import ArgumentError, EncoderError, ModelNotFoundError
from semsearch.explore import inspect
from semsearch.explore.inspect import TokenKind, inspect_text, token_similarity

#: Word-piece ids with the vocabulary of bert-base-uncased.
WORD_PIECES = {
    "He will get scared": [101, 2002, 2097, 2131, 6015, 102],
    "She will get the drinks": [101, 2016, 2097, 2131, 1996, 8974, 102],
    "Sinan loves a beautiful day": [101, 8254, 2319, 7459, 1037, 3376, 2154, 102],
}
WORDS = [*"abcdef", "##b", "document", ":"]
MAX_LENGTH = 12


@pytest.fixture(scope="module")
def bert(write_bert):
    """A folder with a tiny BERT of random weights."""
    return write_bert(
        WORDS,
        seed=3,
        hidden_size=16,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=MAX_LENGTH,
    )


@pytest.fixture
def make(bert, tmp_path):
    """Write a Sentence-Transformers model on top of the tiny BERT; returns its spec."""

    def write(pooling, *more, width=16, include_prompt=True, prompts=None):
        head = Pooling(width, pooling_mode=pooling, include_prompt=include_prompt)
        modules = [Transformer(str(bert)), head, *more]
        model = SentenceTransformer(modules=modules, device="cpu", prompts=prompts)
        model.save(str(tmp_path / "model"))
        return str(tmp_path / "model")

    return write


def cosine(left, right):
    """By definition, in float64."""
    left, right = left.astype(float), right.astype(float)
    return left @ right / numpy.sqrt((left @ left) * (right @ right))


def last_layer(bert, text):
    """The token vectors that transformers computes for a text, shape (n, 16)."""
    tokenizer = BertTokenizerFast.from_pretrained(bert)
    inputs = tokenizer(text, truncation=True, max_length=MAX_LENGTH, return_tensors="pt")
    with torch.no_grad():
        return BertModel.from_pretrained(bert).eval()(**inputs).last_hidden_state[0].numpy()


class TestMiniLM:
    @pytest.mark.parametrize("text", WORD_PIECES)
    def test_word_piece_ids(self, text):
        found = inspect_text("minilm", text)
        assert [token.id for token in found.tokens] == WORD_PIECES[text]
        kinds = [token.kind for token in found.tokens]
        inside = [TokenKind.TEXT] * (len(kinds) - 2)
        assert kinds == [TokenKind.SPECIAL, *inside, TokenKind.SPECIAL]
        pieces = "".join(text[token.start : token.end] for token in found.tokens)
        assert pieces == text.replace(" ", "")
        assert all(token.known for token in found.tokens)
        assert (found.pooling, found.max_tokens, len(found.vector)) == ("mean", 254, 384)

    def test_truncated_text(self):
        text = "word " * 300
        found = inspect_text("minilm", text)
        assert len(found.tokens) == 256
        assert found.text_tokens == 300
        assert found.read_to == 254 * 5 - 1
        assert found.cut_off == " " + "word " * 46


@pytest.mark.parametrize("pooling", ["cls", "mean", "max"])
def test_against_transformers(bert, make, pooling):
    spec = make(pooling)
    for text in ("ab", "zzz a", "a b c d e f " * 5):
        found = inspect_text(spec, text)
        tokens = last_layer(bert, text)
        pooled = {"cls": tokens[0], "mean": tokens.mean(0), "max": tokens.max(0)}[pooling]
        numpy.testing.assert_allclose(found.token_vectors, tokens, atol=1e-5)
        assert found.pooling == pooling
        assert cosine(found.vector, pooled) == pytest.approx(1, abs=1e-5)
        for token, vector in zip(found.tokens, tokens, strict=True):
            assert token.cosine == pytest.approx(cosine(vector, pooled), abs=1e-5)


@pytest.mark.parametrize("include_prompt", [True, False])
def test_sentence_vector_equals_the_encoders(make, include_prompt):
    text, prompts = "a b c", {"document": "document : "}
    spec = make("mean", Normalize(), include_prompt=include_prompt, prompts=prompts)
    found = inspect_text(spec, text)
    (expected,) = load_encoder(spec, device="cpu", precision="fp32").encode_documents([text])
    assert cosine(found.vector, expected) == pytest.approx(1, abs=1e-5)
    assert numpy.linalg.norm(found.vector) == pytest.approx(1, abs=1e-6)


def test_prompt_is_not_part_of_the_text(make):
    found = inspect_text(make("mean", prompts={"document": "document : "}), "ab zzz")
    assert [(t.piece, t.kind.value, t.start, t.end, t.known) for t in found.tokens] == [
        ("[CLS]", "special", 0, 0, True),
        ("document", "prompt", 0, 0, True),
        (":", "prompt", 0, 0, True),
        ("a", "text", 0, 1, True),
        ("##b", "text", 1, 2, True),
        ("[UNK]", "text", 3, 6, False),
        ("[SEP]", "special", 0, 0, True),
    ]


def test_similarity_equals_numpys(bert, make):
    found = token_similarity(make("cls"), "a b c", "c d")
    left, right = last_layer(bert, "a b c"), last_layer(bert, "c d")
    expected = [[cosine(row, column) for column in right] for row in left]
    numpy.testing.assert_allclose(found.cosines, expected, atol=1e-5)
    assert found.shared() == [("c", pytest.approx(expected[3][1], abs=1e-5))]
    assert found.sentence_cosine == pytest.approx(cosine(left[0], right[0]), abs=1e-5)


class TestWords:
    def test_hashing(self):
        found = inspect_text("hashing", "One two, one!")
        places = [(t.piece, t.start, t.end) for t in found.tokens]
        assert places == [("One", 0, 3), ("two", 4, 7), ("one", 9, 12)]
        assert {(t.id, t.known) for t in found.tokens} == {(None, None)}
        assert found.cut_off == ""
        # Two axes of which one counts twice: 2 / sqrt(5) and 1 / sqrt(5).
        cosines = [token.cosine for token in found.tokens]
        assert cosines == pytest.approx([2 / 5**0.5, 1 / 5**0.5, 2 / 5**0.5])
        assert inspect_text("hashing", "!!!").tokens == ()
        with pytest.raises(ArgumentError, match="'!!!'"):
            token_similarity("hashing", "a", "!!!")

    def test_unknown_words(self, monkeypatch):
        class Knowing(HashingEncoder):
            def knows(self, word):
                return word != "xyzzy"

            def coverage(self):
                """It counts no words."""

        monkeypatch.setattr(inspect, "load_encoder", lambda spec, **options: Knowing())
        found = token_similarity("knowing", "one xyzzy", "xyzzy one")
        assert [(t.piece, t.known) for t in found.left.tokens] == [("one", True), ("xyzzy", False)]
        assert found.left.tokens[1].cosine is None
        numpy.testing.assert_array_equal(found.cosines, [[numpy.nan, 1], [numpy.nan, numpy.nan]])
        assert found.shared() == [("one", 1.0)]


@pytest.mark.parametrize(
    ("spec", "text", "kind"),
    [
        ("hashing", " \n", ArgumentError),
        ("hashing", "a\udcff", ArgumentError),
        ("bm25", "a", EncoderError),
        ("cross-encoder:minilm", "a", EncoderError),
        ("./no-model", "a", ModelNotFoundError),
    ],
)
def test_mistakes(spec, text, kind):
    with pytest.raises(kind):
        inspect_text(spec, text)
