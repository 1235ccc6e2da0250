"""Prompts use up tokens; the passages after them are still read to their end."""

from __future__ import annotations

import numpy
import pytest
from sentence_transformers import SentenceTransformer

from semsearch import Document, Index
from semsearch.encoders import load_encoder
from semsearch.errors import EncoderError
from semsearch.storage.sqlite.schema import put_setting

PROMPTS = {"query": "query : query : a ", "document": "document : "}  # 5 and 2 tokens
READ = 32 - 2  # tokens that the tiny BERT reads, without [CLS] and [SEP]


@pytest.fixture(scope="module")
def prompted(plain_bert, tmp_path_factory):
    """A folder with a model that has one prompt for queries and another for documents."""
    folder = tmp_path_factory.mktemp("prompted")
    model = SentenceTransformer(str(plain_bert), device="cpu")
    model.prompts = PROMPTS
    model.save(str(folder))
    return str(folder)


@pytest.fixture(params=["openvino", "torch"])
def encoder(request, prompted):
    device = {"openvino": None, "torch": "cpu"}[request.param]
    return load_encoder(prompted, device=device, precision="fp32")


def words(count, seed=0):
    return " ".join(numpy.random.default_rng(seed).choice([*"abcdef"], count).tolist())


def with_other_end(text):
    return text[:-1] + ("a" if text[-1] != "a" else "b")


def ignores_last_word(encode, text):
    """Whether the last word of a text does not affect its vector."""
    before, after = encode([text, with_other_end(text)])
    return bool(numpy.allclose(before, after, atol=1e-6))


def test_a_prompt_reduces_the_tokens_read(encoder):
    assert encoder.max_document_tokens == READ - 2
    for encode, room in [
        (encoder.encode_queries, READ - 5),
        (encoder.encode_documents, encoder.max_document_tokens),
    ]:
        assert not ignores_last_word(encode, words(room))
        assert ignores_last_word(encode, words(room + 1))


def test_every_passage_is_read_to_its_end(encoder, tmp_path):
    """Also in an index that was made for longer passages."""
    text = words(200)  # without sentence ends: passages are as long as possible
    with Index.create(tmp_path / "index", [encoder]) as index:
        index.add([Document("a", text)])
        passages = index.passages().texts
        with index._store.database.writing() as connection, connection.begin():
            put_setting(connection, "max_tokens", READ)
        index.add([Document("b", text)])
        assert max(len(text.split()) for text in index.passages().texts) == READ - 2
    assert " ".join(passages) == text
    assert max(len(passage.split()) for passage in passages) == READ - 2
    assert not any(ignores_last_word(encoder.encode_documents, passage) for passage in passages)


def test_a_prompt_that_leaves_no_tokens(plain_bert, tmp_path):
    model = SentenceTransformer(str(plain_bert), device="cpu")
    model.prompts = {"document": "a " * READ}
    model.save(str(tmp_path / "model"))
    for device in (None, "cpu"):
        encoder = load_encoder(str(tmp_path / "model"), device=device)
        with pytest.raises(EncoderError):
            Index.create(tmp_path / "index", [encoder])
