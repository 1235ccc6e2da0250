"""The loop that all training here shares: AdamW, warm-up, linear decay, checkpoints.

What a step does depends on the seed, the step's number and the weights before it, and on nothing
else: so a run that is stopped and resumed ends with the weights of one that was not.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy

from semsearch.errors import ArgumentError, CombinationError, TrainingError
from semsearch.runs import Interruption
from semsearch.unsupervised.checkpoints import Checkpoints, Position

if TYPE_CHECKING:
    import torch

Batch = TypeVar("Batch")

CHECKPOINT_EVERY_SECONDS = 600.0
GRADIENT_MAX_NORM = 1.0
#: Of AdamW's parameters, those that are not decayed (Devlin et al. 2019, as published code has it).
NOT_DECAYED = ("bias", "LayerNorm.weight", "layer_norm.weight")


@dataclass(frozen=True)
class Length:
    """How long to train: so many steps, or so many minutes.

    Raises:
        ArgumentError: both are given, or none, or one that is not positive.
    """

    steps: int | None = None
    minutes: float | None = None

    def __post_init__(self) -> None:
        if (self.steps is None) == (self.minutes is None):
            raise CombinationError("give steps or minutes, one of them")
        if self.steps is not None and self.steps < 0:
            raise ArgumentError(f"steps must not be negative, and they are {self.steps}")
        if self.minutes is not None and not 0 < self.minutes < math.inf:
            raise ArgumentError(f"minutes must be more than 0, not {self.minutes}")

    def fraction(self, position: Position) -> float:
        """Which part of the training is done."""
        if self.steps is not None:
            return position.step / self.steps if self.steps else 1.0
        assert self.minutes is not None  # noqa: S101 - for mypy; __post_init__ has seen to it
        return position.seconds / (60 * self.minutes)


@dataclass(frozen=True)
class Optimization:
    """How to descend: AdamW with a linear warm-up to the learning rate, then a linear decay to 0.

    Args:
        learning_rate: at its highest.
        length: of the training.
        warmup: the part of the training in which the rate rises.
        weight_decay: of all weights but biases and layer norms.
        seed: of dropout and of all that is drawn for a batch.
    """

    learning_rate: float
    length: Length
    warmup: float = 0.1
    weight_decay: float = 0.01
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.learning_rate < math.inf:
            raise ArgumentError(f"the learning rate must be more than 0, not {self.learning_rate}")

    def rate(self, fraction: float) -> float:
        """The learning rate when that part of the training is done."""
        if fraction < self.warmup:
            # Not from zero: the first step should do something, too.
            return self.learning_rate * max(fraction / self.warmup, 0.01)
        return self.learning_rate * max(0.0, (1 - fraction) / (1 - self.warmup))


def fit(
    model: torch.nn.Module,
    batches: Callable[[int], Sequence[Batch]],
    loss_of: Callable[[Batch, numpy.random.Generator], torch.Tensor],
    optimization: Optimization,
    checkpoints: Checkpoints,
    *,
    resume: bool = False,
    on_step: Callable[[Position, float, float], None] = lambda position, fraction, loss: None,
) -> Position:
    """Train a model until the time or the steps are up.

    Args:
        model: is trained in place, on the device where it is.
        batches: the batches of an epoch, by its number; the same ones whenever it is asked.
        loss_of: the loss of a batch. It may draw from the generator, which the step decides.
        optimization: how to descend, and how long.
        checkpoints: where to keep what a resumed run needs.
        resume: go on from the newest checkpoint.
        on_step: is called after each step with the position, the part that is done and the loss.

    Raises:
        TrainingError: the loss is not finite, or a checkpoint cannot be written or read.
        TrainingStoppedError: after Ctrl-C, when a checkpoint has been written.
    """
    import torch

    optimizer = torch.optim.AdamW(_groups(model, optimization), lr=optimization.learning_rate)
    position = checkpoints.load(model, optimizer) if resume else Position()
    remains = optimization.length.fraction(position) < 1
    saved = time.monotonic()
    with Interruption() as interruption:
        model.train()
        for batch in _from(position, batches) if remains else ():
            started = time.perf_counter()
            rate = optimization.rate(optimization.length.fraction(position))
            for group in optimizer.param_groups:
                group["lr"] = rate
            torch.manual_seed(_step_seed(optimization.seed, position.step))
            generator = numpy.random.default_rng([optimization.seed, position.step])
            loss = _step(model, optimizer, loss_of(batch, generator), position.step)
            position.step += 1
            position.seconds += time.perf_counter() - started
            fraction = min(1.0, optimization.length.fraction(position))
            on_step(position, fraction, loss)
            is_due = time.monotonic() - saved > CHECKPOINT_EVERY_SECONDS
            # The last one, too: what comes after the training can fail or be stopped.
            if fraction >= 1 or interruption.asked or is_due:
                checkpoints.save(position, model, optimizer)
                saved = time.monotonic()
            if fraction >= 1:
                break
            if interruption.asked:
                raise interruption.stopped(position.step)
    model.eval()
    return position


def best_device() -> str:
    """A GPU if there is one."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def autocast(device: str) -> AbstractContextManager[Any]:
    """Products in bf16 where the processor multiplies it fast; weights stay fp32."""
    import torch

    from semsearch.encoders.openvino_runtime import float_precision
    from semsearch.encoders.specs import Precision

    if device.startswith("cuda"):
        fast = torch.cuda.is_bf16_supported(including_emulation=False)
    else:
        fast = float_precision(Precision.AUTO) is Precision.BF16
    return torch.autocast(device.partition(":")[0], dtype=torch.bfloat16, enabled=fast)


def _step(
    model: torch.nn.Module, optimizer: torch.optim.Optimizer, loss: torch.Tensor, step: int
) -> float:
    import torch

    optimizer.zero_grad()
    torch.autograd.backward(loss)
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), GRADIENT_MAX_NORM)
    value = float(loss.detach())
    if not (math.isfinite(value) and math.isfinite(float(norm))):
        raise TrainingError(
            f"the loss is {value} at step {step + 1}, its gradient {float(norm)}; "
            "take a lower --learning-rate"
        )
    optimizer.step()
    return value


def _from(position: Position, batches: Callable[[int], Sequence[Batch]]) -> Iterator[Batch]:
    """The batches from a position on, which is moved along."""
    for epoch in itertools.count(position.epoch):
        of_epoch = batches(epoch)
        position.epoch = epoch
        while position.batch < len(of_epoch):
            position.batch += 1
            yield of_epoch[position.batch - 1]
        position.batch = 0


def _groups(model: torch.nn.Module, optimization: Optimization) -> list[dict[str, Any]]:
    decayed: list[torch.nn.Parameter] = []
    others: list[torch.nn.Parameter] = []
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            (others if name.endswith(NOT_DECAYED) else decayed).append(parameter)
    return [
        {"params": decayed, "weight_decay": optimization.weight_decay},
        {"params": others, "weight_decay": 0.0},
    ]


def _step_seed(seed: int, step: int) -> int:
    return int(numpy.random.SeedSequence([seed, step]).generate_state(1, numpy.uint64)[0] >> 1)
