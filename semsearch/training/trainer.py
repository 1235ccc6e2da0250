"""Training of one stage on the trainers of sentence-transformers and transformers.

Imported only when training begins, for it imports torch.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple
from warnings import catch_warnings, filterwarnings

import numpy
import torch
from accelerate import PartialState
from accelerate.utils import broadcast_object_list
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file
from sentence_transformers import (
    CrossEncoder,
    CrossEncoderTrainer,
    CrossEncoderTrainingArguments,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from sentence_transformers.base.evaluation import BaseEvaluator
from transformers import EarlyStoppingCallback, TrainerCallback
from transformers.trainer_callback import PrinterCallback

from semsearch.encoders.openvino.runtime import float_precision
from semsearch.encoders.specs import Precision
from semsearch.encoders.torch_loading import quiet_transformers
from semsearch.errors import TrainingError
from semsearch.training.batches import LikeLengthBatches, train_used_rows
from semsearch.training.examples import Examples, Notify
from semsearch.training.losses import embed_together, learning_rates
from semsearch.training.stages import Recipe, process_count
from semsearch.training.workspace import Interruption

EVALUATE_AT_LEAST_EVERY = 1000
#: Minimum number of evaluations if the number of steps is given.
EVALUATIONS = 10
LOSSES_AN_EPOCH = 50
#: The best checkpoint and the last one.
CHECKPOINTS_KEPT = 2
#: The file of a checkpoint that holds the weights of the loss, which the trainers do not save.
LOSS_WEIGHTS = "loss.safetensors"
TOKENISED_AT_ONCE = 8192
#: All columns are embedded at once if padding them to one length costs at most this factor.
MAX_PADDED = 1.2
#: More steps than any time limit allows.
UNLIMITED_STEPS = 10**9
#: How long other processes wait for the main one, which evaluates alone.
PATIENCE = timedelta(days=1)

OnProgress = Callable[[int, float], None]  #: number of examples done, fraction of all


class StageResult(NamedTuple):
    """The result of a stage."""

    history: list[dict[str, float]]  #: the trainer's log: losses, rates and development scores
    steps: int
    precision: str
    seconds: float  #: without evaluations


@dataclass
class Trainee:
    """A model, and how it is trained.

    Args:
        model: a model of sentence-transformers or transformers.
        recipe: the hyperparameters, including the length of training.
        steps_an_epoch: steps per epoch, which set how often to evaluate and log.
        trainer: a trainer class of transformers or sentence-transformers.
        arguments: the class of its arguments.
        options: further parameters of the trainer: data and loss.
        score: returns the model's current score; None without a development set.
        settings: further arguments.
        save: writes the model to a folder; None calls its `save_pretrained`.
    """

    model: Any
    recipe: Recipe
    steps_an_epoch: int
    trainer: type[Any]
    arguments: type[Any]
    options: dict[str, Any]
    score: Callable[[], float] | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    save: Callable[[Path], Any] | None = None

    def write(self, folder: Path) -> None:
        """Write the model as its library does."""
        with quiet_transformers():
            (self.save or self.model.save_pretrained)(folder)


def run_stage(
    trainee: Trainee, folder: Path, notify: Notify, on_progress: OnProgress
) -> StageResult:
    """Train; the model then has the weights with the best score, or the last ones.

    Args:
        trainee: what is trained.
        folder: where checkpoints go; the last one there is continued.
        notify: called with scores.
        on_progress: called with the number of examples done, and the fraction done.

    Raises:
        TrainingError: the loss is not finite.
        TrainingStoppedError: the training was interrupted; a checkpoint is written.
    """
    recipe = trainee.recipe
    precision = "bf16" if computes_in_bf16() else "fp32"
    if recipe.epochs == 0:
        return StageResult([], 0, precision, 0.0)
    checkpoint = broadcast(last_checkpoint(folder))
    if checkpoint is not None:
        notify(f"resuming from step {checkpoint.name.rpartition('-')[2]}")
    with quiet_transformers(), catch_warnings(), Interruption() as interruption:
        filterwarnings("ignore", "`broadcast_buffers` is deprecated", FutureWarning)
        loss = trainee.options.get("loss")
        watcher = Watcher(recipe, notify, on_progress, lambda: interruption.asked)
        callbacks: list[TrainerCallback] = [watcher, LossWeights(loss, checkpoint)]
        if recipe.patience and trainee.score:
            callbacks.append(EarlyStoppingCallback(recipe.patience))
        with redirect_stderr(StringIO()):  # progress bars of the model card's statistics
            trainer = trainee.trainer(
                model=trainee.model,
                args=_arguments(trainee, folder, resumes=checkpoint is not None),
                callbacks=callbacks,
                **trainee.options,
            )
        trainer.remove_callback(PrinterCallback)
        trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
    state = trainer.state
    if watcher.is_stopped:
        raise interruption.stopped(state.global_step)
    seconds = watcher.clock["seconds"]
    return StageResult(state.log_history, state.global_step, precision, seconds)


def last_checkpoint(folder: Path) -> Path | None:
    """The newest complete checkpoint: the trainer writes its state last."""
    states = folder.glob("checkpoint-*/trainer_state.json")
    whole = [state.parent for state in states if state.stat().st_size]
    return max(whole, key=lambda path: int(path.name.rpartition("-")[2]), default=None)


def _arguments(trainee: Trainee, folder: Path, *, resumes: bool) -> Any:
    recipe, has_score = trainee.recipe, trainee.score is not None
    every, logged = min(trainee.steps_an_epoch, EVALUATE_AT_LEAST_EVERY), trainee.steps_an_epoch
    if recipe.steps:
        every = min(every, math.ceil(recipe.steps / EVALUATIONS))
        logged = min(logged, recipe.steps)
    every = recipe.evaluate_every or every
    has_accelerator = torch.accelerator.is_available()
    return trainee.arguments(
        output_dir=str(folder),
        num_train_epochs=recipe.epochs or 1,
        max_steps=recipe.steps or (UNLIMITED_STEPS if recipe.minutes else -1),
        per_device_train_batch_size=recipe.batch_size,
        learning_rate=recipe.learning_rate,
        # With a time limit, the watcher sets the rate.
        lr_scheduler_type="constant" if recipe.minutes else "linear",
        warmup_steps=0 if recipe.minutes else recipe.warmup,
        weight_decay=recipe.weight_decay,
        seed=recipe.seed,
        bf16=computes_in_bf16(),
        use_cpu=not has_accelerator,
        dataloader_pin_memory=has_accelerator,
        dataloader_drop_last=process_count() > 1,  # as sentence-transformers requires
        ddp_find_unused_parameters=process_count() > 1,  # such as a bi-encoder's pooler
        ddp_broadcast_buffers=False,  # buffers are constant
        ddp_timeout=int(PATIENCE.total_seconds()),
        eval_strategy="steps" if has_score else "no",
        eval_on_start=has_score and not resumes,
        eval_steps=every,
        save_strategy="steps",
        save_steps=every,
        save_total_limit=CHECKPOINTS_KEPT,
        restore_callback_states_from_checkpoint=True,  # the patience that is left
        load_best_model_at_end=has_score,
        metric_for_best_model="eval_score",
        greater_is_better=True,
        logging_steps=max(1, logged // LOSSES_AN_EPOCH),
        logging_nan_inf_filter=False,
        disable_tqdm=True,
        report_to="none",
        **trainee.settings,
    )


class Watcher(TrainerCallback):  # type: ignore[misc]  # theirs is untyped
    """Reports progress, measures time, and ends the training early.

    Args:
        recipe: its `minutes` limit the training.
        notify: called with each score.
        on_progress: called after each step.
        stop: returns whether to write a checkpoint and end.
    """

    def __init__(
        self, recipe: Recipe, notify: Notify, on_progress: OnProgress, stop: Callable[[], bool]
    ) -> None:
        self.is_stopped = False
        #: An entry of the trainer's history, so that a resumed run continues counting.
        self.clock: dict[str, float] = {"step": 0, "seconds": 0.0}
        self._recipe = recipe
        self._notify = notify
        self._on_progress = on_progress
        self._stop = stop
        self._loss: float | None = None
        self._mark = time.perf_counter()

    def _fraction(self, state: Any) -> float:
        if self._recipe.minutes is None:
            return float(state.global_step / state.max_steps)
        return min(1.0, self.clock["seconds"] / (60 * self._recipe.minutes))

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Start the clock, or continue it."""
        found = (entry for entry in state.log_history if "seconds" in entry)
        self.clock = next(found, self.clock)
        if state.global_step == 0:
            state.log_history.append(self.clock)
        self._report(state)
        self._mark = time.perf_counter()

    def on_step_begin(
        self, args: Any, state: Any, control: Any, optimizer: Any = None, **_: Any
    ) -> None:
        """With a time limit, set the learning rate: rising in the warm-up, then falling to 0."""
        if self._recipe.minutes is not None:
            done, warmup = self._fraction(state), self._recipe.warmup
            rate = done / warmup if done < warmup else (1 - done) / (1 - warmup)
            for group in optimizer.param_groups:
                group["lr"] = rate * group["initial_lr"]

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Report progress; end or save if it is time."""
        now = time.perf_counter()
        self.clock["seconds"] += broadcast(now - self._mark)
        self._mark = now
        self._report(state)
        is_asked = broadcast(self._stop())
        if self._fraction(state) >= 1:
            control.should_evaluate = args.eval_strategy != "no"
            control.should_save = control.should_training_stop = True
        elif is_asked:
            self.is_stopped = control.should_save = control.should_training_stop = True

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        """Remember the loss; one that is not finite ends the training."""
        self._loss = (logs or {}).get("loss", self._loss)
        if self._loss is not None and not math.isfinite(self._loss):
            raise TrainingError(
                f"the loss is not finite at step {state.global_step}; "
                f"lower --learning-rate (now {args.learning_rate:g})"
            )

    def on_evaluate(self, args: Any, state: Any, control: Any, metrics: Any, **_: Any) -> None:
        """Report the score; evaluation does not count as training time."""
        loss = "" if self._loss is None else f"loss {self._loss:.4f}, "
        score = metrics["eval_score"]
        self._notify(f"step {state.global_step:,}: {loss}development score {score:.2f}")
        self._mark = time.perf_counter()

    def _report(self, state: Any) -> None:
        batch = self._recipe.batch_size * process_count()
        self._on_progress(state.global_step * batch, self._fraction(state))


def broadcast(value: Any) -> Any:
    """The main process's value, in all processes."""
    if process_count() == 1:
        return value
    _join()
    return broadcast_object_list([value])[0]


