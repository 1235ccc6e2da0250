"""Models as OpenVINO has compiled them, kept beside what they were compiled from.

To compile a model takes longer than a query does; to read a compiled one takes a third of that.
The weights are not kept a second time.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from semsearch.encoders.openvino_library import openvino_core

DEVICE = "CPU"

#: Leaves the weights where they are.
WITHOUT_WEIGHTS = {"CACHE_MODE": "OPTIMIZE_SIZE"}


def compiled_model(folder: Path, options: Mapping[str, str]) -> Any:
    """A model, ready to run.

    One that `keep_compiled` has left is read. It is compiled when there is none, or when it came
    about on another kind of processor or with another OpenVINO, which OpenVINO finds out.

    Args:
        folder: where the model is.
        options: OpenVINO's options for its use.
    """
    with suppress(OSError, RuntimeError):
        compiled = _file(folder, options).read_bytes()
        weights = {"WEIGHTS_PATH": str(folder / "model.bin")}
        return openvino_core().import_model(
            compiled, DEVICE, {**options, **WITHOUT_WEIGHTS, **weights}
        )
    return openvino_core().compile_model(str(folder / "model.xml"), DEVICE, dict(options))


def keep_compiled(folder: Path, options: Mapping[str, str]) -> None:
    """Compile a model and leave the result beside it, for `compiled_model` with these options."""
    model = openvino_core().compile_model(
        str(folder / "model.xml"), DEVICE, {**options, **WITHOUT_WEIGHTS}
    )
    _file(folder, options).write_bytes(model.export_model().getvalue())


def _file(folder: Path, options: Mapping[str, str]) -> Path:
    return folder / f"{'-'.join(options.values())}.blob"
