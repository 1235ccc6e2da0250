"""sentence-transformers' trainers as we want them: quiet, watched, and with our own model card.

Imported only when training begins, for it imports torch.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from sentence_transformers import CrossEncoderTrainer, SentenceTransformerTrainer
from sentence_transformers.base.evaluation import BaseEvaluator
from transformers import TrainerCallback

#: The file of a checkpoint that holds the weights of the loss.
LOSS_WEIGHTS = "loss.safetensors"


class NotFiniteError(ArithmeticError):
    """The loss is NaN or infinite.

    Args:
        step: at which step, counted from 1.
    """

    def __init__(self, step: int) -> None:
        super().__init__(f"the loss is not finite at step {step}")
        self.step = step


class _Ours:
    """What we change of both trainers."""

    def training_step(self, *arguments: Any, **named: Any) -> torch.Tensor:
        """Forward and backward; a loss that is not finite ends the training."""
        loss: torch.Tensor = super().training_step(*arguments, **named)  # type: ignore[misc]
        if not torch.isfinite(loss):
            raise NotFiniteError(self.state.global_step + 1)  # type: ignore[attr-defined]
        return loss

    def add_model_card_callback(self, default_args_dict: dict[str, Any]) -> None:
        """Theirs would tokenise the data for statistics, and ask the hub for names."""

    def _save(self, output_dir: str | None = None, state_dict: Any = None) -> None:
        """The model, and the loss's own weights; theirs adds its arguments as a pickle."""
        del state_dict
        self.model.save_pretrained(  # type: ignore[attr-defined]
            output_dir, create_model_card=False
        )
        if weights := self._weights_of_loss():
            save_file(weights, Path(str(output_dir)) / LOSS_WEIGHTS)

    def _load_from_checkpoint(self, checkpoint_path: str) -> None:
        super()._load_from_checkpoint(checkpoint_path)  # type: ignore[misc]
        file = Path(checkpoint_path) / LOSS_WEIGHTS
        if file.is_file():
            self.loss.load_state_dict(load_file(file), strict=False)  # type: ignore[attr-defined]

    def _weights_of_loss(self) -> dict[str, torch.Tensor]:
        """What the loss has learnt besides the model: a classifier."""
        state = self.loss.state_dict()  # type: ignore[attr-defined]
        return {
            name: weights.contiguous()
            for name, weights in state.items()
            if "model" not in name.split(".")
        }


class OurSiameseTrainer(_Ours, SentenceTransformerTrainer):  # type: ignore[misc]
    """Trains a bi-encoder."""


class OurCrossEncoderTrainer(_Ours, CrossEncoderTrainer):  # type: ignore[misc]
    """Trains a cross-encoder."""


class Scoring(BaseEvaluator):  # type: ignore[misc]
    """Calls a function of ours where the trainer evaluates.

    Args:
        model: what is scored.
        score: higher is better.
        bf16: whether the model computes in bf16 meanwhile.
    """

    def __init__(self, model: Any, score: Callable[[], float], bf16: bool) -> None:
        super().__init__()
        self._model = model
        self._score = score
        self._bf16 = bf16

    def __call__(self, *_: Any, **__: Any) -> dict[str, float]:
        """The score, under the name that the trainer looks for."""
        training = self._model.training
        with torch.autocast(self._model.device.type, torch.bfloat16, enabled=self._bf16):
            score = self._score()
        self._model.train(training)
        return {"score": score}


class Watcher(TrainerCallback):  # type: ignore[misc]
    """Tells how far the training has come, and ends it when that is wanted.

    Args:
        on_step: is called at the start and after every step: how many are done, how many in all.
        on_score: is called after every evaluation with the step, the loss and the score.
        stop: whether to write a checkpoint and end.
        scoring: what evaluates; it does so once before the first step, too.
    """

    def __init__(
        self,
        on_step: Callable[[int, int], None],
        on_score: Callable[[int, float | None, float], None],
        stop: Callable[[], bool],
        scoring: Scoring | None,
    ) -> None:
        self._on_step = on_step
        self._on_score = on_score
        self._stop = stop
        self._scoring = scoring
        self._loss: float | None = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Tell where it begins, and score what is there before anything is learnt."""
        del args, control
        self._on_step(state.global_step, state.max_steps)
        if self._scoring is not None and state.global_step == 0:
            score = self._scoring()["score"]
            state.log_history.append({"step": 0, "eval_score": score})
            self._on_score(0, None, score)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Tell, and stop if that is wanted."""
        del args
        self._on_step(state.global_step, state.max_steps)
        if self._stop():
            control.should_save = True
            control.should_training_stop = True
        elif state.global_step == state.max_steps and self._scoring is not None:
            control.should_evaluate = True

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        """Remember the loss."""
        del args, state, control
        self._loss = (logs or {}).get("loss", self._loss)

    def on_evaluate(self, args: Any, state: Any, control: Any, metrics: Any, **_: Any) -> None:
        """Tell the score."""
        del args, control
        self._on_score(state.global_step, self._loss, metrics["eval_score"])
