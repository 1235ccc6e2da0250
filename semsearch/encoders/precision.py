"""In which numbers a model computes on a CPU."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from functools import cache
from typing import Any

from semsearch.encoders.openvino_library import openvino_core
from semsearch.errors import PrecisionError
from semsearch.protocols import Encoder


class Precision(Enum):
    """The choices; what each costs in quality is measured, not promised (see the README)."""

    AUTO = "auto"  #: bf16 where the processor has it, else fp32
    FP32 = "fp32"
    BF16 = "bf16"
    INT8 = "int8"  #: documents by a quantised model that has passed its gate, queries as AUTO


def float_precision(precision: Precision) -> Precision:
    """FP32 or BF16: what `precision` comes to where nothing is quantised.

    Raises:
        EncoderError: bf16 is asked for, and the processor computes it no faster than fp32.
    """
    if precision is Precision.FP32:
        return precision
    if _has_bf16():
        return Precision.BF16
    if precision is Precision.BF16:
        raise PrecisionError("this processor has no bf16; use --precision fp32 or auto")
    return Precision.FP32


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


@cache
def _has_bf16() -> bool:
    return "BF16" in openvino_core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")
