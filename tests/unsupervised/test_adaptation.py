"""Adaptation in miniature: it helps where there is something to learn, and says so where not."""

from __future__ import annotations

import numpy
import pytest
from sentence_transformers import SentenceTransformer

from semsearch import Document
from semsearch.encoders import load_encoder
from semsearch.errors import ArgumentError, TrainingError
from semsearch.runs import Workspace
from semsearch.unsupervised import adaptation
from semsearch.unsupervised.adaptation import AdaptationSettings, adapt
from semsearch.unsupervised.hard_negatives import hard_negatives
from semsearch.unsupervised.known_item import gain, reciprocal_ranks
from semsearch.unsupervised.loop import Length
from semsearch.unsupervised.questions import Question, questions
from semsearch.unsupervised.sentence_model import embedded, trainable_encoder

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def no_data(monkeypatch):
    monkeypatch.delenv("SEMSEARCH_DATA", raising=False)


def settings(encoder, steps=60, **others):
    chosen = {"batch": 16, "learning_rate": 3e-3, **others}
    return AdaptationSettings(str(encoder), Length(steps), **chosen)


class TestQuestions:
    def test_a_sentence_is_taken_out_of_its_context(self):
        parts = [f"Sentence number {n} says this." for n in range(20)]
        (found,) = questions([Document("a", " ".join(parts))], 0)
        place = parts.index(found.query)
        around = parts[max(0, place - 4) : place] + parts[place + 1 : place + 5]
        assert found == Question(parts[place], " ".join(around), False)

    def test_titles_that_the_text_does_not_repeat(self):
        told = questions(
            [
                Document("a", "A single sentence about it.", title="Night Train"),
                Document("b", "The night train is one.", title="Night  Train"),
                Document("c", "Nothing to ask."),
            ],
            0,
        )
        assert told == [Question("Night Train", "A single sentence about it.", True)]

    def test_the_seed_decides(self, documents):
        assert questions(documents, 1) == questions(documents, 1)
        assert questions(documents, 1) != questions(documents, 2)


class Fixed:
    """An encoder that knows the vectors of some texts."""

    def __init__(self, vectors):
        self.vectors = {text: numpy.array(vector, float) for text, vector in vectors.items()}

    def encode_documents(self, texts):
        return numpy.array([self.vectors[text] for text in texts])

    encode_queries = encode_documents


def test_reciprocal_ranks_by_hand():
    encoder = Fixed({"q": [1, 0], "r": [0, 1], "p": [0.8, 0.6], "s": [0.6, 0.8], "t": [1, 0]})
    asked = [Question("q", "p", False), Question("r", "s", False)]
    # q: t scores 1, p 0.8, s 0.6; r: s 0.8, p 0.6, t 0.
    assert reciprocal_ranks(encoder, asked, [Question("x", "t", False)]).tolist() == [0.5, 1.0]
    same = Fixed({"q": [1, 0], "r": [1, 0], "p": [1, 0], "s": [1, 0]})
    assert reciprocal_ranks(same, asked, []).tolist() == [0.5, 0.5]  # nothing is told apart


def test_the_interval_is_that_of_the_normal_law():
    """Over many questions, the bootstrap's interval is mean ± 1.96 standard errors."""
    generator = numpy.random.default_rng(0)
    before, after = generator.random(2000), generator.random(2000)
    result = gain(before, after, 0)
    difference = after - before
    error = difference.std() / 2000**0.5
    assert result.low == pytest.approx(difference.mean() - 1.96 * error, abs=0.1 * error)
    assert result.high == pytest.approx(difference.mean() + 1.96 * error, abs=0.1 * error)
    assert not gain(before, before, 0).is_certain
    assert gain(before, before + 0.1, 0).is_certain


def test_hard_negatives_are_near_but_not_too_near():
    encoder = Fixed(
        {"q": [1, 0], "p": [0.9, 0.4], "q2": [0, 1], "twin": [0.89, 0.4], "q3": [0, 1]}
        | {"near": [0.8, 0.6], "q4": [0, 1], "far": [0, 1]}
    )
    asked = [Question("q", "p", False), Question("q2", "twin", False)]
    asked += [Question("q3", "near", False), Question("q4", "far", False)]
    assert hard_negatives(encoder, asked)[0] == "near"


def test_it_helps(tiny_encoder, documents, tmp_path):
    """Numbers and words of a topic tell which sentences belong together."""
    told = []
    result = adapt(documents, Workspace(tmp_path / "m"), settings(tiny_encoder), notify=told.append)
    assert told[0].endswith("12 held out")
    assert result.gain.after > result.gain.before
    assert result.gain.is_certain
    assert result.is_kept
    assert result.sts is None
    again = load_encoder(str(tmp_path / "m"), device="cpu")
    vectors = again.encode_documents(["The wave salt harbour."])
    plain = SentenceTransformer(str(tmp_path / "m"), device="cpu")
    expected = plain.encode(["The wave salt harbour."], normalize_embeddings=True)
    numpy.testing.assert_allclose(vectors, expected, atol=1e-5)
    old = load_encoder(str(tiny_encoder), device="cpu").encode_documents(["The wave salt harbour."])
    assert abs(vectors - old).max() > 0.01
    assert "held-out questions" in (tmp_path / "m" / "README.md").read_text("utf-8")


def test_the_loss_falls(tiny_encoder, documents):
    encoder = trainable_encoder(str(tiny_encoder))
    loss_of = adaptation._loss_of(encoder.model)
    asked = questions(documents, 0)[:32]
    batch = [adaptation._Example(question, asked[0].passage) for question in asked[1:]]
    import torch

    optimizer = torch.optim.AdamW(encoder.model.parameters(), 3e-3)
    losses = []
    for _ in range(15):
        loss = loss_of(batch, numpy.random.default_rng(0))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.7 * losses[0]


def test_where_it_does_not_help_nothing_is_written(tiny_encoder, documents, tmp_path, monkeypatch):
    workspace = Workspace(tmp_path / "m")
    gentle = settings(tiny_encoder, 1, learning_rate=1e-9)
    result = adapt(documents, workspace, gentle)
    assert not result.is_kept
    assert result.gain.low <= 0
    assert list(tmp_path.iterdir()) == []
    kept = adapt(documents, workspace, gentle, keep_anyway=True)
    assert kept.is_kept
    assert (tmp_path / "m" / "modules.json").is_file()


def test_prompts_are_trained_with(tiny_encoder):
    model = trainable_encoder(str(tiny_encoder)).model.eval()
    model.prompts = {"query": "the ", "document": ""}
    ours = embedded(model, ["wave", "salt wave"], "the ").detach().numpy()
    expected = model.encode_query(["wave", "salt wave"])
    numpy.testing.assert_allclose(ours, expected, atol=2e-2)  # bf16, where there is


def test_too_little_is_told_first(tiny_encoder, tmp_path, monkeypatch):
    monkeypatch.setattr(adaptation, "fit", lambda *_, **__: pytest.fail("trained"))
    documents = [Document(None, f"Text {number}.") for number in range(40)]
    with pytest.raises(TrainingError, match="0 different documents with a title of its own"):
        adapt(documents, Workspace(tmp_path / "m"), settings(tiny_encoder))
    with pytest.raises(ArgumentError):
        settings(tiny_encoder, batch=1)
