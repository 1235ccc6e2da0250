"""Encoders that programs make, and those on a server with OpenAI's interface."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import numpy
import pytest

from semsearch import Index, encoder_from, load_encoder
from semsearch.encoders import current_fingerprint
from semsearch.errors import ArgumentError, EncoderError, SpaceError
from tests.conftest import serving

HASHING = load_encoder("hashing:300")


def counts(texts):
    """Counts of letters, which are no unit vectors."""
    return [[text.count(letter) for letter in "aeiou"] + [1] for text in texts]


class TestFunction:
    def test_an_index_is_made_and_opened_with_it(self, tmp_path):
        encoder = encoder_from(counts, name="vowels")
        with Index.create(tmp_path / "x", encoder) as index:
            index.add(["aaa", "eee ii"])
            assert (index.space().spec, index.space().dimension) == ("given:vowels", 6)
            vectors = index.passages().vectors
        expected = numpy.array(counts(["aaa", "eee ii"]), numpy.float32)
        expected /= numpy.linalg.norm(expected, axis=1, keepdims=True)
        assert vectors == pytest.approx(expected, abs=1e-3)
        with Index.open(tmp_path / "x", encoder) as index:
            assert index.search("a", k=1)[0].text == "aaa"
        with Index.open(tmp_path / "x") as index, pytest.raises(EncoderError):
            index.search("a")
        with pytest.raises(SpaceError):
            Index.create(tmp_path / "x", encoder_from(counts, name="other"))
        with pytest.raises(EncoderError):
            current_fingerprint("given:vowels")

    def test_queries_may_have_their_own(self):
        encoder = encoder_from(counts, name="vowels", queries=lambda texts: [[1, 0]] * len(texts))
        assert encoder.encode_queries(["e"]).tolist() == [[1, 0]]
        assert encoder.encode_documents([]).shape == (0, 6)

    @pytest.mark.parametrize(
        "vectors", [[1, 2], [[1, 2], [3, 4]], [["a"]], [[0, 0]], [[float("nan"), 1]], None]
    )
    def test_other_results_are_refused(self, vectors):
        with pytest.raises(EncoderError):
            encoder_from(lambda _: vectors, name="x").encode_documents(["a"])

    def test_wrong_arguments(self, tmp_path):
        for function, name in ((3, "x"), (counts, ""), (counts, 3)):
            with pytest.raises(ArgumentError):
                encoder_from(function, name=name)
        with pytest.raises(ArgumentError):
            Index.create(tmp_path / "x", counts)
        assert not (tmp_path / "x").exists()


@pytest.fixture
def model(write_bert):
    from sentence_transformers import SentenceTransformer

    prompts = {"query": "find : ", "document": "text : "}
    folder = write_bert(["find", "text", ":", "cat", "dog", "sleeps", "barks"])
    return SentenceTransformer(str(folder), prompts=prompts, device="cpu")


def test_a_sentence_transformer_with_prompts(model, tmp_path):
    texts = ["cat sleeps", "dog barks", "cat barks dog " * 50]
    with Index.create(tmp_path / "x", model) as index:
        index.add(texts)
        space = index.space()
        encoder = index.encoder(space)
        passages = index.passages()
    assert len(passages.texts) > 3  # the model reads 32 tokens
    expected = model.encode(passages.texts, prompt="text : ", normalize_embeddings=True)
    assert passages.vectors == pytest.approx(expected, abs=1e-3)
    wanted = model.encode(["cat"], prompt="find : ", normalize_embeddings=True)
    assert encoder.encode_queries(["cat"]) == pytest.approx(wanted, abs=1e-5)
    assert encoder.token_spans("cat sleeps").tolist() == [[0, 3], [4, 10]]
    assert encoder.max_document_tokens == 32 - 2 - 2  # of [CLS] and [SEP], and the prompt
    with Index.open(tmp_path / "x", model) as index:
        assert index.search("cat sleeps", k=1)
    model.prompts["query"] = ""
    with pytest.raises(SpaceError):
        Index.create(tmp_path / "x", model)


def test_static_embeddings(tmp_path):
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from tokenizers import Tokenizer, models, pre_tokenizers

    tokenizer = Tokenizer(models.WordLevel({"cat": 0, "dog": 1, "[UNK]": 2}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    static = SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_dim=8)])
    with Index.create(tmp_path / "x", [static, "hashing"]) as index:
        index.add(["cat", "dog"])
        assert [space.dimension for space in index.spaces()] == [8, 256]
        assert index.search("dog", k=1)[0].text == "dog"


class Server(BaseHTTPRequestHandler):
    """Answers with vectors of the hashing encoder; first with the statuses in `failures`."""

    def do_POST(self):
        size = int(self.headers["Content-Length"])
        body = json.loads(self.rfile.read(size))
        self.requests.append((self.path, self.headers["Authorization"], body))
        status = self.failures.pop(0) if self.failures else 200
        vectors = HASHING.encode_documents(body["input"]).tolist()
        data = [{"index": n, "embedding": vector} for n, vector in enumerate(vectors)][::-1]
        answer = json.dumps({"data": data} if status == 200 else {"error": "no"}).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr("semsearch.encoders.openai.time.sleep", lambda seconds: None)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    Server.requests, Server.failures = [], []
    with serving(Server) as address:
        yield address


class TestOpenAI:
    def test_batches_and_the_key(self, server, tmp_path):
        spec = f"openai:org/model-1@{server}/v1"
        texts = [f"Text number {number}." for number in range(70)]
        with Index.create(tmp_path / "x", spec) as index:
            index.add(texts)
            assert (index.space().name, index.space().dimension) == ("model-1", 300)
            [hit] = index.search(texts[42], k=1)
            assert (hit.text, hit.score) == (texts[42], pytest.approx(1, abs=1e-3))
        sizes = [len(body["input"]) for *_, body in Server.requests]
        assert max(sizes) == 32
        assert {(path, key) for path, key, _ in Server.requests} == {
            ("/v1/embeddings", "Bearer sk-secret")
        }
        assert {body["model"] for *_, body in Server.requests} == {"org/model-1"}
        for file in Path(tmp_path).rglob("*"):
            assert not file.is_file() or b"sk-secret" not in file.read_bytes()

    def test_temporary_failures_are_retried_and_others_are_not(self, server):
        encoder = load_encoder(f"openai:m@{server}/v1")
        Server.failures[:] = [429, 503]
        assert encoder.encode_queries(["a"]).shape == (1, 300)
        assert len(Server.requests) == 3
        Server.failures[:] = [401]
        with pytest.raises(EncoderError):
            encoder.encode_queries(["a"])
        assert len(Server.requests) == 4
        Server.failures[:] = [500] * 9
        with pytest.raises(EncoderError):
            encoder.encode_queries(["a"])
        assert len(Server.requests) == 9

    def test_an_index_reaches_only_servers_that_the_user_names(self, server, tmp_path, monkeypatch):
        path = tmp_path / "x"
        Index.create(path, f"openai:m@{server}/v1").close()
        with Index.open(path) as index:
            index.add("A text.")  # on this machine, but without the key
        assert {key for _, key, _ in Server.requests[1:]} == {None}
        with pytest.raises(EncoderError):
            load_encoder("openai:m@http://example.org/v1", local_files_only=True)
        monkeypatch.setenv("OPENAI_BASE_URL", "http://example.org/v1/")
        encoder = load_encoder("openai:m@http://example.org/v1", local_files_only=True)
        assert encoder.spec == load_encoder("openai:m").spec

    @pytest.mark.parametrize("spec", ["openai:", "openai:@http://a/v1", "openai:m@http://u:p@a/v1"])
    def test_specs_that_are_refused(self, spec):
        with pytest.raises(EncoderError):
            load_encoder(spec)