def wait_for_all() -> None:
    """Wait until all processes have come here."""
    if process_count() > 1:
        _join().wait_for_everyone()


def _join() -> PartialState:
    """Connect the processes, and choose each one's device."""
    return PartialState(cpu=not torch.accelerator.is_available(), timeout=PATIENCE)


class LossWeights(TrainerCallback):  # type: ignore[misc]
    """Saves the weights of the loss itself, a classifier, with each checkpoint.

    Args:
        loss: the loss; None for a model that computes its own.
        checkpoint: the one that is resumed.
    """

    def __init__(self, loss: torch.nn.Module | None, checkpoint: Path | None) -> None:
        self._loss = loss
        self._checkpoint = checkpoint

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Load the weights of the checkpoint."""
        if self._loss and self._checkpoint and (file := self._checkpoint / LOSS_WEIGHTS).is_file():
            self._loss.load_state_dict(load_file(file), strict=False)

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Save the weights."""
        named = () if self._loss is None else self._loss.named_parameters()
        weights = {name: one.detach().contiguous() for name, one in named if "model." not in name}
        if weights and state.is_world_process_zero:
            folder = Path(args.output_dir) / f"checkpoint-{state.global_step}"
            save_file(weights, folder / LOSS_WEIGHTS)


class ScoreEvaluator(BaseEvaluator):  # type: ignore[misc]
    """An evaluator of sentence-transformers that calls a function.

    Args:
        score: returns the model's current score.
    """

    def __init__(self, score: Callable[[], float]) -> None:
        super().__init__()
        self._score = score

    def __call__(self, *_: Any, **__: Any) -> dict[str, float]:
        """The score of the model."""
        return {"score": self._score()}


