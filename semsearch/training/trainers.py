"""Trainers of transformers and sentence-transformers, with the changes that all tasks share.

Imported only when training begins, for it imports torch.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from sentence_transformers import CrossEncoderTrainer, SentenceTransformerTrainer
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader
from transformers import Trainer, TrainerCallback

from semsearch.errors import TrainingError
from semsearch.training.examples import Callbacks
from semsearch.training.processes import broadcast, for_main, is_main, process_count
from semsearch.training.recipe import Recipe

#: The file of a checkpoint that holds the weights of the loss.
LOSS_WEIGHTS = "loss.safetensors"
CHECKPOINT_EVERY_SECONDS = 600.0


class _Shared(Trainer):  # type: ignore[misc]  # theirs is untyped
    """The differences from the libraries' trainers.

    `watcher`, `score` and `save` are set by `StageTrainer`.
    """

    watcher: Watcher
    score: Any  #: a callable without arguments; None without a development set
    save: Callable[[Path], None]
    control: Any

    def training_step(self, *arguments: Any, **named: Any) -> torch.Tensor:
        """Run the forward and backward pass; a loss that is not finite ends the training.

        The loss, and the gradients of its own weights, which are not the model's, are averaged over
        all processes.
        """
        loss: torch.Tensor = super().training_step(*arguments, **named)
        loss = self.accelerator.reduce(loss, "mean")
        for weights in self._weights_of_loss().values():
            weights.grad = self.accelerator.reduce(weights.grad, "mean")
        if not torch.isfinite(loss):
            raise for_main(
                TrainingError(
                    f"the loss is not finite at step {self.state.global_step + 1}; "
                    f"lower --learning-rate (now {self.args.learning_rate:g})"
                )
            )
        return loss

    def create_scheduler(self, num_training_steps: int, optimizer: Any = None) -> Any:
        """The learning-rate schedule by steps, or by elapsed time if `minutes` are given."""
        if self.watcher.recipe.minutes is None:
            return super().create_scheduler(num_training_steps, optimizer)
        self.lr_scheduler = LambdaLR(
            optimizer or self.optimizer, lambda _: self.watcher.rate(self.state)
        )
        self._created_lr_scheduler = True
        return self.lr_scheduler

    def evaluate(self, *_: Any, **__: Any) -> dict[str, float]:
        """The score, under the name that the trainer expects."""
        training = self.model.training
        with torch.autocast(self.args.device.type, torch.bfloat16, enabled=self.args.bf16):
            metrics = {"eval_score": broadcast(self.score() if is_main() else 0.0)}
        self.model.train(training)
        self.log(metrics)
        handle = self.callback_handler.on_evaluate
        self.control = handle(self.args, self.state, self.control, metrics)
        return metrics

    def _save(self, output_dir: str | None = None, state_dict: Any = None) -> None:
        """Save the model and the loss's own weights, without the libraries' pickled arguments."""
        del state_dict
        if not is_main():
            return
        folder = Path(str(output_dir))
        folder.mkdir(parents=True, exist_ok=True)
        self.save(folder)
        if weights := self._weights_of_loss():
            contiguous = {name: one.detach().contiguous() for name, one in weights.items()}
            save_file(contiguous, folder / LOSS_WEIGHTS)

    def _load_from_checkpoint(self, checkpoint: str, *others: Any) -> None:
        super()._load_from_checkpoint(checkpoint, *others)
        file = Path(checkpoint) / LOSS_WEIGHTS
        if file.is_file():
            self.loss.load_state_dict(load_file(file), strict=False)

    def _weights_of_loss(self: Any) -> dict[str, torch.Tensor]:
        """The trained weights of the loss besides the model's: a classifier."""
        loss = getattr(self, "loss", None)  # transformers' trainer has none
        return {
            name: weights
            for name, weights in (() if loss is None else loss.named_parameters())
            if "model" not in name.split(".")
        }

    def add_model_card_callback(self, default_args_dict: dict[str, Any]) -> None:
        """Do nothing: the original tokenises data for statistics and looks up names on the hub."""


class SiameseTrainer(_Shared, SentenceTransformerTrainer):  # type: ignore[misc]
    """Trains a bi-encoder."""


