"""Adaptation in miniature: it helps where there is something to learn, and reports where not."""

from __future__ import annotations

import numpy
import pytest
from sentence_transformers import SentenceTransformer

from semsearch import Document
from semsearch.encoders import load_encoder
from semsearch.errors import TrainingError
from semsearch.training import Adaptation, Recipe, Settings, train
from semsearch.training.known_item import gain, hard_negatives, reciprocal_ranks
from semsearch.training.questions import Question, questions

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def no_data(monkeypatch):
    monkeypatch.delenv("SEMSEARCH_DATA", raising=False)


def settings(encoder, folder, steps=60, learning_rate=3e-3):
    recipe = Recipe(steps=steps, batch_size=16, learning_rate=learning_rate)
    return Settings(str(encoder), folder, ["topics"], [recipe])


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
    task = Adaptation(documents, "topics")
    trained = train(task, settings(tiny_encoder, tmp_path / "m"), told.append)
    assert any(line.endswith(" sentences), 12 held out") for line in told)
    assert task.gain.after > task.gain.before
    assert task.gain.is_certain
    assert trained.is_kept
    (test,) = trained.tests  # STS Benchmark is not here
    assert test.score == 100 * task.gain.after
    assert test.before == 100 * task.gain.before
    again = load_encoder(str(tmp_path / "m"), device="cpu")
    vectors = again.encode_documents(["The wave salt harbour."])
    plain = SentenceTransformer(str(tmp_path / "m"), device="cpu")
    expected = plain.encode(["The wave salt harbour."], normalize_embeddings=True)
    numpy.testing.assert_allclose(vectors, expected, atol=1e-5)
    old = load_encoder(str(tiny_encoder), device="cpu").encode_documents(["The wave salt harbour."])
    assert abs(vectors - old).max() > 0.01
    assert "| topics (held out) | MRR x 100 |" in (tmp_path / "m" / "README.md").read_text("utf-8")


def test_where_it_does_not_help_nothing_is_written(tiny_encoder, documents, tmp_path):
    gentle = settings(tiny_encoder, tmp_path / "m", 1, 1e-9)
    task = Adaptation(documents, "topics")
    assert not train(task, gentle).is_kept
    assert task.gain.low <= 0
    assert list(tmp_path.iterdir()) == []
    assert train(Adaptation(documents, "topics", keep_anyway=True), gentle).is_kept
    assert (tmp_path / "m" / "modules.json").is_file()


def test_prompts_are_trained_with(tiny_encoder, documents, tmp_path):
    """And attention drops nothing out."""
    task = Adaptation(documents, "topics")
    (stage,), _ = task.stages(settings(tiny_encoder, tmp_path), lambda message: None)
    model = task.load(tiny_encoder)
    model.prompts = {"query": "the ", "document": ""}
    queries, passages, negatives = task.prompted(stage.training, model).texts
    assert queries == [f"the {text}" for text in stage.training.texts[0]]
    assert (passages, negatives) == stage.training.texts[1:]
    trained = task.trainer(tiny_encoder, 0, stage).model
    rates = {type(m).__name__: m.dropout.p for m in trained.modules() if hasattr(m, "dropout")}
    assert rates["BertSelfAttention"] == 0
    assert rates["BertSelfOutput"] == 0.1


def test_too_little_is_reported_first(tiny_encoder, tmp_path):
    documents = [Document(None, f"Text {number}.") for number in range(40)]
    with pytest.raises(TrainingError, match="0 different documents with a title of its own"):
        train(Adaptation(documents, "c"), settings(tiny_encoder, tmp_path / "m"))
    assert list(tmp_path.iterdir()) == []