def text_trainee(
    model: Any,
    loss: torch.nn.Module,
    examples: Examples,
    recipe: Recipe,
    score: Callable[[], float] | None,
    *,
    distinct: bool = False,
    only_used_words: bool = False,
    collator: Any = None,
) -> Trainee:
    """A sentence-transformers model that is trained on columns of texts.

    Args:
        model: a bi- or cross-encoder.
        loss: a loss module of sentence-transformers or semsearch that holds the model.
        examples: the training set.
        recipe: the hyperparameters, including the length of training.
        score: returns the model's current score; None without a development set.
        distinct: whether a batch must not contain a text twice.
        only_used_words: train only the embeddings of words that occur in the examples.
        collator: makes the features of a batch; None takes the model's own.
    """
    from datasets import Dataset

    names = ("anchor", "positive", "negative")
    columns: dict[str, list[Any]] = dict(zip(names, examples.texts, strict=False))
    if examples.targets:
        columns["label"] = list(examples.targets)
    trainer, arguments = SentenceTransformerTrainer, SentenceTransformerTrainingArguments
    together: Any = numpy.max  # the columns of a batch are padded to the longest text of all …
    if isinstance(model, CrossEncoder):
        trainer, arguments = CrossEncoderTrainer, CrossEncoderTrainingArguments
        together = numpy.sum  # … or joined
    if model.transformers_model is None:  # averaged word vectors
        lengths = numpy.array([list(map(len, column)) for column in examples.texts])
    else:
        lengths, used = _tokens(model, examples.texts)
        if only_used_words:
            train_used_rows(model, used)
    if lengths.max(axis=0).sum() * lengths.shape[0] <= MAX_PADDED * lengths.sum():
        embed_together(loss)
    texts = examples.texts if distinct else ()
    return Trainee(
        model,
        recipe,
        math.ceil(len(examples) / (recipe.batch_size * process_count())),
        trainer,
        arguments,
        {
            "train_dataset": Dataset.from_dict(columns),
            "loss": loss,
            "evaluator": score and ScoreEvaluator(score),
            "data_collator": collator,
        },
        score,
        {
            "batch_sampler": partial(LikeLengthBatches, together(lengths, axis=0), texts),
            "learning_rate_mapping": learning_rates(loss, recipe),
        },
    )


def _tokens(model: Any, columns: Sequence[Sequence[str]]) -> tuple[NDArray[numpy.int64], set[int]]:
    """The number of tokens read of each text, shape (columns, n), and the ids of all tokens."""
    texts = [text for column in columns for text in column]
    counts: list[int] = []
    used: set[int] = set()
    for start in range(0, len(texts), TOKENISED_AT_ONCE):
        read = model.tokenizer(texts[start : start + TOKENISED_AT_ONCE], verbose=False)["input_ids"]
        counts += map(len, read)
        used.update(*read)
    counted = numpy.minimum(numpy.array(counts, numpy.int64), model.max_seq_length or 512)
    return counted.reshape(len(columns), -1), used


def computes_in_bf16() -> bool:
    """Whether training runs in bf16, where it is faster; weights and optimiser stay in fp32."""
    if torch.cuda.is_available():
        return bool(torch.cuda.is_bf16_supported())
    if torch.accelerator.is_available():
        return False
    return float_precision(Precision.AUTO) is Precision.BF16
