"""One stage of a training run: a model, a training set, a loss; checkpoints, and the best is kept.

Imported only when training begins, for it imports torch.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy
import torch
from numpy.typing import NDArray
from transformers import EarlyStoppingCallback
from transformers.trainer_callback import PrinterCallback

from semsearch.encoders.openvino_runtime import float_precision
from semsearch.encoders.specs import Precision
from semsearch.encoders.torch_models import quiet_transformers
from semsearch.errors import TrainingError
from semsearch.runs import Interruption
from semsearch.training.batching import sampler_factory
from semsearch.training.examples import Examples, Notify
from semsearch.training.recipe import Recipe
from semsearch.training.trainers import NotFiniteError, Scoring, Watcher

EVALUATE_AT_LEAST_EVERY = 1000
LOSSES_AN_EPOCH = 50
#: The best one and the last one.
CHECKPOINTS_KEPT = 2


class Hooks(NamedTuple):
    """Whom a run tells what."""

    notify: Notify
    on_progress: Callable[[int, int], None]  #: examples done, and in all


class StageResult(NamedTuple):
    """What a stage came to."""

    history: list[dict[str, float]]  #: by step: its loss, its score on the development set
    steps: int
    precision: str
    seconds: float  #: without evaluations


@dataclass
class Stage:
    """What is trained and how.

    Args:
        model: a bi- or cross-encoder of sentence-transformers.
        loss: a module of theirs or ours that holds the model.
        trainer: the class that trains such a model.
        arguments: the class of its arguments.
        examples: what it learns from.
        lengths: how much computing each example takes, in tokens, shape (n,).
        score: how good the model is now; None where there is no development set.
        recipe: with the number of epochs.
        distinct: whether a batch must not hold a text twice.
    """

    model: Any
    loss: torch.nn.Module
    trainer: type[Any]
    arguments: type[Any]
    examples: Examples
    lengths: NDArray[numpy.int64]
    score: Callable[[], float] | None
    recipe: Recipe
    distinct: bool = False
    _scoring_seconds: float = field(default=0.0, init=False)

    def run(self, folder: Path, checkpoint: Path | None, hooks: Hooks) -> StageResult:
        """Train; afterwards the model is the one with the best score, or the last one.

        Args:
            folder: where checkpoints go.
            checkpoint: the one to go on from.
            hooks: whom to tell.

        Raises:
            TrainingError: the loss is not finite.
            TrainingStoppedError: it was interrupted; a checkpoint is written.
        """
        started = time.perf_counter()
        with quiet_transformers(), Interruption() as interruption:
            trainer = self._trainer(folder, hooks, interruption)
            try:
                trainer.train(
                    resume_from_checkpoint=None if checkpoint is None else str(checkpoint)
                )
            except NotFiniteError as error:
                raise TrainingError(
                    f"{error}; lower --learning-rate (now {self.recipe.learning_rate:g})"
                ) from None
        state = trainer.state
        if interruption.asked and state.global_step < state.max_steps:
            raise interruption.stopped(state.global_step)
        seconds = time.perf_counter() - started - self._scoring_seconds
        return StageResult(
            _history(state.log_history),
            state.global_step,
            "bf16" if self._bf16 else "fp32",
            seconds,
        )

    def _trainer(self, folder: Path, hooks: Hooks, interruption: Interruption) -> Any:
        from datasets import Dataset

        size = self.recipe.batch_size
        scoring = self._scoring()

        def on_step(step: int, steps: int) -> None:
            hooks.on_progress(step * size, steps * size)

        def on_score(step: int, loss: float | None, score: float) -> None:
            of_loss = "" if loss is None else f"loss {loss:.4f}, "
            hooks.notify(f"step {step:,}: {of_loss}development score {score:.2f}")

        trainer = self.trainer(
            model=self.model,
            args=self._arguments(folder),
            train_dataset=Dataset.from_dict(self._columns()),
            loss=self.loss,
            evaluator=scoring,
            callbacks=[
                Watcher(on_step, on_score, lambda: interruption.asked, scoring),
                *self._early_stopping(),
            ],
        )
        trainer.remove_callback(PrinterCallback)
        return trainer

    def _columns(self) -> dict[str, list[Any]]:
        names = ("anchor", "positive", "negative")
        columns: dict[str, list[Any]] = dict(zip(names, self.examples.texts, strict=False))
        if self.examples.targets:
            columns["label"] = list(self.examples.targets)
        return columns

    def _early_stopping(self) -> list[Any]:
        if self.score is None or self.recipe.patience is None:
            return []
        return [EarlyStoppingCallback(self.recipe.patience)]

    def _scoring(self) -> Scoring | None:
        score = self.score
        if score is None:
            return None

        def timed() -> float:
            started = time.perf_counter()
            try:
                return score()
            finally:
                self._scoring_seconds += time.perf_counter() - started

        return Scoring(self.model, timed, self._bf16)

    @property
    def _bf16(self) -> bool:
        return computes_in_bf16(self.recipe.precision)

    def _arguments(self, folder: Path) -> Any:
        recipe = self.recipe
        steps_an_epoch = math.ceil(len(self.examples) / recipe.batch_size)
        every = recipe.evaluate_every or min(steps_an_epoch, EVALUATE_AT_LEAST_EVERY)
        texts = self.examples.texts if self.distinct else ()
        return self.arguments(
            output_dir=str(folder),
            num_train_epochs=recipe.epochs,
            per_device_train_batch_size=recipe.batch_size,
            batch_sampler=sampler_factory(self.lengths, texts),
            learning_rate=recipe.learning_rate,
            learning_rate_mapping=learning_rates(self.loss, recipe),
            warmup_steps=recipe.warmup,
            weight_decay=recipe.weight_decay,
            seed=recipe.seed,
            bf16=self._bf16,
            use_cpu=not torch.accelerator.is_available(),
            dataloader_pin_memory=torch.accelerator.is_available(),
            eval_strategy="no" if self.score is None else "steps",
            eval_steps=every,
            save_strategy="steps",
            save_steps=every,
            save_total_limit=CHECKPOINTS_KEPT,
            load_best_model_at_end=self.score is not None,
            metric_for_best_model="eval_score",
            greater_is_better=True,
            logging_steps=max(1, steps_an_epoch // LOSSES_AN_EPOCH),
            logging_nan_inf_filter=False,
            disable_tqdm=True,
            report_to="none",
        )


def computes_in_bf16(precision: Precision) -> bool:
    """Whether training runs in bf16; weights and optimiser stay in fp32.

    Raises:
        EncoderError: bf16 is asked for, and the processor computes it no faster than fp32.
    """
    if torch.cuda.is_available():
        return precision is not Precision.FP32 and torch.cuda.is_bf16_supported()
    if torch.accelerator.is_available():
        return False
    return float_precision(precision) is Precision.BF16


def learning_rates(module: torch.nn.Module, recipe: Recipe) -> dict[str, float]:
    """The learning rates of those parameters that have one of their own, by a pattern of names.

    With a decay of d, the last of n layers has d times the full rate, the first d to the power
    of n, the embeddings d to the power of n + 1; the head of a cross-encoder has the full rate.
    """
    names = [name for name, _ in module.named_parameters()]
    rates = {}
    if any(name.startswith("head.classifier.") for name in names):
        rates[r"^head\.classifier\."] = recipe.head_learning_rate
    if recipe.embedding_learning_rate is not None:
        rates[r"\.word_embeddings\."] = recipe.embedding_learning_rate
    if recipe.layer_decay == 1:
        return rates
    found = (re.search(r"\.layer\.(\d+)\.", name) for name in names)
    layers = 1 + max((int(match[1]) for match in found if match), default=-1)
    rate, decay = recipe.learning_rate, recipe.layer_decay
    rates |= {rf"\.layer\.{n}\.": rate * decay ** (layers - n) for n in range(layers)}
    return rates | {r"\.embeddings\.": rate * decay ** (layers + 1)}


def _history(log: list[dict[str, Any]]) -> list[dict[str, float]]:
    history = []
    for entry in log:
        if "loss" in entry:
            history.append({"step": entry["step"], "loss": entry["loss"]})
        if "eval_score" in entry:
            history.append({"step": entry["step"], "score": entry["eval_score"]})
    return history
