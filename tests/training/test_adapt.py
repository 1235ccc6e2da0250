"""Adaptation of a tiny encoder to a corpus: kept if it helps, else discarded with the reason."""

from __future__ import annotations

import numpy
import pytest

from semsearch import Document
from semsearch.encoders import load_encoder
from semsearch.errors import TrainingError
from semsearch.evaluation.datasets import RetrievalSet
from semsearch.training import Adaptation, Recipe, Settings, train
from semsearch.training.adapt import Question, chosen_share, query_scores, questions


@pytest.fixture(autouse=True)
def no_data(monkeypatch):
    monkeypatch.delenv("SEMSEARCH_DATA", raising=False)


def settings(encoder, folder, steps=60, learning_rate=3e-3):
    recipe = Recipe(steps=steps, batch_size=16, learning_rate=learning_rate)
    return Settings(str(encoder), folder, ["topics"], [recipe])


def test_query_is_a_sentence_removed_from_its_passage():
    parts = [f"Sentence number {n} says this." for n in range(20)]
    (found,) = questions([Document("a", " ".join(parts))], 0)
    place = parts.index(found.query)
    around = parts[max(0, place - 4) : place] + parts[place + 1 : place + 5]
    assert found == Question(parts[place], " ".join(around), " ".join(parts))


def test_titles_are_queries_unless_the_text_repeats_them():
    text = "A single sentence about it."
    documents = [
        Document("a", text, title="Night Train"),
        Document("b", "The night train is one.", title="Night  Train"),
        Document("c", "Nothing to ask."),
    ]
    assert questions(documents, 0) == [Question("Night Train", text, text)]


class Fixed:
    """An encoder with a given vector for each text."""

    def __init__(self, vectors):
        self.vectors = {text: numpy.array(vector, float) for text, vector in vectors.items()}

    def encode_documents(self, texts):
        return numpy.array([self.vectors[text] for text in texts])

    encode_queries = encode_documents


def test_ndcg_by_hand():
    """One relevant passage at rank r gives 1 / log2(r + 1) (Järvelin & Kekäläinen 2002)."""
    encoder = Fixed({"q": [1, 0], "r": [0, 1], "p": [0.8, 0.6], "s": [0.6, 0.8], "t": [1, 0]})
    texts = {name: name for name in "pst"}
    asked = [
        RetrievalSet("one", texts, {"1": "q"}, {"1": {"p": 1}}),
        RetrievalSet("two", texts, {"1": "r", "2": "q"}, {"1": {"s": 1}, "2": {"s": 2, "t": 0}}),
    ]
    # q: t scores 1, p 0.8, s 0.6; r: s 0.8, p 0.6, t 0.
    one, two = query_scores(encoder, asked)
    assert one.tolist() == pytest.approx([1 / numpy.log2(3)])
    assert two.tolist() == pytest.approx([1, 0.5])


@pytest.mark.nightly
def test_adaptation_improves_retrieval(tiny_encoder, documents, tmp_path):
    """Sentences of a document share its number and the words of its topic."""
    messages = []
    asked = {str(place): one.query for place, one in enumerate(questions(documents, 7))}
    judged = RetrievalSet("mine", {}, asked, {name: {name: 1} for name in asked})
    task = Adaptation(documents, "topics", judged=judged)
    trained = train(task, settings(tiny_encoder, tmp_path / "m"), messages.append)
    assert any("evaluated on 120 judged queries" in line for line in messages)
    assert trained.is_kept
    (test,) = trained.tests  # STS Benchmark is not available
    assert test.score > test.before + 1
    again = load_encoder(str(tmp_path / "m"), device="cpu")
    vectors = again.encode_documents(["The wave salt harbour."])
    old = load_encoder(str(tiny_encoder), device="cpu").encode_documents(["The wave salt harbour."])
    assert abs(vectors - old).max() > 0.01
    card = (tmp_path / "m" / "README.md").read_text("utf-8")
    assert "- topics, judged" in card
    assert "loss:MultipleNegativesRankingLoss" in card


def test_model_without_gain_is_not_written(tiny_encoder, documents, tmp_path):
    messages = []
    gentle = settings(tiny_encoder, tmp_path / "m", 1, 1e-9)
    trained = train(Adaptation(documents, "topics"), gentle, messages.append)
    assert not trained.is_kept
    assert trained.verdict.startswith("not kept: the gain is not significant")
    assert any("evaluated on 12 keyword queries" in line for line in messages)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("gains", "expected"),
    [
        # The same gain on all questions: the share closest to the old weights.
        ({0.25: [0.1, 0.1], 0.5: [0.2, 0.2], 1.0: [0.3, 0.3]}, 0.25),
        # The first share helps half of the selection questions and harms the others as much.
        ({0.25: [0.1, 0.1, -0.1, -0.1], 0.5: [0.2, 0.2], 1.0: [0.3, 0.3]}, 0.5),
        # No gain is significant.
        ({0.25: [0.1, 0, -0.1, 0], 0.5: [0.3, 0, -0.25, 0], 1.0: [0, 0]}, 0.5),
        # Only every other question counts; the rest are kept for the verdict.
        ({0.25: [0, 0.3], 0.5: [0, 0.3], 1.0: [0.1, 0]}, 1.0),
    ],
)
def test_the_smallest_share_with_a_significant_gain_is_taken(gains, expected):
    old = numpy.full(80, 0.5)
    found = {share: [old + numpy.resize(one, 80)] * 2 for share, one in gains.items()}
    assert chosen_share({0.0: [old, old]} | found) == expected


@pytest.mark.parametrize("titles", [0, 11])
def test_too_few_documents_are_reported_before_training(tiny_encoder, tmp_path, titles):
    documents = [
        Document(str(number), f"Text {number}.", title=f"T{number}" if number < titles else None)
        for number in range(40)
    ]
    with pytest.raises(TrainingError, match=f"not {titles}$"):
        train(Adaptation(documents, "c"), settings(tiny_encoder, tmp_path / "m"))
    assert list(tmp_path.iterdir()) == []
