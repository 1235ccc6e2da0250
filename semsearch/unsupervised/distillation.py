"""A student that gives nearly its teacher's vectors for less work, and what it lost and won."""

from __future__ import annotations

import csv
import hashlib
import io
import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple

import numpy
from numpy.random import Generator, default_rng

from semsearch.encoders import load_encoder
from semsearch.encoders.model_folder import ModelFolder
from semsearch.encoders.torch_models import TorchEncoder, whole_text_tokenizer
from semsearch.errors import ArgumentError, CombinationError
from semsearch.protocols import Matrix
from semsearch.records import Document
from semsearch.runs import Workspace
from semsearch.training.sentences import distinct_documents, held_out, sentences
from semsearch.unsupervised.batches import batches_by_length
from semsearch.unsupervised.card import model_card
from semsearch.unsupervised.checkpoints import Checkpoints
from semsearch.unsupervised.loop import Length, Optimization, fit
from semsearch.unsupervised.sentence_model import embedded, trainable_encoder, write_model
from semsearch.unsupervised.sts import sts_spearman
from semsearch.unsupervised.students import shallow_student, static_student

if TYPE_CHECKING:
    import torch
    from sentence_transformers import SentenceTransformer

#: Of a static student without a corpus, as model2vec has it.
STATIC_DIMENSION = 256
STATIC_LEARNING_RATE = 3e-3
SHALLOW_LEARNING_RATE = 1e-4
#: How many texts the teacher encodes for its student at most.
MOST_TEXTS = 200_000
#: Of the diagonal, as a part of its mean, in the least squares that begin a static student.
RIDGE = 1e-3

#: What the card says.
STORY = (
    "A student of another encoder, made for speed. Both were measured on torch, on the machine "
    "where it was made."
)

Notify = Callable[[str], None]
OnProgress = Callable[[int, float], None]


@dataclass(frozen=True)
class DistillationSettings:
    """What to distil, and how.

    Args:
        teacher: by its spec; a Sentence-Transformers model.
        layers: how many of its layers the student keeps; None makes a static student.
        dimension: of a static student; None takes 256 without a corpus and else the teacher's.
        length: of the training; None is once through the corpus.
        batch: texts in a step.
        learning_rate: at its highest; None takes one that suits the student.
        seed: of all that is drawn.
    """

    teacher: str
    layers: int | None = None
    dimension: int | None = None
    length: Length | None = None
    batch: int = 64
    learning_rate: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.layers is not None and self.dimension is not None:
            raise CombinationError("a dimension is chosen for a static student only")
        if self.batch < 1:
            raise ArgumentError(f"a batch must have 1 text or more, not {self.batch}")
        if self.seed < 0:
            raise ArgumentError(f"the seed must not be negative, and it is {self.seed}")

    def rate(self) -> float:
        """The learning rate at its highest."""
        suiting = STATIC_LEARNING_RATE if self.layers is None else SHALLOW_LEARNING_RATE
        return suiting if self.learning_rate is None else self.learning_rate


class Place(NamedTuple):
    """Where an encoder stands between speed and quality, on torch and on this machine."""

    texts_per_second: float  #: the notes of the sample corpus
    sts: float | None  #: Spearman × 100 on STS Benchmark, if it is here

    def __str__(self) -> str:
        quality = "no STS Benchmark here" if self.sts is None else f"STS Benchmark {self.sts:.2f}"
        return f"{self.texts_per_second:,.0f} texts/s, {quality}"


class _Lesson(NamedTuple):
    """Texts with the vectors that are wanted for them."""

    texts: Sequence[str]
    vectors: Matrix


class _Course(NamedTuple):
    """What a student learns from, what it is asked, and how long it learns."""

    lesson: _Lesson
    exam: _Lesson
    length: Length

    def digest(self) -> str:
        """What tells the texts from others."""
        texts = "\n".join((*self.lesson.texts, *self.exam.texts))
        return hashlib.sha256(texts.encode()).hexdigest()[:16]


