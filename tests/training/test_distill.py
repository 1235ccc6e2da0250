"""Distillation into tiny students: they approach their teacher, and load as they were saved."""

from __future__ import annotations

from collections import Counter

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


def test_word_vectors_are_weighted_by_rarity(tiny_teacher, documents):
    """By a / (a + frequency), Arora et al. 2017; then one linear map changes all vectors alike."""
    teacher = TorchEncoder(find_model(str(tiny_teacher)))
    tokenizer = teacher.model.tokenizer
    texts = [one.text.partition(".")[0] for one in documents]  # none is cut
    student = static_student(teacher, texts, teacher.encode_documents(texts))
    vectors = student[0].embedding.weight.numpy(force=True)
    special = tokenizer.all_special_ids
    assert numpy.flatnonzero(~vectors.any(axis=1)).tolist() == sorted(special)
    places = {word: row for word, row in tokenizer.get_vocab().items() if word.isalnum()}
    found = vectors[[*places.values()]]
    counts = Counter(tokenizer.get_vocab().keys())  # each piece counts once more
    counts.update(piece for text in texts for piece in tokenizer.tokenize(text))
    frequencies = [counts[word] / (counts.total() - len(special)) for word in places]
    weights = 1e-4 / (1e-4 + numpy.array(frequencies))
    weighted = teacher.encode_documents(list(places)) * weights[:, None]
    fitted, *_ = numpy.linalg.lstsq(weighted, found)
    numpy.testing.assert_allclose(weighted @ fitted, found, atol=1e-3 * abs(found).max())


def test_a_student_has_no_student(tiny_teacher, documents, tmp_path):
    teacher = TorchEncoder(find_model(str(tiny_teacher)))
    static_student(teacher, TEXTS, teacher.encode_documents(TEXTS)).save(str(tmp_path / "a"))
    settings = Settings(str(tmp_path / "a"), tmp_path / "b", [], [Recipe(steps=1)])
    with pytest.raises(EncoderError):
        train(Distillation(documents, "topics"), settings)
