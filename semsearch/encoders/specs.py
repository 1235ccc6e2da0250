"""Specs of models: ``NAME[@REVISION][@POOLING][@DIMENSIONd]``, and precisions.

A revision is written as in the hub's addresses (``hf://NAME@REVISION``); hub names contain no @.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

from semsearch.errors import EncoderError
from semsearch.protocols import Encoder

BUNDLED_SPEC = "minilm"
CROSS_ENCODER_PREFIX = "cross-encoder:"


class Pooling(Enum):
    """How the vectors of tokens are combined. Padding is ignored."""

    MEAN = "mean"  #: over all tokens, including [CLS] and [SEP]
    CLS = "cls"  #: the vector of the first token
    MAX = "max"  #: the maximum of each dimension over all tokens
    POOLER = "pooler"  #: the first token through BERT's dense layer and tanh


class Precision(Enum):
    """The precision of computation on a CPU."""

    AUTO = "auto"  #: bf16 if the processor supports it, else int8 where it passes, else fp32
    FLOAT = "float"  #: bf16 if the processor supports it, else fp32
    FP32 = "fp32"
    BF16 = "bf16"
    INT8 = "int8"  #: a quantised model, if its loss is small enough; else FLOAT


POOLINGS = {pooling.value: pooling for pooling in Pooling}

_DIMENSION = re.compile(r"[1-9][0-9]{0,5}d")
_COMMIT = re.compile(r"@[0-9a-f]{40}(?=@|$)")


class ModelSpec(NamedTuple):
    """A parsed spec of a model."""

    name: str  #: ``minilm``, a folder, or a name on the hub
    revision: str | None = None  #: a branch, tag or commit on the hub; None for the main branch
    pooling: Pooling | None = None  #: None for the model's own
    dimension: int | None = None  #: the number of leading dimensions to keep; None for all

    def __str__(self) -> str:
        dimension = self.dimension and f"{self.dimension}d"
        parts = [self.name, self.revision, self.pooling and self.pooling.value, dimension]
        return "@".join(part for part in parts if part)


def parse_spec(spec: str) -> ModelSpec:
    """Parse a spec; names of folders may contain @.

    The last part is a dimension or a pooling if it has such a name; a branch with that name can be
    given by its commit.

    Raises:
        EncoderError: the pooling is unknown, or a revision is given for a folder.
    """
    model, _, last = spec.rpartition("@")
    if model and _DIMENSION.fullmatch(last) and not _is_folder(spec):
        return parse_spec(model)._replace(dimension=int(last[:-1]))
    name, pooling = spec, None
    model, _, last = spec.rpartition("@")
    if model and last in POOLINGS and not _is_folder(spec):
        name, pooling = model, POOLINGS[last]
    model, mark, revision = name.partition("@")
    if not mark or _is_folder(name):
        return ModelSpec(name, None, pooling)
    is_local = model.startswith((".", "~")) or Path(model).is_absolute() or _is_folder(model)
    if is_local or model in ("", BUNDLED_SPEC) or not revision or "@" in revision:
        choices = ", ".join(POOLINGS)
        raise EncoderError(
            f"no pooling '{name.rpartition('@')[2]}' in '{spec}' (poolings: {choices})"
        )
    return ModelSpec(model, revision, pooling)


def pinned(spec: str, commit: str | None) -> str:
    """The spec of a model on the hub at a commit; without a commit, the spec unchanged."""
    return str(parse_spec(spec)._replace(revision=commit)) if commit else spec


def unpinned(spec: str) -> str:
    """A spec without its commit."""
    return _COMMIT.sub("", spec)


def _is_folder(name: str) -> bool:
    return Path(name).expanduser().is_dir()


def described_precision(description: Mapping[str, Any]) -> Precision:
    """The precision with which to load an encoder again, given its description.

    FLOAT replaces bf16, so that processors without bf16 use fp32.
    """
    precision = description.get("precision")
    return Precision(precision) if precision in ("fp32", "int8") else Precision.FLOAT


def computed_precision(encoder: Encoder) -> str | None:
    """The precision of an encoder; None if it has no model."""
    precision = encoder.description().get("precision")
    return None if precision is None else str(precision)