def distil(
    documents: Iterable[Document] | None,
    workspace: Workspace,
    settings: DistillationSettings,
    *,
    notify: Notify = lambda message: None,
    on_progress: OnProgress = lambda steps, fraction: None,
) -> tuple[Place, Place]:
    """Make a student, let it learn the teacher's vectors of a corpus, write it.

    Args:
        documents: the corpus; None makes a static student that has learnt from no text.
        workspace: where the student is made, and where it goes.
        settings: what to distil, and how.
        notify: is called with a line of news now and then.
        on_progress: is called after each step with how many are done and which part that is.

    Returns:
        Where teacher and student stand.

    Raises:
        TrainingError: there is too little to learn from, the loss is not finite, or files cannot
            be written or read.
        EncoderError: the teacher cannot be used.
        ArgumentError: what is to be resumed began with other settings or another corpus.
        TrainingStoppedError: after Ctrl-C, when a checkpoint has been written.
    """
    teacher = trainable_encoder(settings.teacher)
    plan: dict[str, object] = {"teacher": settings.teacher, "fingerprint": teacher.fingerprint}
    course: _Course | None = None
    if documents is None:
        if settings.layers is not None or settings.length is not None:
            raise CombinationError("layers and a length of training need a corpus to learn from")
        student = static_student(teacher, settings.dimension or STATIC_DIMENSION)
    else:
        student, course = _beginning(teacher, documents, settings, notify)
        plan |= {name: value for name, value in asdict(settings).items() if value is not None}
        plan |= {"length": asdict(course.length), "learning_rate": settings.rate()}
        plan |= {"corpus": course.digest()}
    with workspace.opened(plan):
        facts: dict[str, object] = {}
        if course is not None:
            facts = _taught(student, course, workspace, settings, notify, on_progress)
        notify("measuring speed and quality")
        draft = workspace.draft()
        write_model(student, draft, "")
        places = _place(teacher), _place(TorchEncoder(ModelFolder(str(draft), draft)))
        kind = "static" if settings.layers is None else f"{settings.layers} layers"
        told = {"teacher": settings.teacher, "student": kind, **facts}
        told |= {"teacher's place": places[0], "student's place": places[1]}
        card = model_card(workspace.output.name, STORY, told)
        (draft / "README.md").write_text(card, "utf-8")
        workspace.publish(draft)
    return places


def _beginning(
    teacher: TorchEncoder,
    documents: Iterable[Document],
    settings: DistillationSettings,
    notify: Notify,
) -> tuple[SentenceTransformer, _Course]:
    """A student before its first step, and what it is to learn."""
    texts, asked = _texts(documents, settings)
    notify(f"{len(texts):,} texts and sentences to learn from, {len(asked):,} held out")
    # The teacher is not trained, so it may run where it is fastest.
    wanted = load_encoder(teacher.spec, local_files_only=True).encode_documents([*texts, *asked])
    if settings.layers is not None:
        student = shallow_student(teacher.model, settings.layers)
    else:
        student, wanted = _fitted_static(teacher, texts, wanted, settings.dimension)
    lesson, exam = (
        _Lesson(texts, wanted[: len(texts)]),
        _Lesson(asked, wanted[len(texts) :]),
    )
    length = settings.length or Length(math.ceil(len(texts) / settings.batch))
    return student, _Course(lesson, exam, length)


def _taught(
    student: SentenceTransformer,
    course: _Course,
    workspace: Workspace,
    settings: DistillationSettings,
    notify: Notify,
    on_progress: OnProgress,
) -> dict[str, object]:
    """Let a student learn; what is to be told of that."""
    lesson, exam, length = course
    before = _cosine(student, exam)
    notify(f"before: cosine {before:.3f} to the teacher's vectors of held-out texts")
    lengths = numpy.array([len(text) for text in lesson.texts])

    def batches(epoch: int) -> list[numpy.ndarray]:
        generator = default_rng([settings.seed, epoch])
        return batches_by_length(lengths, settings.batch, generator)

    def loss_of(rows: numpy.ndarray, generator: Generator) -> torch.Tensor:
        import torch
        from torch.nn.functional import cosine_similarity

        vectors = embedded(student, [lesson.texts[row] for row in rows])
        goal = torch.from_numpy(lesson.vectors[rows]).to(vectors.device)
        return 1 - cosine_similarity(vectors, goal).mean()

    position = fit(
        student,
        batches,
        loss_of,
        Optimization(settings.rate(), length, seed=settings.seed),
        Checkpoints(workspace.folder),
        resume=workspace.resumes,
        on_step=lambda position, fraction, loss: on_progress(position.step, fraction),
    )
    after = _cosine(student, exam)
    notify(f"after {position.step:,} steps: cosine {after:.3f}")
    return {
        "learning rate": settings.rate(),
        "batch": settings.batch,
        "seed": settings.seed,
        "texts learnt from": len(lesson.texts),
        "steps": position.step,
        "seconds": round(position.seconds),
        "cosine to the teacher, held out": f"{after:.3f} after {before:.3f}",
    }


