"""Students in miniature: they come nearer to their teacher, and are read back as they were."""

from __future__ import annotations

import numpy
import pytest
from sentence_transformers import SentenceTransformer

from semsearch.encoders import load_encoder
from semsearch.encoders.torch_models import whole_text_tokenizer
from semsearch.errors import ArgumentError
from semsearch.runs import Workspace
from semsearch.unsupervised.distillation import DistillationSettings, distil
from semsearch.unsupervised.loop import Length
from semsearch.unsupervised.sentence_model import trainable_encoder
from semsearch.unsupervised.students import shallow_student, static_student

pytestmark = pytest.mark.slow

TEXTS = ["The wave salt harbour sailor tide.", "Oven dough!", "comet"]


@pytest.fixture(autouse=True)
def no_data(monkeypatch):
    monkeypatch.delenv("SEMSEARCH_DATA", raising=False)


def cosines(told):
    """What was told of the cosine to the teacher's vectors, before and after."""
    return [float(line.split("cosine ")[1].split()[0]) for line in told if "cosine" in line]


@pytest.mark.parametrize("student", [{"layers": 1}, {}, {"dimension": 8}])
def test_a_student_learns_from_a_corpus(tiny_teacher, documents, tmp_path, student):
    told = []
    settings = DistillationSettings(
        str(tiny_teacher), length=Length(40), batch=16, learning_rate=1e-3, **student
    )
    teacher, place = distil(documents, Workspace(tmp_path / "m"), settings, notify=told.append)
    before, after = cosines(told)
    if "layers" in student:
        assert after > before + 0.005
    else:  # the least squares that it begins with leave little to do
        assert after >= before > 0.9
    assert teacher.texts_per_second > 0
    assert place.texts_per_second > 0
    assert place.sts is None
    encoder = load_encoder(str(tmp_path / "m"), device="cpu")
    plain = SentenceTransformer(str(tmp_path / "m"), device="cpu")
    expected = plain.encode(TEXTS, normalize_embeddings=True)
    numpy.testing.assert_allclose(encoder.encode_documents(TEXTS), expected, atol=1e-5)
    assert encoder.dimension == student.get("dimension", 32)
    assert "student's place" in (tmp_path / "m" / "README.md").read_text("utf-8")


def test_a_static_student_without_a_corpus(tiny_teacher, tmp_path):
    settings = DistillationSettings(str(tiny_teacher), dimension=16)
    distil(None, Workspace(tmp_path / "m"), settings)
    encoder = load_encoder(str(tmp_path / "m"), device="cpu")
    assert encoder.dimension == 16
    assert (
        encoder.facts.max_tokens == load_encoder(str(tiny_teacher), device="cpu").facts.max_tokens
    )
    assert len(encoder.token_spans("the wave")) == 2
    one, other = encoder.encode_documents(["wave salt", "salt wave"])
    numpy.testing.assert_allclose(one, other, atol=1e-6)  # the order of words is nothing to it


def test_static_vectors_are_the_teachers_by_rarity(tiny_teacher):
    """Against the teacher on the word alone, without normalisation, times a / (a + p)."""
    teacher = trainable_encoder(str(tiny_teacher))
    tokenizer = whole_text_tokenizer(teacher.model.tokenizer)
    counts = numpy.zeros(tokenizer.get_vocab_size(), int)
    word = tokenizer.token_to_id("the")
    counts[word] = 10_000
    student = static_student(teacher, None, counts)
    (vector,) = student.encode(["the"])
    words = tokenizer.get_vocab_size() - 5  # without special tokens
    weight = 1e-4 / (1e-4 + 10_001 / (10_000 + words))
    expected = teacher.model.encode(["the"])[0] * weight
    numpy.testing.assert_allclose(vector, expected, rtol=1e-3, atol=1e-8)


def test_layers_are_kept_evenly(tiny_teacher):
    teacher = trainable_encoder(str(tiny_teacher)).model
    student = shallow_student(teacher, 2)
    kept = student[0].auto_model.encoder.layer
    assert len(kept) == student[0].auto_model.config.num_hidden_layers == 2
    of_teacher = teacher[0].auto_model.encoder.layer
    assert len(of_teacher) == 3
    for mine, his in ((kept[0], of_teacher[0]), (kept[1], of_teacher[2])):
        name = next(name for name, _ in mine.named_parameters())
        assert mine.get_parameter(name).equal(his.get_parameter(name))
    for layers in (0, 3):
        with pytest.raises(ArgumentError, match="layers must be from 1 to 2"):
            shallow_student(teacher, layers)


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"layers": 1}, "need a corpus"), ({"length": Length(3)}, "need a corpus")],
)
def test_what_needs_a_corpus(tiny_teacher, tmp_path, settings, message):
    with pytest.raises(ArgumentError, match=message):
        distil(None, Workspace(tmp_path / "m"), DistillationSettings(str(tiny_teacher), **settings))


@pytest.mark.parametrize("wrong", [{"layers": 1, "dimension": 8}, {"batch": 0}, {"seed": -1}])
def test_settings_that_cannot_be(wrong):
    with pytest.raises(ArgumentError):
        DistillationSettings("minilm", **wrong)
