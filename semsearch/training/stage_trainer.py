"""Training of one stage: a model on its data, with checkpoints, of which the best is kept.

Imported only when training begins, for it imports torch.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from warnings import catch_warnings, filterwarnings

import numpy
import torch
from numpy.typing import NDArray
from sentence_transformers import (
    CrossEncoder,
    CrossEncoderTrainingArguments,
    SentenceTransformer,
    SentenceTransformerTrainingArguments,
)
from transformers import EarlyStoppingCallback
from transformers.trainer_callback import PrinterCallback

from semsearch.encoders.openvino_runtime import float_precision
from semsearch.encoders.specs import Precision
from semsearch.encoders.torch_loading import quiet_transformers
from semsearch.errors import ArgumentError, TrainingError
from semsearch.runs import Interruption
from semsearch.training.batching import LikeLengthBatches
from semsearch.training.examples import Callbacks, Examples
from semsearch.training.losses import embed_together
from semsearch.training.processes import for_main, process_count
from semsearch.training.recipe import Recipe
from semsearch.training.trainers import PairTrainer, SiameseTrainer, Watcher
from semsearch.training.used_words import train_used_rows

EVALUATE_AT_LEAST_EVERY = 1000
#: Minimum number of evaluations if the number of steps is given.
EVALUATIONS = 10
LOSSES_AN_EPOCH = 50
#: The best one and the last one.
CHECKPOINTS_KEPT = 2
TOKENISED_AT_ONCE = 8192
#: All columns are embedded at once if padding them to one length costs at most this factor.
MAX_PADDED = 1.2
#: The names of layers in BERT, ModernBERT and T5, whose blocks consist of layers.
LAYER = re.compile(r"\.(layer|layers|block)\.(\d+)\.")
EMBEDDINGS = r"\.(embeddings|embed_tokens|shared)\."
#: More steps than any time limit allows.
UNLIMITED_STEPS = 10**9


class StageResult(NamedTuple):
    """The result of a stage."""

    history: list[dict[str, float]]  #: by step: the loss, or the score on the development set
    steps: int
    precision: str
    seconds: float  #: without evaluations


@dataclass
class StageTrainer:
    """A model, and how it is trained.

    Args:
        model: a model of sentence-transformers or transformers.
        recipe: the hyperparameters, including the length of training.
        steps_an_epoch: steps per epoch, which set how often to evaluate and log.
        trainer: a trainer class of `semsearch.training.trainers`.
        arguments: the class of its arguments.
        options: further parameters of the trainer: data and loss.
        score: returns the model's current score; None without a development set.
        save: writes the model to a folder; None calls `save_pretrained`.
        settings: further arguments.
    """

    model: Any
    recipe: Recipe
    steps_an_epoch: int
    trainer: type[Any]
    arguments: type[Any]
    options: dict[str, Any]
    score: Callable[[], float] | None = None
    save: Callable[[Path], None] | None = None
    settings: dict[str, Any] = field(default_factory=dict)

    def run(self, folder: Path, checkpoint: Path | None, callbacks: Callbacks) -> StageResult:
        """Train; the model then has the weights with the best score, or the last ones.

        Args:
            folder: where checkpoints go.
            checkpoint: the one to resume from; None starts anew.
            callbacks: called with the progress.

        Raises:
            TrainingError: the loss is not finite, or the checkpoint is damaged.
            TrainingStoppedError: the training was interrupted; a checkpoint is written.
        """
        precision = "bf16" if computes_in_bf16(self.recipe.precision) else "fp32"
        if self.recipe.steps == 0:
            return StageResult([], 0, precision, 0.0)
        with quiet_transformers(), catch_warnings(), Interruption() as interruption:
            filterwarnings("ignore", "`broadcast_buffers` is deprecated", FutureWarning)
            watcher = Watcher(self.recipe, callbacks, lambda: interruption.asked)
            trainer = self._trainer(folder, watcher)
            try:
                trainer.train(
                    resume_from_checkpoint=None if checkpoint is None else str(checkpoint)
                )
            except Exception as error:
                if checkpoint is None or watcher.has_begun:
                    raise
                raise TrainingError(
                    f"the checkpoint {checkpoint} is damaged; remove it and use --resume"
                ) from error
        state = trainer.state
        if watcher.is_stopped:
            raise for_main(interruption.stopped(state.global_step))
        history = _history(state.log_history)
        return StageResult(history, state.global_step, precision, watcher.clock["seconds"])

    def write(self, folder: Path) -> None:
        """Write the model as its library does, without a card."""
        if self.save is not None:
            self.save(folder)
        else:
            self.model.save_pretrained(str(folder), create_model_card=False)

    def _trainer(self, folder: Path, watcher: Watcher) -> Any:
        patience = self.recipe.patience if self.score is not None else None
        trainer = self.trainer(
            model=self.model,
            args=self._arguments(folder),
            eval_dataset=self.options["train_dataset"],  # required, but not used: see `evaluate`
            callbacks=[watcher, *([EarlyStoppingCallback(patience)] if patience else [])],
            **self.options,
        )
        trainer.remove_callback(PrinterCallback)
        trainer.watcher, trainer.score, trainer.save = watcher, self.score, self.write
        watcher.trainer = trainer
        return trainer

    def _arguments(self, folder: Path) -> Any:
        recipe = self.recipe
        every = recipe.evaluate_every or min(self.steps_an_epoch, EVALUATE_AT_LEAST_EVERY)
        logged = self.steps_an_epoch
        if recipe.steps:
            logged = min(logged, recipe.steps)
            every = recipe.evaluate_every or min(every, math.ceil(recipe.steps / EVALUATIONS))
        has_accelerator = torch.accelerator.is_available()
        return self.arguments(
            output_dir=str(folder),
            num_train_epochs=recipe.epochs or 1,
            max_steps=recipe.steps or (UNLIMITED_STEPS if recipe.minutes else -1),
            per_device_train_batch_size=recipe.batch_size,
            learning_rate=recipe.learning_rate,
            warmup_steps=recipe.warmup,
            weight_decay=recipe.weight_decay,
            seed=recipe.seed,
            bf16=computes_in_bf16(recipe.precision),
            use_cpu=not has_accelerator,
            dataloader_pin_memory=has_accelerator,
            # sentence-transformers requires it for several processes; the sampler drops nothing.
            dataloader_drop_last=process_count() > 1,
            ddp_find_unused_parameters=self._has_unused_weights(),
            ddp_broadcast_buffers=False,  # buffers are constant
            eval_strategy="no" if self.score is None else "steps",
            eval_steps=every,
            save_strategy="steps",
            save_steps=every,
            save_total_limit=CHECKPOINTS_KEPT,
            restore_callback_states_from_checkpoint=True,  # the patience that is left
            load_best_model_at_end=self.score is not None,
            metric_for_best_model="eval_score",
            greater_is_better=True,
            logging_steps=max(1, logged // LOSSES_AN_EPOCH),
            logging_nan_inf_filter=False,
            disable_tqdm=True,
            report_to="none",
            **self.settings,
        )

    def _has_unused_weights(self) -> bool:
        """Whether some weights are unused, such as the pooler of a bi-encoder."""
        model = self.model
        return isinstance(model, SentenceTransformer) and model.transformers_model is not None


def text_trainer(
    model: Any,
    loss: torch.nn.Module,
    examples: Examples,
    recipe: Recipe,
    score: Callable[[], float] | None,
    *,
    distinct: bool = False,
    only_used_words: bool = False,
) -> StageTrainer:
    """A trainer of a sentence-transformers model on columns of texts.

    Args:
        model: a bi- or cross-encoder.
        loss: a loss module of sentence-transformers or semsearch that holds the model.
        examples: the training set.
        recipe: the hyperparameters, including the length of training.
        score: returns the model's current score; None without a development set.
        distinct: whether a batch must not contain a text twice.
        only_used_words: train only the embeddings of words that occur in the examples.
    """
    from datasets import Dataset

    columns: dict[str, list[Any]] = dict(
        zip(("anchor", "positive", "negative"), examples.texts, strict=False)
    )
    if examples.targets:
        columns["label"] = list(examples.targets)
    trainer, arguments = SiameseTrainer, SentenceTransformerTrainingArguments
    together: Any = numpy.max  # the columns of a batch are padded to the longest text of all …
    if isinstance(model, CrossEncoder):
        trainer, arguments = PairTrainer, CrossEncoderTrainingArguments
        together = numpy.sum  # … or joined
    if model.transformers_model is None:  # averaged word vectors
        lengths = numpy.array([list(map(len, column)) for column in examples.texts])
    else:
        lengths, used = _tokens(model, examples.texts)
        if only_used_words:
            train_used_rows(model, used)
    if lengths.max(axis=0).sum() * len(lengths) <= MAX_PADDED * lengths.sum():
        embed_together(loss)
    return StageTrainer(
        model,
        recipe,
        math.ceil(len(examples) / (recipe.batch_size * process_count())),
        trainer,
        arguments,
        {"train_dataset": Dataset.from_dict(columns), "loss": loss},
        score,
        settings={
            "batch_sampler": partial(
                LikeLengthBatches,
                together(lengths, axis=0),
                examples.texts if distinct else (),
                processes=process_count(),
            ),
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


def computes_in_bf16(precision: Precision) -> bool:
    """Whether training runs in bf16; weights and optimiser stay in fp32.

    Raises:
        EncoderError: bf16 is requested, but the processor computes it no faster than fp32.
    """
    if torch.cuda.is_available():
        return precision is not Precision.FP32 and torch.cuda.is_bf16_supported()
    if torch.accelerator.is_available():
        return False
    return float_precision(precision) is Precision.BF16


def learning_rates(module: torch.nn.Module, recipe: Recipe) -> dict[str, float]:
    """Learning rates of the parameters that do not have the default one, by name pattern.

    With a decay of d, the last of n layers has d times the full rate, the first d ** n times, the
    embeddings d ** (n + 1) times; the head of a cross-encoder has the full rate.

    Raises:
        ArgumentError: a decay is given, but the model's layers or embeddings are not found.
    """
    names = [name for name, _ in module.named_parameters()]
    rates = {}
    if any(name.startswith("classifier.") for name in names):
        rates[r"^classifier\."] = recipe.head_learning_rate
    if recipe.embedding_learning_rate is not None:
        rates[r"\.word_embeddings\."] = recipe.embedding_learning_rate
    if recipe.layer_decay == 1:
        return rates
    found = [match for name in names if (match := LAYER.search(name))]
    if not found or not any(re.search(EMBEDDINGS, name) for name in names):
        raise ArgumentError("--layer-decay does not support this model; leave it out")
    word, layers = found[0][1], 1 + max(int(match[2]) for match in found)
    rate, decay = recipe.learning_rate, recipe.layer_decay
    rates |= {rf"\.{word}\.{n}\.": rate * decay ** (layers - n) for n in range(layers)}
    return rates | {EMBEDDINGS: rate * decay ** (layers + 1)}


def _history(log: list[dict[str, Any]]) -> list[dict[str, float]]:
    history = []
    for entry in log:
        if "loss" in entry:
            history.append({"step": entry["step"], "loss": entry["loss"]})
        if "eval_score" in entry:
            history.append({"step": entry["step"], "score": entry["eval_score"]})
    return history
