"""Hyperparameters of a training stage."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from enum import Enum
from typing import Any

from semsearch.encoders.specs import Precision
from semsearch.errors import ArgumentError
from semsearch.training.examples import Kind


class Loss(Enum):
    """The losses of a bi-encoder (Reimers & Gurevych 2019, section 3, unless noted)."""

    SOFTMAX = "softmax"  #: classification of u, v and |u - v|
    COSINE = "cosine"  #: mean squared error of the cosine to the gold score
    COSENT = "cosent"  #: order of the cosines by gold score (Su 2022, CoSENT)
    RANKING = "ranking"  #: the positive against in-batch negatives (Henderson et al. 2017)
    TRIPLET = "triplet"  #: the positive nearer than the negative, by a margin

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of examples that the loss accepts, the best first."""
        return {
            Loss.SOFTMAX: (Kind.LABELLED,),
            Loss.COSINE: (Kind.SCORED,),
            Loss.COSENT: (Kind.SCORED,),
            Loss.RANKING: (Kind.TRIPLETS, Kind.POSITIVE),
            Loss.TRIPLET: (Kind.TRIPLETS,),
        }[self]


#: Minimum values of integer parameters.
MINIMUMS = {"batch_size": 1, "evaluate_every": 1, "patience": 1, "max_tokens": 3, "steps": 0}


@dataclass(frozen=True)
class Recipe:
    """Hyperparameters; the defaults are those of Sentence-BERT (Reimers & Gurevych 2019).

    Args:
        epochs: passes over the data; fractions are possible. Without epochs, steps and minutes:
            4 for scored pairs and 1 for larger sets, as in the paper; 3 for translations.
        steps: number of training steps, instead of `epochs`; 0 leaves the model untrained.
        minutes: training time, instead of `epochs`; evaluations do not count.
        batch_size: examples per step.
        learning_rate: the peak, after the warm-up; the rate then falls linearly to 0.
        warmup: fraction of the steps in which the learning rate rises linearly from 0.
        weight_decay: of AdamW; not applied to biases and normalisation layers.
        layer_decay: factor on the learning rate from each layer to the one below.
        head_learning_rate: the peak for the softmax loss's classifier, which starts with random
            weights. The paper uses that of the model; but with some thousand pairs such a
            classifier stays nearly random, and the model adapts to it.
        embedding_learning_rate: the peak for the word embeddings; None means `learning_rate`.
        margin: of the triplet loss, in Euclidean distance.
        seed: of shuffling, dropout, new heads and held-out data.
        evaluate_every: steps between evaluations, each with a checkpoint; None means an epoch or
            a tenth of `steps`, but at most 1,000 steps.
        patience: stop after this many evaluations without a better score; None never does.
        max_tokens: maximum tokens read per text; None means the base model's limit.
        dimensions: numbers of leading dimensions that are also trained to work alone (Kusupati
            et al. 2022, Matryoshka representation learning).
        precision: fp32, bf16, or auto: bf16 if it is faster on the processor.
    """

    epochs: float | None = None
    steps: int | None = None
    minutes: float | None = None
    batch_size: int = 16
    learning_rate: float = 2e-5
    warmup: float = 0.1
    weight_decay: float = 0.01
    layer_decay: float = 1.0
    head_learning_rate: float = 1e-3
    embedding_learning_rate: float | None = None
    margin: float = 1.0
    seed: int = 1
    evaluate_every: int | None = None
    patience: int | None = None
    max_tokens: int | None = None
    dimensions: tuple[int, ...] = ()
    precision: Precision = Precision.AUTO

    def __post_init__(self) -> None:
        if (self.epochs, self.steps, self.minutes).count(None) < 2:
            raise ArgumentError("epochs, steps and minutes exclude each other; give one of them")
        rates = ("learning_rate", "head_learning_rate", "embedding_learning_rate")
        for name in ("epochs", "minutes", *rates, "margin", "layer_decay"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise ArgumentError(f"{name} must be above 0, not {value:g}")
        if self.layer_decay > 1:
            raise ArgumentError(f"layer_decay must be at most 1, not {self.layer_decay:g}")
        if not 0 <= self.warmup < 1:
            raise ArgumentError(f"warmup must be at least 0 and below 1, not {self.warmup:g}")
        if not 0 <= self.weight_decay < math.inf:
            raise ArgumentError(f"weight_decay must be at least 0, not {self.weight_decay:g}")
        if self.seed < 0 or self.seed >= 1 << 32:
            raise ArgumentError(f"seed must be from 0 to {(1 << 32) - 1}, not {self.seed}")
        for name, least in MINIMUMS.items():
            value = getattr(self, name)
            if value is not None and value < least:
                raise ArgumentError(f"{name} must be at least {least}, not {value}")
        if any(dimension < 1 for dimension in self.dimensions):
            raise ArgumentError(f"dimensions must be at least 1, not {min(self.dimensions)}")
        if self.precision is Precision.INT8:
            raise ArgumentError("training in int8 is not supported; use auto, fp32 or bf16")

    def for_kind(self, kind: Kind) -> Recipe:
        """The same recipe, with the default number of epochs if no length is given."""
        if (self.epochs, self.steps, self.minutes) != (None, None, None):
            return self
        return replace(self, epochs={Kind.SCORED: 4.0, Kind.TRANSLATIONS: 3.0}.get(kind, 1.0))

    def as_json(self) -> dict[str, Any]:
        """The hyperparameters as JSON values."""
        return asdict(self) | {
            "dimensions": list(self.dimensions),
            "precision": self.precision.value,
        }