class PairTrainer(_Shared, CrossEncoderTrainer):  # type: ignore[misc]
    """Trains a cross-encoder."""


class MaskedTrainer(_Shared):
    """Trains a BERT on the batches of its data set."""

    def get_train_dataloader(self) -> Any:
        """A loader of the batches of `train_dataset.batches`."""
        loader = DataLoader(
            self.train_dataset,
            batch_sampler=self.train_dataset.batches,
            collate_fn=self.data_collator,
            pin_memory=self.args.dataloader_pin_memory,
        )
        return self.accelerator.prepare(loader)


class Watcher(TrainerCallback):  # type: ignore[misc]
    """Reports progress, measures time, and ends the training early.

    Args:
        recipe: its `minutes` limit the training.
        callbacks: called after each step and evaluation.
        stop: returns whether to write a checkpoint and end.
    """

    trainer: Any

    def __init__(self, recipe: Recipe, callbacks: Callbacks, stop: Callable[[], bool]) -> None:
        self.recipe = recipe
        self.has_begun = self.is_stopped = False
        #: An entry of the trainer's history, so that a resumed run continues counting.
        self.clock: dict[str, float] = {"step": 0, "seconds": 0.0}
        self._callbacks = callbacks
        self._stop = stop
        self._loss: float | None = None
        self._mark = self._saved = time.perf_counter()

    def fraction(self, state: Any) -> float:
        """The fraction of the training that is done."""
        if self.recipe.minutes is None:
            return float(state.global_step / state.max_steps)
        return min(1.0, self.clock["seconds"] / (60 * self.recipe.minutes))

    def rate(self, state: Any) -> float:
        """The fraction of the peak learning rate: rising in the warm-up, then falling to 0."""
        done, warmup = self.fraction(state), self.recipe.warmup
        return done / warmup if done < warmup else (1 - done) / (1 - warmup)

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Score the untrained model."""
        del args, control
        found = (entry for entry in state.log_history if "seconds" in entry)
        self.clock = next(found, self.clock)
        if state.global_step == 0:
            state.log_history.append(self.clock)
            if self.trainer.score is not None:
                self.trainer.evaluate()
        self._report(state)
        self._mark = self._saved = time.perf_counter()

    def on_epoch_begin(
        self, args: Any, state: Any, control: Any, train_dataloader: Any = None, **_: Any
    ) -> None:
        """Set the epoch of the batches.

        transformers does not if several processes resume: their sampler is wrapped twice.
        """
        del args, control
        sampler = train_dataloader.batch_sampler
        sampler = getattr(sampler, "batch_sampler", sampler)
        if hasattr(sampler, "set_epoch"):
            sampler.set_epoch(int(state.epoch))

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Record that the checkpoint has been read completely."""
        del args, state, control
        self.has_begun = True

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Report progress; end or save if it is time."""
        del args
        now = time.perf_counter()
        self.clock["seconds"] += broadcast(now - self._mark)
        self._mark = now
        self._report(state)
        is_asked, is_due = broadcast((self._stop(), now - self._saved > CHECKPOINT_EVERY_SECONDS))
        if self.fraction(state) >= 1:
            control.should_evaluate = self.trainer.score is not None
            control.should_save = control.should_training_stop = True
        elif is_asked:
            self.is_stopped = control.should_save = control.should_training_stop = True
        elif is_due:
            control.should_save = True

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Record the time of the checkpoint."""
        del args, state, control
        self._saved = time.perf_counter()

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        """Remember the loss."""
        del args, state, control
        self._loss = (logs or {}).get("loss", self._loss)

    def on_evaluate(self, args: Any, state: Any, control: Any, metrics: Any, **_: Any) -> None:
        """Report the score; evaluation does not count as training time."""
        del args, control
        loss = "" if self._loss is None else f"loss {self._loss:.4f}, "
        score = metrics["eval_score"]
        self._callbacks.notify(f"step {state.global_step:,}: {loss}development score {score:.2f}")
        self._mark = time.perf_counter()

    def _report(self, state: Any) -> None:
        batch = self.recipe.batch_size * process_count()
        self._callbacks.on_progress(state.global_step * batch, self.fraction(state))
