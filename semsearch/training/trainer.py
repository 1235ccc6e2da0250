"""Training of one stage on the trainers of sentence-transformers and transformers; its loss.

Imported only when training begins, for it imports torch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass, field
from functools import partial
from io import StringIO
from itertools import chain
from pathlib import Path
from typing import Any

import numpy
import torch
from numpy.typing import NDArray
from sentence_transformers import (
    CrossEncoder,
    CrossEncoderTrainer,
    CrossEncoderTrainingArguments,
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from sentence_transformers.base.evaluation import BaseEvaluator
from sentence_transformers.base.losses.merged_forward import embed_columns
from sentence_transformers.sentence_transformer import losses
from transformers import EarlyStoppingCallback, TrainerCallback
from transformers.trainer_callback import PrinterCallback

from semsearch.encoders.openvino.runtime import float_precision
from semsearch.encoders.specs import Precision
from semsearch.encoders.torch_loading import quiet_transformers
from semsearch.errors import TrainingError
from semsearch.training.batches import LikeLengthBatches, train_used_rows
from semsearch.training.examples import Examples, Notify
from semsearch.training.measures import Vectors, gold_of
from semsearch.training.stages import Loss, Recipe

EVALUATE_AT_LEAST_EVERY = 1000
#: Minimum number of evaluations if the number of steps is given.
EVALUATIONS = 10
#: Number of losses in the history for each evaluation.
LOSSES_LOGGED = 10
#: The best checkpoint and the last one.
CHECKPOINTS_KEPT = 2
#: All columns are embedded at once if padding them to one length costs at most this factor.
MAX_PADDED = 1.2
#: The development score, and the development loss, as the trainers name them.
EVAL_SCORE, EVAL_LOSS = "eval_score", "eval_loss"

#: Transformers embed larger batches in parts, with gradient caching (Gao et al. 2021), so that
#: memory use does not grow with the batch size.
CACHED_FROM = 128
CACHED_PART = 64
#: Of the triplet loss, in Euclidean distance (Reimers & Gurevych 2019, section 3).
TRIPLET_MARGIN = 1.0
Features = Sequence[dict[str, torch.Tensor]]
OnProgress = Callable[[int, float], None]  #: number of examples done, fraction of all


@dataclass
class Trainee:
    """A model of sentence-transformers or transformers, and how it is trained."""

    model: Any
    recipe: Recipe
    steps_an_epoch: int  #: set how often to evaluate and log
    trainer: type[Any]
    arguments: type[Any]  #: of the trainer
    options: dict[str, Any]  #: further parameters of the trainer: data and loss
    #: `EVAL_SCORE` or `EVAL_LOSS` selects the checkpoint; None without a development set.
    metric: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)  #: further arguments
    is_resumable: bool = True  #: whether checkpoints hold all weights

    def write(self, folder: Path) -> None:
        """Write the model as its library does, with the tokenizer if it is separate."""
        with quiet_transformers():
            self.model.save_pretrained(folder)
            if tokenizer := self.options.get("processing_class"):
                tokenizer.save_pretrained(folder)


def run_stage(
    trainee: Trainee, folder: Path, notify: Notify, on_progress: OnProgress
) -> list[dict[str, float]]:
    """Train; the model then has the weights with the best score, or the last ones.

    Checkpoints go into the folder; the last one there is continued. The trainer's log is returned:
    losses, rates and development scores.
    """
    recipe = trainee.recipe
    if recipe.epochs == 0:
        return []
    checkpoint = last_checkpoint(folder) if trainee.is_resumable else None
    if checkpoint is not None:
        notify(f"resuming from step {checkpoint.name.rpartition('-')[2]}")
    callbacks: list[TrainerCallback] = [Watcher(recipe.batch_size, notify, on_progress)]
    if recipe.patience and trainee.metric:
        callbacks.append(EarlyStoppingCallback(recipe.patience))
    with quiet_transformers():
        with redirect_stderr(StringIO()):  # progress bars of the model card's statistics
            trainer = trainee.trainer(
                model=trainee.model,
                args=_arguments(trainee, folder, resumes=checkpoint is not None),
                callbacks=callbacks,
                **trainee.options,
            )
        trainer.remove_callback(PrinterCallback)
        trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
    return trainer.state.log_history  # type: ignore[no-any-return]


def last_checkpoint(folder: Path) -> Path | None:
    """The newest complete checkpoint: the trainer writes its state last."""
    states = folder.glob("checkpoint-*/trainer_state.json")
    whole = [state.parent for state in states if state.stat().st_size]
    return max(whole, key=lambda path: int(path.name.rpartition("-")[2]), default=None)


def _arguments(trainee: Trainee, folder: Path, *, resumes: bool) -> Any:
    recipe, is_scored = trainee.recipe, trainee.metric is not None
    every = min(trainee.steps_an_epoch, EVALUATE_AT_LEAST_EVERY)
    if recipe.steps:
        every = min(every, math.ceil(recipe.steps / EVALUATIONS))
    every = recipe.evaluate_every or every
    has_accelerator = torch.accelerator.is_available()
    common = {
        "output_dir": str(folder),
        "num_train_epochs": recipe.epochs or 1,
        "max_steps": recipe.steps or -1,
        "per_device_train_batch_size": recipe.batch_size,
        "learning_rate": recipe.learning_rate,
        "warmup_steps": recipe.warmup,
        "weight_decay": recipe.weight_decay,
        "seed": recipe.seed,
        "bf16": computes_in_bf16(),
        "use_cpu": not has_accelerator,
        "dataloader_pin_memory": has_accelerator,
        "eval_strategy": "steps" if is_scored else "no",
        "eval_on_start": is_scored and not resumes,
        "eval_steps": every,
        "save_strategy": "steps",
        "save_steps": every,
        "save_total_limit": CHECKPOINTS_KEPT,
        "restore_callback_states_from_checkpoint": True,  # the patience that is left
        "load_best_model_at_end": is_scored,
        "metric_for_best_model": trainee.metric,
        "greater_is_better": trainee.metric == EVAL_SCORE,
        "logging_steps": max(1, min(every, trainee.steps_an_epoch) // LOSSES_LOGGED),
        "logging_nan_inf_filter": False,
        "disable_tqdm": True,
        "report_to": "none",
    }
    return trainee.arguments(**common | trainee.settings)


class Watcher(TrainerCallback):  # type: ignore[misc]  # theirs is untyped
    """Reports progress and scores; ends a training whose loss is not finite."""

    def __init__(self, batch_size: int, notify: Notify, on_progress: OnProgress) -> None:
        self._batch_size = batch_size
        self._notify = notify
        self._on_progress = on_progress
        self._loss: float | None = None

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Report progress."""
        step = state.global_step
        self._on_progress(step * self._batch_size, step / state.max_steps)

    on_train_begin = on_step_end

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        """Remember the loss; one that is not finite ends the training."""
        self._loss = (logs or {}).get("loss", self._loss)
        if self._loss is not None and not math.isfinite(self._loss):
            raise TrainingError(
                f"the loss is not finite at step {state.global_step}; "
                f"lower --learning-rate (now {args.learning_rate:g})"
            )

    def on_evaluate(self, args: Any, state: Any, control: Any, metrics: Any, **_: Any) -> None:
        """Report the score or loss on the development set."""
        loss = "" if self._loss is None else f"loss {self._loss:.4f}, "
        name = args.metric_for_best_model
        value = f"development {name.removeprefix('eval_')} {metrics[name]:.2f}"
        self._notify(f"step {state.global_step:,}: {loss}{value}")


