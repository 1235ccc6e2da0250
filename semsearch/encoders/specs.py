"""What the name of a model says: ``NAME[@REVISION][@POOLING][@DIMENSIONd]``.

A revision is written as in the hub's own addresses (``hf://NAME@REVISION``); its names hold no @.
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
    """How the tokens' vectors become one. Padding has no part in any of them."""

    MEAN = "mean"  #: over all tokens, [CLS] and [SEP] among them
    CLS = "cls"  #: the first token's vector
    MAX = "max"  #: the greatest value of each dimension over all tokens
    POOLER = "pooler"  #: the first token's through BERT's own dense layer and tanh


class Precision(Enum):
    """The choices; what each costs in quality is measured, not promised (see the README)."""

    AUTO = "auto"  #: bf16 where the processor has it, else fp32
    FP32 = "fp32"
    BF16 = "bf16"
    INT8 = "int8"  #: documents by a quantised model that has passed its gate, queries as AUTO


POOLINGS = {pooling.value: pooling for pooling in Pooling}

_DIMENSION = re.compile(r"[1-9][0-9]{0,5}d")
_COMMIT = re.compile(r"@[0-9a-f]{40}(?=@|$)")


class ModelSpec(NamedTuple):
    """A model and what of it is wanted."""

    name: str  #: ``minilm``, a folder, or a name on the hub
    revision: str | None = None  #: a branch, a tag or a commit on the hub; None is its main branch
    pooling: Pooling | None = None  #: None is the model's own
    dimension: int | None = None  #: how many leading dimensions are kept; None is all

    def __str__(self) -> str:
        dimension = self.dimension and f"{self.dimension}d"
        parts = [self.name, self.revision, self.pooling and self.pooling.value, dimension]
        return "@".join(part for part in parts if part)


def parse_spec(spec: str) -> ModelSpec:
    """The parts of a spec; a folder may have an @ in its name.

    The last part is a dimension or a pooling if it is called like one; a branch of such a name can
    be given as its commit.

    Raises:
        EncoderError: it asks for a pooling that there is not, or for a folder's revision.
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


def with_dimension(spec: str, dimension: int) -> str:
    """The spec of a model with its leading dimensions alone.

    Raises:
        EncoderError: it is no model, or it is shortened already.
    """
    if spec.partition(":")[0] in ("hashing", "glove"):
        raise EncoderError(f"'{spec}' is no model whose vectors can be shortened")
    parsed = parse_spec(spec)
    if parsed.dimension is not None or dimension < 1:
        raise EncoderError(f"'{spec}' cannot have {dimension} dimensions")
    return str(parsed._replace(dimension=dimension))


def pinned(spec: str, commit: str | None) -> str:
    """The spec of a model on the hub, at a commit; any other spec as it is, without one."""
    return str(parse_spec(spec)._replace(revision=commit)) if commit else spec


def unpinned(spec: str) -> str:
    """A spec without its commit."""
    return _COMMIT.sub("", spec)


def _is_folder(name: str) -> bool:
    return Path(name).expanduser().is_dir()


def described_precision(description: Mapping[str, Any]) -> Precision:
    """How to load an encoder again that described itself so.

    AUTO stands for bf16: on a processor without it, fp32 is nearest.
    """
    said = description.get("precision")
    return Precision(said) if said in ("fp32", "int8") else Precision.AUTO


def computed_precision(encoder: Encoder) -> str | None:
    """In which numbers an encoder computes; None where it has no model."""
    said = encoder.description().get("precision")
    return None if said is None else str(said)
