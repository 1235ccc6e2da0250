"""OpenVINO, imported without the telemetry that its import would send."""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from typing import Any

CONVERTER = "openvino.tools.ovc"


def import_openvino() -> Any:
    """The module `openvino`.

    Its telemetry is disabled: the import reports itself through `openvino_telemetry` only where
    that package can be imported. The converter, a third of the import, is left out;
    `import_converter` imports it.
    """
    if "openvino" not in sys.modules:
        sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type]
        sys.modules[CONVERTER] = None  # type: ignore[assignment]
        try:
            import openvino
        finally:
            del sys.modules[CONVERTER]
    import openvino

    return openvino


def import_converter() -> Any:
    """The module of OpenVINO that converts models of other libraries."""
    import_openvino()
    return import_module(CONVERTER)


@cache
def openvino_core() -> Any:
    """OpenVINO's devices, found once."""
    return import_openvino().Core()