def _texts(
    documents: Iterable[Document], settings: DistillationSettings
) -> tuple[list[str], list[str]]:
    """Documents and their sentences, for what is searched is long and what is asked is short."""
    found = distinct_documents(documents)
    parts = held_out(len(found), settings.seed, "in this corpus")
    texts, asked = (
        list(
            dict.fromkeys(
                text
                for place in places
                for text in (found[place].text, *sentences(found[place].text))
            )
        )
        for places in parts
    )
    known = set(texts)
    most = MOST_TEXTS
    if settings.length is not None and settings.length.steps is not None:
        most = min(most, settings.length.steps * settings.batch)
    order = default_rng(settings.seed).permutation(len(texts))[:most]
    return [texts[place] for place in order], [text for text in asked if text not in known]


def _fitted_static(
    teacher: TorchEncoder, texts: Sequence[str], wanted: Matrix, dimension: int | None
) -> tuple[SentenceTransformer, Matrix]:
    """A static student turned towards what is wanted, and what is wanted in its dimension.

    Averaging is linear, so the best linear map of all word vectors is one of least squares.
    """
    import torch

    if dimension is not None:
        if not 1 <= dimension <= wanted.shape[1]:
            raise ArgumentError(f"dimension must be from 1 to {wanted.shape[1]}, not {dimension}")
        _, directions = numpy.linalg.eigh(wanted.T @ wanted)
        wanted = wanted @ directions[:, ::-1][:, :dimension]
    tokenizer = whole_text_tokenizer(teacher.model.tokenizer)
    counts = numpy.zeros(tokenizer.get_vocab_size(), numpy.int64)
    for encoding in tokenizer.encode_batch_fast(list(texts), add_special_tokens=False):
        numpy.add.at(counts, encoding.ids, 1)
    student = static_student(teacher, None, counts)
    averages = student.encode(list(texts), show_progress_bar=False)
    products = averages.T @ averages
    products += numpy.eye(len(products)) * RIDGE * products.diagonal().mean()
    turn = numpy.linalg.solve(products, averages.T @ wanted[: len(texts)])
    weights = student[0].embedding.weight
    turned = weights.detach().numpy() @ turn
    student[0].embedding.weight = torch.nn.Parameter(torch.from_numpy(turned).float())
    student[0].embedding_dim = student[0].embedding.embedding_dim = turned.shape[1]
    return student, numpy.ascontiguousarray(wanted, numpy.float32)


def _cosine(student: SentenceTransformer, exam: _Lesson) -> float:
    """The mean cosine between the student's vectors and those that are wanted."""
    student.eval()
    vectors = student.encode(list(exam.texts), normalize_embeddings=True, show_progress_bar=False)
    lengths = numpy.linalg.norm(exam.vectors, axis=1)
    return float(((vectors * exam.vectors).sum(axis=1) / lengths).mean())


def _place(encoder: TorchEncoder) -> Place:
    sample = (files("semsearch") / "sample" / "notes.csv").read_text("utf-8")
    notes = [row["text"] for row in csv.DictReader(io.StringIO(sample))]
    encoder.encode_documents(notes[:32])  # loaded and warm
    started = time.perf_counter()
    encoder.encode_documents(notes)
    seconds = time.perf_counter() - started
    return Place(len(notes) / seconds, sts_spearman(encoder))
