"""Distillation into tiny students: they approach their teacher, and load as they were saved."""

from __future__ import annotations

import numpy
import pytest
from sentence_transformers import SentenceTransformer

from semsearch.encoders import load_encoder
from semsearch.encoders.model_folder import find_model
from semsearch.encoders.torch_models import TorchEncoder, whole_text_tokenizer
from semsearch.errors import ArgumentError
from semsearch.training import Distillation, Recipe, Settings, distill, train
from semsearch.training.distill import shallow_student, static_student

TEXTS = ["The wave salt harbour sailor tide.", "Oven dough!", "comet"]


@pytest.fixture(autouse=True)
def no_data(monkeypatch):
    monkeypatch.delenv("SEMSEARCH_DATA", raising=False)


@pytest.fixture
def distilled(tiny_teacher, tmp_path):
    """Distil a student into the folder m; its messages are in `distilled.messages`."""

    def call(documents, recipe=None, **student):
        call.messages = []
        task = Distillation(documents, "topics", **student)
        settings = Settings(
            str(tiny_teacher), tmp_path / "m", [], [recipe or task.recipe_for(None)]
        )
        return train(task, settings, call.messages.append)

    return call


@pytest.mark.parametrize("student", [{"layers": 1}, {}])
def test_a_student_learns_from_a_corpus(distilled, documents, tmp_path, student):
    recipe = Recipe(steps=20, batch_size=16, learning_rate=1e-3)
    folder, *_ = distilled(documents, recipe, **student)
    scores = [float(line.split("score ")[1]) for line in distilled.messages if "score " in line]
    if "layers" in student:
        assert scores[-1] > scores[0] + 0.5
    else:  # the initial least-squares fit leaves little to learn
        assert max(scores[1:]) >= scores[0] > 90
    encoder = load_encoder(str(folder), device="cpu")
    plain = SentenceTransformer(str(folder), device="cpu")
    expected = plain.encode(TEXTS, normalize_embeddings=True)
    numpy.testing.assert_allclose(encoder.encode_documents(TEXTS), expected, atol=1e-5)
    assert encoder.dimension == 32


def test_an_impossible_student_is_refused_before_the_corpus_is_encoded(
    tiny_teacher, documents, tmp_path, monkeypatch
):
    monkeypatch.setattr(distill, "load_encoder", None)
    task = Distillation(documents, "topics", layers=3)
    settings = Settings(str(tiny_teacher), tmp_path / "m", [], [Recipe(steps=1)])
    with pytest.raises(ArgumentError, match="1 to 2"):
        train(task, settings)


def test_static_vectors_are_the_teachers_weighted_by_rarity(tiny_teacher):
    """The teacher's unnormalised vector of the word alone, times a / (a + p)."""
    teacher = TorchEncoder(find_model(str(tiny_teacher)))
    tokenizer = whole_text_tokenizer(teacher.model.tokenizer)
    counts = numpy.zeros(tokenizer.get_vocab_size(), int)
    word = tokenizer.token_to_id("the")
    counts[word] = 10_000
    student = static_student(teacher, tokenizer, counts)
    (vector,) = student.encode(["the"])
    words = tokenizer.get_vocab_size() - 5  # without special tokens
    weight = 1e-4 / (1e-4 + 10_001 / (10_000 + words))
    expected = teacher.model.encode(["the"])[0] * weight
    numpy.testing.assert_allclose(vector, expected, rtol=1e-3, atol=1e-8)


def test_kept_layers_are_evenly_spaced(tiny_teacher):
    teacher = TorchEncoder(find_model(str(tiny_teacher))).model
    student = shallow_student(teacher, 2)
    kept = student[0].auto_model.encoder.layer
    assert len(kept) == student[0].auto_model.config.num_hidden_layers == 2
    of_teacher = teacher[0].auto_model.encoder.layer
    assert len(of_teacher) == 3
    for copy, original in ((kept[0], of_teacher[0]), (kept[1], of_teacher[2])):
        name = next(name for name, _ in copy.named_parameters())
        assert copy.get_parameter(name).equal(original.get_parameter(name))
    for layers in (0, 3):
        with pytest.raises(ArgumentError):
            shallow_student(teacher, layers)