class ScoreEvaluator(BaseEvaluator):  # type: ignore[misc]
    """An evaluator of sentence-transformers that calls a function."""

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
    """A model of sentence-transformers that is trained on columns of texts.

    Args:
        model: a bi- or cross-encoder.
        loss: a module that holds the model.
        examples: the training set.
        recipe: the hyperparameters.
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
        math.ceil(len(examples) / recipe.batch_size),
        trainer,
        arguments,
        {
            "train_dataset": Dataset.from_dict(columns),
            "loss": loss,
            "evaluator": score and ScoreEvaluator(score),
            "data_collator": collator,
        },
        score and EVAL_SCORE,
        {
            "batch_sampler": partial(LikeLengthBatches, together(lengths, axis=0), texts),
            "learning_rate_mapping": learning_rates(loss, recipe),
        },
        is_resumable=not hasattr(loss, "classifier"),  # the trainers do not save its weights
    )


def _tokens(model: Any, columns: Sequence[Sequence[str]]) -> tuple[NDArray[numpy.int64], set[int]]:
    """The number of tokens read of each text, shape (columns, n), and the ids of all tokens."""
    texts = [text for column in columns for text in column]
    read = model.tokenizer(texts, verbose=False)["input_ids"]
    counts = numpy.minimum([len(ids) for ids in read], model.max_seq_length or 512)
    return counts.reshape(len(columns), -1), set(chain.from_iterable(read))


def computes_in_bf16() -> bool:
    """Whether training runs in bf16, where it is faster; weights and optimiser stay in fp32."""
    if torch.cuda.is_available():
        return bool(torch.cuda.is_bf16_supported())
    if torch.accelerator.is_available():
        return False
    return float_precision(Precision.AUTO) is Precision.BF16


def classifier_accuracy(model: SentenceTransformer, loss: Any, examples: Examples) -> float:
    """How often the classifier of the softmax loss is right, in %."""
    u, v = (
        model.encode(column, show_progress_bar=False, convert_to_tensor=True)
        for column in examples.texts
    )
    with torch.no_grad():
        logits = loss.classifier(torch.cat([u, v, (u - v).abs()], dim=1))
    return 100 * float(numpy.mean(logits.argmax(dim=1).cpu().numpy() == gold_of(examples)))


class TeacherLoss(torch.nn.Module):
    """1 - cosine to the teacher's vector (Reimers & Gurevych 2020); labels are row numbers."""

    wanted: torch.Tensor

    def __init__(self, model: SentenceTransformer, wanted: Vectors) -> None:
        super().__init__()
        self.model = model
        self.register_buffer("wanted", torch.from_numpy(wanted), persistent=False)

    def forward(self, features: Features, labels: torch.Tensor) -> torch.Tensor:
        """The mean loss of a batch."""
        (texts,) = features
        vectors = self.model(texts)["sentence_embedding"].float()
        goal = self.wanted[labels.view(-1)]
        vectors = vectors[:, : goal.shape[1]]  # the model may truncate them only in `encode`
        return 1 - torch.nn.functional.cosine_similarity(vectors, goal).mean()


