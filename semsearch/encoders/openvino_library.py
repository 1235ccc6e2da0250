"""OpenVINO, imported without the telemetry that its import would send."""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

__all__ = ["import_openvino", "openvino_core"]


def import_openvino() -> Any:
    """The module `openvino`.

    Its import reports itself through `openvino_telemetry` when that package can be imported, and
    does without when it cannot. What people search in is nobody's business: it cannot.
    """
    if "openvino" not in sys.modules:
        sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type]
    import openvino

    return openvino


@cache
def openvino_core() -> Any:
    """OpenVINO's devices, found once."""
    return import_openvino().Core()
