"""Distillation: a faster student that approximates its teacher's vectors."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy
from numpy.random import default_rng

from semsearch.encoders import load_encoder
from semsearch.encoders.model_folder import ModelFolder
from semsearch.encoders.sample import sample_texts
from semsearch.encoders.torch_models import TorchEncoder
from semsearch.errors import ArgumentError
from semsearch.protocols import Matrix
from semsearch.records import Document
from semsearch.training.data import found_sts
from semsearch.training.examples import Examples, Kind, Notify
from semsearch.training.processes import process_count
from semsearch.training.recipe import Recipe
from semsearch.training.scoring import Measured
from semsearch.training.sentences import distinct_documents, held_out, sentences
from semsearch.training.siamese import BiEncoderTask, drop_no_attention
from semsearch.training.stages import Settings, Stage
from semsearch.training.students import check_static, fitted_static, shallow_student, static_student

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from semsearch.training.stage_trainer import StageTrainer

#: Maximum dimension of a static student without a corpus by default, as in model2vec.
STATIC_DIMENSION = 256
STATIC_LEARNING_RATE = 3e-3
SHALLOW_LEARNING_RATE = 1e-4
#: Maximum number of training texts, which the teacher encodes.
MAX_TEXTS = 200_000


@dataclass
class Distillation(BiEncoderTask):
    """Distil an encoder into a faster student.

    Args:
        documents: the corpus; None makes a static student without training.
        data_name: name of the corpus in messages.
        layers: number of the teacher's layers to keep; None makes a static student.
        dimension: of a static student; None is the teacher's, without a corpus at most 256.
    """

    documents: Iterable[Document] | None
    data_name: str = "no corpus"
    layers: int | None = None
    dimension: int | None = None

    name = "distil"
    description = (
        "A faster student of the encoder `{base}`, distilled by semsearch. Both were measured with "
        "torch, on the machine where the student was made."
    )
    keeps_its_task = True

    def __post_init__(self) -> None:
        if self.layers is not None and self.dimension is not None:
            raise ArgumentError("dimension applies to a static student only")
        rate = STATIC_LEARNING_RATE if self.layers is None else SHALLOW_LEARNING_RATE
        self.recipe = Recipe(batch_size=64, learning_rate=rate)

    def choices(self) -> dict[str, Any]:
        """The kind and size of the student."""
        if self.layers is not None:
            return {"layers": self.layers}
        return {"student": "static", "dimension": self.dimension}

    def stages(self, settings: Settings, notify: Notify) -> tuple[list[Stage], list[Examples]]:
        """One stage on documents and their sentences, as passages are long and queries short."""
        (recipe,) = settings.recipes
        tests = found_sts(["stsbenchmark"], "test", notify)
        if self.documents is None:
            if self.layers is not None or recipe.epochs or recipe.steps or recipe.minutes:
                raise ArgumentError("layers, epochs, steps and minutes need a corpus")
            untrained = Recipe(steps=0, learning_rate=recipe.learning_rate, seed=recipe.seed)
            return [Stage(self._examples([], ""), None, untrained)], tests
        found = distinct_documents(self.documents)
        parts = held_out(len(found), recipe.seed, "different documents in this corpus")
        trained, measured = (
            list(
                dict.fromkeys(
                    text
                    for place in places
                    for text in (found[place].text, *sentences(found[place].text))
                )
            )
            for places in parts
        )
        known = set(trained)
        batch = recipe.batch_size * process_count()
        most = min(MAX_TEXTS, recipe.steps * batch if recipe.steps else MAX_TEXTS)
        order = default_rng(recipe.seed).permutation(len(trained))[:most]
        training = self._examples([trained[place] for place in order], "")
        held = self._examples([text for text in measured if text not in known], " (held out)")
        return [Stage(training, held if len(held) else None, recipe.for_kind(Kind.TEXTS))], tests

    def loss(self, number: int, training: Examples) -> str:
        """The cosine loss, in any case."""
        del number, training
        return "cosine to the teacher's vector"

    def trainer(self, folder: Path, number: int, stage: Stage) -> StageTrainer:
        """The trainer of a new student, with the teacher's vectors as targets."""
        del number
        from transformers import set_seed

        from semsearch.training.losses import TeacherLoss
        from semsearch.training.stage_trainer import text_trainer

        training, development, recipe = stage
        set_seed(recipe.seed)
        teacher = TorchEncoder(ModelFolder(str(folder), folder))
        (texts,), (asked,) = training.texts, development.texts if development else ([],)
        if self.layers is None:
            check_static(teacher, self.dimension)
        else:
            student = shallow_student(teacher.model, self.layers)
            drop_no_attention(student)
        if self.documents is None:
            dimension = self.dimension
            if dimension is None:
                dimension = min(STATIC_DIMENSION, teacher.dimension)
            student = static_student(teacher, dimension)
            nothing = numpy.empty((0, 0), numpy.float32)
            return text_trainer(student, TeacherLoss(student, nothing), training, recipe, None)
        # The teacher is not trained, so it may use its fastest runtime.
        wanted = load_encoder(str(folder), local_files_only=True).encode_documents(texts + asked)
        if self.layers is None:
            student, wanted = fitted_static(teacher, texts, wanted, self.dimension)
        prompt = student.prompts.get("document") or ""
        prompted = replace(training, texts=([prompt + text for text in texts],))
        score = partial(_score, student, asked, prompt, wanted[len(texts) :])
        loss = TeacherLoss(student, wanted[: len(texts)])
        return text_trainer(student, loss, prompted, recipe, score if asked else None)

    def measured(
        self, folder: Path, base: Path, tests: Sequence[Examples], last: Stage
    ) -> list[Measured]:
        """The speed and STS Benchmark score of the student and of its teacher."""
        student, teacher = map(_texts_per_second, (folder, base))
        speed = Measured("notes of the sample corpus", "texts/s", student, teacher)
        return [speed, *super().measured(folder, base, tests, last)]

    def _examples(self, texts: list[str], part: str) -> Examples:
        name = f"{self.data_name}{part}"
        places = [f"{name}, text {number}" for number in range(1, len(texts) + 1)]
        return Examples(name, Kind.TEXTS, (texts,), places, list(range(len(texts))))


def _score(student: SentenceTransformer, texts: list[str], prompt: str, wanted: Matrix) -> float:
    vectors = student.encode(
        texts, prompt=prompt, normalize_embeddings=True, show_progress_bar=False
    )
    lengths = numpy.linalg.norm(wanted, axis=1)
    return 100 * float(((vectors * wanted).sum(axis=1) / lengths).mean())


def _texts_per_second(model: Path) -> float:
    encoder = TorchEncoder(ModelFolder(str(model), model))
    notes = sample_texts()
    encoder.encode_documents(notes[:32])  # warm-up
    started = time.perf_counter()
    encoder.encode_documents(notes)
    return len(notes) / (time.perf_counter() - started)
