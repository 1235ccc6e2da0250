"""Distillation into tiny students: they approach their teacher, and load as they were saved."""

from __future__ import annotations

import numpy
import pytest
from sentence_transformers import SentenceTransformer

from semsearch.encoders import load_encoder
from semsearch.encoders.model_folder import find_model
from semsearch.encoders.torch_models import TorchEncoder
from semsearch.errors import EncoderError
from semsearch.training import Distillation, Recipe, Settings, train
from semsearch.training.distill import static_student

TEXTS = ["The wave salt harbour sailor tide.", "Oven dough!", "comet"]


@pytest.fixture(autouse=True)
def no_data(monkeypatch):
    monkeypatch.delenv("SEMSEARCH_DATA", raising=False)


def test_a_student_learns_from_a_corpus(tiny_teacher, documents, tmp_path):
    recipe = Recipe(steps=20, batch_size=16, learning_rate=1e-3)
    settings = Settings(str(tiny_teacher), tmp_path / "m", [], [recipe])
    messages = []
    folder, *_ = train(Distillation(documents, "topics"), settings, messages.append)
    scores = [float(line.split("score ")[1]) for line in messages if "score " in line]
    assert max(scores[1:]) >= scores[0] > 90  # the least-squares fit leaves little to learn
    encoder = load_encoder(str(folder), device="cpu")
    plain = SentenceTransformer(str(folder), device="cpu")
    expected = plain.encode(TEXTS, normalize_embeddings=True)
    numpy.testing.assert_allclose(encoder.encode_documents(TEXTS), expected, atol=1e-5)
    assert encoder.dimension == 32


def test_special_tokens_have_no_vector(tiny_teacher):
    teacher = TorchEncoder(find_model(str(tiny_teacher)))
    texts = ["the wave", "the harbour"]
    student = static_student(teacher, texts, teacher.encode_documents(texts))
    special = set(teacher.model.tokenizer.all_special_ids)
    lengths = student[0].embedding.weight.norm(dim=1)
    assert {row for row, length in enumerate(lengths) if length == 0} == special


def test_a_student_has_no_student(tiny_teacher, documents, tmp_path):
    for name in ("a", "b"):
        base = tiny_teacher if name == "a" else tmp_path / "a"
        settings = Settings(str(base), tmp_path / name, [], [Recipe(steps=1)])
        if name == "a":
            train(Distillation(documents, "topics"), settings)
    with pytest.raises(EncoderError):
        train(Distillation(documents, "topics"), settings)
