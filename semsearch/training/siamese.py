"""Training of bi-encoders (Reimers & Gurevych 2019)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from semsearch.encoders.model_folder import ModelFolder
from semsearch.encoders.specs import Precision
from semsearch.encoders.torch_models import TorchEncoder
from semsearch.training.examples import Examples, Kind, Notify
from semsearch.training.lessons import Course, Lesson, lessons_of
from semsearch.training.recipe import Loss
from semsearch.training.scoring import Classify, score_siamese
from semsearch.training.tokens import tokens_of

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from semsearch.training.stage import Stage

#: The losses for those who name none; of a file with columns for several, the first.
SUITING = {
    Kind.SCORED: Loss.COSINE,
    Kind.LABELLED: Loss.SOFTMAX,
    Kind.TRIPLETS: Loss.RANKING,
    Kind.POSITIVE: Loss.RANKING,
}


class Siamese:
    """A bi-encoder that is to learn.

    Args:
        losses: one a stage; None takes the one that suits its examples.
    """

    name = "siamese"
    keeps_its_task = False  # a base model may be a plain BERT

    def __init__(self, losses: Sequence[Loss | None]) -> None:
        self._losses = losses

    def lessons(self, course: Course, notify: Notify) -> tuple[list[Lesson], list[Examples]]:
        """The stages of a run, and its test sets."""
        return lessons_of(course, self.kinds, self.testable, notify)

    def kinds(self, number: int) -> Sequence[Kind]:
        """What the loss of that stage learns from."""
        loss = self._losses[number]
        return loss.kinds if loss else tuple(SUITING)

    def testable(self, training: Examples) -> Sequence[Kind]:
        """Scored pairs whatever it learns, or examples like those it learns from."""
        if training.kind is Kind.LABELLED:  # classes are told by the head, which is not kept
            return (Kind.SCORED, Kind.LABELLED)
        return tuple(dict.fromkeys((training.kind, Kind.SCORED, Kind.TRIPLETS, Kind.POSITIVE)))

    def loss(self, number: int, training: Examples) -> str:
        """The loss of that stage."""
        return self._loss(number, training).value

    def _loss(self, number: int, training: Examples) -> Loss:
        return self._losses[number] or SUITING[training.kind]

    def begin(self, folder: Path, number: int, lesson: Lesson) -> Stage:
        """The bi-encoder of a folder with the loss of that stage."""
        from sentence_transformers import SentenceTransformerTrainingArguments
        from transformers import set_seed

        from semsearch.training.losses import EmbeddingLoss, SoftmaxHead, embedding_loss
        from semsearch.training.stage import Stage
        from semsearch.training.trainers import OurSiameseTrainer
        from semsearch.training.vocabulary import train_used_rows

        set_seed(lesson.recipe.seed)
        model = self.load(folder)
        if lesson.recipe.max_tokens is not None:
            model.max_seq_length = lesson.recipe.max_tokens
        tokens = tokens_of(model, lesson.training.texts)
        train_used_rows(model, tokens.used)
        chosen = self._loss(number, lesson.training)
        loss = embedding_loss(model, chosen, lesson.training, lesson.recipe)
        classify: Classify | None = None
        if isinstance(loss, EmbeddingLoss) and isinstance(loss.head, SoftmaxHead):
            classify = loss.head.classes
        return Stage(
            model=model,
            loss=loss,
            trainer=OurSiameseTrainer,
            arguments=SentenceTransformerTrainingArguments,
            examples=lesson.training,
            lengths=tokens.counts.max(axis=0),  # all are padded to the longest
            score=_scored(model, lesson.development, classify),
            recipe=lesson.recipe,
            distinct=chosen is Loss.RANKING,
        )

    def load(self, folder: Path) -> SentenceTransformer:
        """The model of a folder, in fp32."""
        return TorchEncoder(ModelFolder(str(folder), folder), precision=Precision.FP32).model

    def score(
        self, model: SentenceTransformer, examples: Examples, dimension: int | None = None
    ) -> float:
        """Its score on examples that need no head."""
        return score_siamese(model, examples, dimension=dimension)


def _scored(
    model: SentenceTransformer, development: Examples | None, classify: Classify | None
) -> Callable[[], float] | None:
    if development is None:
        return None
    needed = classify if development.kind is Kind.LABELLED else None
    return lambda: score_siamese(model, development, needed)
