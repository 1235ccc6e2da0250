"""Training of cross-encoders, which read both texts at once (Reimers & Gurevych 2019, table 2)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from semsearch.encoders.torch_models import loading
from semsearch.training.examples import Examples, Kind, Notify
from semsearch.training.lessons import Course, Lesson, lessons_of
from semsearch.training.scoring import score_cross_encoder
from semsearch.training.tokens import tokens_of

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder

    from semsearch.training.stage import Stage


class CrossEncoding:
    """A cross-encoder that is to learn.

    Its head has one output for scored pairs and for two classes (the second class in the order
    of the alphabet scores high), and one a class for more; a stage that needs another head than
    the model has begins with a new one.
    """

    name = "cross-encoder"
    keeps_its_task = False  # a base model has another head, or none

    def lessons(self, course: Course, notify: Notify) -> tuple[list[Lesson], list[Examples]]:
        """The stages of a run, and its test sets."""
        return lessons_of(course, self.kinds, self.testable, notify)

    def kinds(self, number: int) -> Sequence[Kind]:
        """Scored pairs before labelled ones."""
        del number
        return (Kind.SCORED, Kind.LABELLED)

    def testable(self, training: Examples) -> Sequence[Kind]:
        """What its outputs are about; a single output orders scored pairs, too."""
        if training.kind is Kind.SCORED:
            return (Kind.SCORED,)
        return (Kind.LABELLED, Kind.SCORED) if outputs(training) == 1 else (Kind.LABELLED,)

    def loss(self, number: int, training: Examples) -> str:
        """Cross-entropy, of one output or of several."""
        del number
        return "binary cross-entropy" if outputs(training) == 1 else "cross-entropy"

    def begin(self, folder: Path, number: int, lesson: Lesson) -> Stage:
        """The cross-encoder of a folder, with a head for that stage."""
        del number
        from sentence_transformers import CrossEncoderTrainingArguments
        from sentence_transformers.cross_encoder.losses import (
            BinaryCrossEntropyLoss,
            CrossEntropyLoss,
        )
        from transformers import set_seed

        from semsearch.training.stage import Stage
        from semsearch.training.trainers import OurCrossEncoderTrainer
        from semsearch.training.vocabulary import train_used_rows

        training, development = lesson.training, lesson.development
        set_seed(lesson.recipe.seed)
        count = outputs(training)
        model = self.load(folder, count)
        if lesson.recipe.max_tokens is not None:
            model.max_seq_length = lesson.recipe.max_tokens
        tokens = tokens_of(model, training.texts)
        train_used_rows(model, tokens.used)
        return Stage(
            model=model,
            loss=BinaryCrossEntropyLoss(model) if count == 1 else CrossEntropyLoss(model),
            trainer=OurCrossEncoderTrainer,
            arguments=CrossEncoderTrainingArguments,
            examples=training,
            lengths=tokens.counts.sum(axis=0),
            score=None if development is None else lambda: score_cross_encoder(model, development),
            recipe=lesson.recipe,
        )

    def load(self, folder: Path, count: int | None = None) -> CrossEncoder:
        """The cross-encoder of a folder, in fp32; its head is new if it has not `count` outputs."""
        from sentence_transformers import CrossEncoder

        with loading(str(folder)):
            return CrossEncoder(
                str(folder),
                num_labels=count,
                trust_remote_code=False,
                local_files_only=True,
                model_kwargs={
                    "use_safetensors": True,
                    "ignore_mismatched_sizes": True,
                    "dtype": "float32",
                },
            )

    def score(self, model: Any, examples: Examples, dimension: int | None = None) -> float:
        """Its score on scored or labelled pairs."""
        del dimension  # there are no vectors
        return score_cross_encoder(model, examples)


def outputs(training: Examples) -> int:
    """How many numbers the head gives for a pair."""
    return 1 if len(training.labels) <= 2 else len(training.labels)
