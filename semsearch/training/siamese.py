"""Training of bi-encoders (Reimers & Gurevych 2019)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from semsearch.encoders.model_folder import ModelFolder
from semsearch.encoders.specs import Precision
from semsearch.encoders.torch_models import TorchEncoder
from semsearch.errors import ArgumentError
from semsearch.training.checks import limit_tokens
from semsearch.training.examples import Examples, Kind, Notify
from semsearch.training.recipe import Loss, Recipe
from semsearch.training.scoring import Classify, score_siamese
from semsearch.training.stages import Settings, Stage, stages_of
from semsearch.training.task import Task

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from semsearch.training.stage_trainer import StageTrainer

#: The default loss by kind of examples; if a file fits several kinds, the first one counts.
SUITING = {
    Kind.SCORED: Loss.COSINE,
    Kind.LABELLED: Loss.SOFTMAX,
    Kind.TRIPLETS: Loss.RANKING,
    Kind.POSITIVE: Loss.RANKING,
}


class BiEncoderTask(Task):
    """Trains a bi-encoder with one of sentence-transformers' losses."""

    description = "A bi-encoder, trained by semsearch from `{base}`."
    #: Without it, attention is one fused kernel: less than half the time for long passages.
    attention_dropout = True

    def loss_of(self, number: int, training: Examples) -> Loss:
        """The loss of a stage: the default for its examples."""
        del number
        return SUITING[training.kind]

    def loss(self, number: int, training: Examples) -> str:
        """The name of a stage's loss."""
        return self.loss_of(number, training).value

    def trainer(self, folder: Path, number: int, stage: Stage) -> StageTrainer:
        """A trainer of the bi-encoder in a folder with the loss of a stage."""
        from transformers import set_seed

        from semsearch.training.losses import embedding_loss, predicted_classes
        from semsearch.training.stage_trainer import text_trainer

        recipe = stage.recipe
        set_seed(recipe.seed)
        model = self.load(folder)
        config = model.transformers_model and model.transformers_model.config
        limit_tokens(model, config, recipe.max_tokens)
        if not self.attention_dropout:
            drop_no_attention(model)
        training = self.prompted(stage.training, model)
        chosen = self.loss_of(number, training)
        loss = embedding_loss(model, chosen, training, recipe)
        classify: Classify | None = None
        if chosen is Loss.SOFTMAX:
            classify = partial(predicted_classes, loss)
        score = _scored(model, stage.development, classify)
        distinct = chosen is Loss.RANKING
        return text_trainer(
            model, loss, training, recipe, score, distinct=distinct, only_used_words=True
        )

    def prompted(self, training: Examples, model: SentenceTransformer) -> Examples:
        """The texts as the model reads them: without prompts, which are for other tasks."""
        del model
        return training

    def load(self, folder: Path) -> SentenceTransformer:
        """The model in a folder, in fp32."""
        return TorchEncoder(ModelFolder(str(folder), folder), precision=Precision.FP32).model

    def score(
        self, model: SentenceTransformer, examples: Examples, dimension: int | None = None
    ) -> float:
        """The model's score on examples that need no head."""
        return score_siamese(model, examples, dimension=dimension)


@dataclass
class Siamese(BiEncoderTask):
    """Train a bi-encoder.

    Args:
        losses: one per stage; None takes the default for its examples.
    """

    losses: Sequence[Loss | None]

    name = "siamese"

    def stages(self, settings: Settings, notify: Notify) -> tuple[list[Stage], list[Examples]]:
        """The stages of a run, and its test sets."""
        found = stages_of(settings, self._kinds, _testable, notify, keeps_head=False)
        losses = [self.loss_of(number, one.training) for number, one in enumerate(found[0])]
        for name, loss in (("margin", Loss.TRIPLET), ("head_learning_rate", Loss.SOFTMAX)):
            given = {getattr(one, name) for one in settings.recipes} - {getattr(Recipe, name)}
            if given and loss not in losses:
                used = ", ".join(dict.fromkeys(one.value for one in losses))
                option = name.replace("_", "-")
                raise ArgumentError(f"--{option} is for the loss {loss.value}, not {used}")
        return found

    def loss_of(self, number: int, training: Examples) -> Loss:
        """The chosen loss of a stage."""
        return self.losses[number] or super().loss_of(number, training)

    def _kinds(self, number: int) -> Sequence[Kind]:
        """The kinds of examples that the loss of a stage accepts."""
        loss = self.losses[number]
        return loss.kinds if loss else tuple(SUITING)


def _testable(training: Examples) -> Sequence[Kind]:
    """The kinds of examples that a model can be scored on, by its training set."""
    if training.kind is Kind.LABELLED:
        return (Kind.SCORED, Kind.LABELLED, Kind.TRIPLETS, Kind.POSITIVE)
    return tuple(dict.fromkeys((training.kind, Kind.SCORED, Kind.TRIPLETS, Kind.POSITIVE)))


def _scored(
    model: SentenceTransformer, development: Examples | None, classify: Classify | None
) -> Callable[[], float] | None:
    if development is None:
        return None
    needed = classify if development.kind is Kind.LABELLED else None
    return lambda: score_siamese(model, development, needed)


def drop_no_attention(model: SentenceTransformer) -> None:
    """Turn off dropout within attention; dropout after it stays on."""
    for module in model.modules():
        if type(module).__name__.endswith("SelfAttention") and hasattr(module, "dropout"):
            module.dropout.p = 0.0