def embedding_loss(model: SentenceTransformer, loss: Loss, examples: Examples, size: int) -> Any:
    """A loss for batches of a size, with a randomly initialised head if it has one."""
    match loss:
        case Loss.SOFTMAX:
            return losses.SoftmaxLoss(model, model.get_embedding_dimension(), len(examples.labels))
        case Loss.CONTRASTIVE:
            return losses.ContrastiveLoss(model)
        case Loss.COSINE:
            return losses.CosineSimilarityLoss(model)
        case Loss.COSENT:
            return losses.CoSENTLoss(model)
        case Loss.RANKING if size > CACHED_FROM and model.transformers_model:
            return losses.CachedMultipleNegativesRankingLoss(model, mini_batch_size=CACHED_PART)
        case Loss.RANKING:
            return losses.MultipleNegativesRankingLoss(model)
        case Loss.TRIPLET:
            euclidean = losses.TripletDistanceMetric.EUCLIDEAN
            return losses.TripletLoss(model, euclidean, TRIPLET_MARGIN)


def embed_together(loss: Any) -> None:
    """Make a loss embed all columns in one pass; sentence-transformers embeds the first separately.

    One pass is faster if the columns are of similar length, as all are padded to the longest text.
    """
    if not hasattr(loss, "compute_loss_from_embeddings"):
        return

    def forward(features: Features, labels: torch.Tensor | None) -> Any:
        embeddings = embed_columns(loss.model, features, separate_first=False)
        return loss.compute_loss_from_embeddings(embeddings, labels)

    loss.forward = forward


def learning_rates(module: torch.nn.Module, recipe: Recipe) -> dict[str, float]:
    """Learning rates of the parameters that do not have the default one, by name pattern."""
    rates = {}
    if hasattr(module, "classifier"):
        rates[r"^classifier\."] = recipe.head_learning_rate
    if recipe.embedding_learning_rate is not None:
        rates[r"\.word_embeddings\."] = recipe.embedding_learning_rate
    return rates
