"""OpenVINO equals torch: modules, prompts, token spans, threads, its cache, and the bundled model.

Prompts use up tokens; the passages after them are still read to their end.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import (
    Dense,
    Normalize,
    Pooling,
    Transformer,
)

from semsearch import Document, Index
from semsearch.encoders import current_fingerprint, load_encoder, load_reranker
from semsearch.encoders.model_folder import find_model
from semsearch.encoders.openvino.models import OpenVINOEncoder
from semsearch.encoders.specs import Pooling as PoolingName
from semsearch.encoders.torch_models import TorchEncoder
from semsearch.errors import EncoderError
from semsearch.storage.sqlite.schema import put_setting

PROMPTS = {"query": "query : query : a ", "document": "document : "}  # 5 and 2 tokens
READ = 32 - 2  # tokens that the tiny BERT reads, without [CLS] and [SEP]
TEXTS = ["a b c", "d", "a a a a e f", "b " * 50, "", "f e d c b a"] * 3


def test_a_dense_layer_normalisation_and_prompts(plain_bert, tmp_path):
    torch.manual_seed(1)
    modules = [Transformer(str(plain_bert)), Pooling(32, "mean"), Dense(32, 16), Normalize()]
    prompts = {"query": "query : query : ", "document": "document : "}
    SentenceTransformer(modules=modules, device="cpu", prompts=prompts).save(str(tmp_path))
    converted = load_encoder(str(tmp_path), precision="fp32")
    plain = load_encoder(str(tmp_path), device="cpu", precision="fp32")
    assert isinstance(converted, OpenVINOEncoder)
    assert isinstance(plain, TorchEncoder)
    for name in ("fingerprint", "dimension", "max_document_tokens"):
        assert getattr(converted, name) == getattr(plain, name)
    assert converted.description() == plain.description()
    numpy.testing.assert_array_equal(converted.token_spans("a b"), plain.token_spans("a b"))
    for name in ("encode_documents", "encode_queries"):
        expected = getattr(plain, name)(TEXTS)
        numpy.testing.assert_allclose(getattr(converted, name)(TEXTS), expected, atol=1e-5)
        single = [getattr(converted, name)([text])[0] for text in TEXTS]
        numpy.testing.assert_allclose(single, expected, atol=1e-5)
    assert converted.encode_documents([]).shape == (0, plain.dimension)


def test_threads_can_share_an_encoder(plain_bert):
    encoder = load_encoder(str(plain_bert))
    expected = encoder.encode_documents(TEXTS)
    with ThreadPoolExecutor(4) as pool:
        few = pool.map(lambda _: encoder.encode_queries(TEXTS[:2]), range(20))
        many = pool.map(lambda _: encoder.encode_documents(TEXTS), range(20))
        for found in (*few, *many):
            numpy.testing.assert_allclose(found, expected[: len(found)], atol=1e-5)


def test_token_spans_equal_those_of_torch(plain_bert):
    """Also if the model reads only part of a text, or the text contains special tokens."""
    converted = load_encoder(str(plain_bert), precision="fp32")
    plain = load_encoder(str(plain_bert), device="cpu", precision="fp32")
    for text in ("", "b " * 2000, "a [SEP] b [CLS] [MASK] c", "a é \x00 \U0001f600 日本"):
        expected = plain.token_spans(text)
        numpy.testing.assert_array_equal(converted.token_spans(text), expected, strict=True)


def test_compiled_models_are_cached(plain_bert, tmp_path, monkeypatch):
    monkeypatch.setenv("SEMSEARCH_CACHE", str(tmp_path))
    expected = load_encoder(str(plain_bert)).encode_queries(TEXTS[:1])
    (compiled,) = tmp_path.glob("encoder-*/compiled/*.blob")
    (weights,) = tmp_path.glob("encoder-*/model.bin")
    assert compiled.stat().st_size < weights.stat().st_size + 200_000
    for content in (compiled.read_bytes(), b"damaged"):
        compiled.unlink()  # models in use have it mapped into memory
        compiled.write_bytes(content)
        again = load_encoder(str(plain_bert)).encode_queries(TEXTS[:1])
        numpy.testing.assert_array_equal(again, expected)
    assert compiled.read_bytes() != b"damaged"


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


def ignores_last_word(encode, text):
    """Whether the last word of a text does not affect its vector."""
    before, after = encode([text, text[:-1] + ("a" if text[-1] != "a" else "b")])
    return bool(numpy.allclose(before, after, atol=1e-6))


def test_a_prompt_reduces_the_tokens_read(encoder):
    assert encoder.max_document_tokens == READ - 2
    for encode, room in ((encoder.encode_queries, READ - 5), (encoder.encode_documents, READ - 2)):
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


SENTENCES = ["A cat sleeps.", "He will get scared", "Ein Satz auf Deutsch, mit Umlauten: äöü.", "x"]


@pytest.mark.parametrize("device", [None, "cpu"])
def test_the_bundled_model(device):
    """It reads 256 tokens including special ones."""
    bundled = load_encoder("minilm", device=device, precision="fp32")
    plain = SentenceTransformer(str(find_model("minilm").path), device="cpu")
    expected = plain.encode(SENTENCES, normalize_embeddings=True)
    for encode in (bundled.encode_documents, bundled.encode_queries):
        vectors = encode(SENTENCES)
        assert vectors.dtype == numpy.float32
        assert vectors.shape == (4, bundled.dimension) == (4, 384)
        numpy.testing.assert_allclose(vectors, expected, atol=1e-4)
        numpy.testing.assert_allclose(numpy.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    assert bundled.encode_documents([]).shape == (0, 384)
    assert bundled.max_document_tokens == 254
    left, right = bundled.encode_documents(["word " * 300, "word " * 254])
    assert left @ right == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("device", [None, "cpu"])
def test_cut_vectors_are_those_of_sentence_transformers(plain_bert, device):
    encoder = load_encoder(f"{plain_bert}@5d", device=device, precision="fp32")
    model = SentenceTransformer(str(plain_bert), truncate_dim=5, device="cpu")
    expected = model.encode(SENTENCES, normalize_embeddings=True)
    assert encoder.dimension == 5
    for found in (encoder.encode_documents(SENTENCES), encoder.encode_queries(SENTENCES)):
        numpy.testing.assert_allclose(found, expected, atol=1e-5)


def test_each_dimension_and_pooling_is_another_encoder(plain_bert, tmp_path):
    names = ("5d", "6d", "mean@5d", *(pooling.value for pooling in PoolingName))
    specs = [str(plain_bert), *(f"{plain_bert}@{name}" for name in names)]
    assert len({load_encoder(spec).fingerprint for spec in specs}) == len(specs)
    for spec in specs:
        assert load_encoder(spec).spec == spec
        assert current_fingerprint(spec) == load_encoder(spec).fingerprint
    with pytest.raises(EncoderError):
        load_encoder(f"{plain_bert}@33d").encode_documents(SENTENCES)
    with pytest.raises(EncoderError):
        load_reranker(f"{plain_bert}@5d")
    with Index.create(tmp_path / "index", specs[1]) as index:
        index.add([Document("1", "a b")])
        assert index.info().spaces[0].dimension == 5
