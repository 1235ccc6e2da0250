"""Training of cross-encoders, which read both texts at once (Reimers & Gurevych 2019, table 2)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from semsearch.encoders.model_folder import FIRST_STAGE_WEIGHT, transformer_folder
from semsearch.encoders.torch_loading import complete, is_of_head, loading
from semsearch.training.card import BINARY
from semsearch.training.checks import limit_tokens
from semsearch.training.examples import Examples, Kind, Notify
from semsearch.training.scoring import score_cross_encoder
from semsearch.training.stages import Settings, Stage, stages_of
from semsearch.training.task import Task

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder

    from semsearch.training.stage_trainer import StageTrainer


class CrossEncoding(Task):
    """Train a cross-encoder.

    The head has one output for scored pairs and for two classes (the second one scores high; see
    `semsearch.training.examples.ordered_labels`), and one output per class for more; a stage that
    needs a different head from the model's begins with a new one.
    """

    name = "cross-encoder"
    description = "A cross-encoder, trained by semsearch from `{base}`."

    def stages(self, settings: Settings, notify: Notify) -> tuple[list[Stage], list[Examples]]:
        """The stages of a run, and its test sets."""
        stages, tests = stages_of(settings, self.kinds, self.testable, notify)
        for training, *_ in stages:
            if len(training.labels) == 2:
                notify(f"{training.name}: pairs labelled '{training.labels[1]}' score high")
        return stages, tests

    def kinds(self, number: int) -> Sequence[Kind]:
        """Scored pairs, preferred to labelled ones."""
        del number
        return (Kind.SCORED, Kind.LABELLED)

    def testable(self, training: Examples) -> Sequence[Kind]:
        """The kinds that the outputs can predict; a single output also ranks scored pairs."""
        if training.kind is Kind.SCORED:
            return (Kind.SCORED,)
        return (Kind.LABELLED, Kind.SCORED) if outputs(training) == 1 else (Kind.LABELLED,)

    def loss(self, number: int, training: Examples) -> str:
        """Cross-entropy, binary for a single output."""
        del number
        return BINARY if outputs(training) == 1 else "cross-entropy"

    def trainer(self, folder: Path, number: int, stage: Stage) -> StageTrainer:
        """The trainer of the cross-encoder in a folder, with a head for the stage."""
        del number
        from sentence_transformers.cross_encoder.losses import (
            BinaryCrossEntropyLoss,
            CrossEntropyLoss,
        )
        from transformers import set_seed

        from semsearch.training.stage_trainer import text_trainer

        training, development, recipe = stage
        set_seed(recipe.seed)
        count = outputs(training)
        model = self.load(folder, count)
        vars(model.config).pop(FIRST_STAGE_WEIGHT, None)  # it was chosen for other weights
        limit_tokens(model, model.config, recipe.max_tokens)
        loss = BinaryCrossEntropyLoss(model) if count == 1 else CrossEntropyLoss(model)
        score = None if development is None else lambda: score_cross_encoder(model, development)
        return text_trainer(model, loss, training, recipe, score, only_used_words=True)

    def load(self, folder: Path, count: int | None = None) -> CrossEncoder:
        """Load a cross-encoder in fp32, with a new head unless it has `count` outputs.

        Raises:
            EncoderError: it cannot be loaded, or other weights than its head's are missing.
        """
        import torch
        from sentence_transformers import CrossEncoder
        from transformers import AutoConfig

        with loading(str(folder)), complete(str(folder), is_of_head):
            place = str(transformer_folder(folder))
            stored = AutoConfig.from_pretrained(place, local_files_only=True).num_labels
            model = CrossEncoder(
                place,
                num_labels=count,
                trust_remote_code=False,
                local_files_only=True,
                model_kwargs={
                    "use_safetensors": True,
                    "ignore_mismatched_sizes": True,
                    "dtype": "float32",
                },
            )
        if count not in (None, stored):  # the activation that is stored is for another head
            model.activation_fn = torch.nn.Sigmoid() if count == 1 else torch.nn.Identity()
        return model

    def score(self, model: Any, examples: Examples, dimension: int | None = None) -> float:
        """The score of a model on scored or labelled pairs."""
        del dimension  # there are no vectors
        return score_cross_encoder(model, examples)


def outputs(training: Examples) -> int:
    """The number of outputs of the head."""
    return 1 if len(training.labels) <= 2 else len(training.labels)
