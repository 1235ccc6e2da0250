"""OpenVINO on a CPU: runs converted models with `tokenizers` and without torch.

Compiled models are stored beside the converted ones, because compiling takes longer than a query,
and reading a compiled model a third of that. The weights are not stored twice.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from semsearch.encoders.specs import Precision
from semsearch.encoders.text_model import Batching, Features, ModelFacts, TextModel
from semsearch.errors import EncoderError
from semsearch.protocols import Matrix

if TYPE_CHECKING:
    from tokenizers import Tokenizer

CONVERTER = "openvino.tools.ovc"


def import_openvino() -> Any:
    """The module `openvino`.

    Telemetry is disabled, by making the package `openvino_telemetry` unavailable. The converter,
    a third of the import time, is left out; `import_converter` imports it.
    """
    if "openvino" not in sys.modules:
        sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type]
        sys.modules[CONVERTER] = None  # type: ignore[assignment]
        try:
            import openvino
        except ImportError as error:
            if isinstance(error.__cause__, KeyboardInterrupt):  # pybind11 wraps it
                raise error.__cause__ from None
            raise
        finally:
            del sys.modules[CONVERTER]
    import openvino

    return openvino


def import_converter() -> Any:
    """OpenVINO's module for the conversion of models."""
    import_openvino()
    return import_module(CONVERTER)


@cache
def openvino_core() -> Any:
    """OpenVINO's core, created once."""
    return import_openvino().Core()


DEVICE = "CPU"

#: Compiled models refer to the original weights.
WITHOUT_WEIGHTS = {"CACHE_MODE": "OPTIMIZE_SIZE"}


def compiled_model(folder: Path, options: Mapping[str, str]) -> Any:
    """A compiled model.

    It is read if `keep_compiled` stored it, and compiled otherwise, or if OpenVINO rejects it
    because it was compiled for another processor or by another version.

    Args:
        folder: the folder of the converted model.
        options: OpenVINO's options for running it.
    """
    with suppress(OSError, RuntimeError):
        compiled = _file(folder, options).read_bytes()
        weights = {"WEIGHTS_PATH": str(folder / "model.bin")}
        return openvino_core().import_model(
            compiled, DEVICE, {**options, **WITHOUT_WEIGHTS, **weights}
        )
    return openvino_core().compile_model(str(folder / "model.xml"), DEVICE, dict(options))


def keep_compiled(folder: Path, options: Mapping[str, str]) -> None:
    """Compile a model and store the result beside it, for `compiled_model` with these options."""
    model = openvino_core().compile_model(
        str(folder / "model.xml"), DEVICE, {**options, **WITHOUT_WEIGHTS}
    )
    _file(folder, options).write_bytes(model.export_model().getvalue())


def _file(folder: Path, options: Mapping[str, str]) -> Path:
    return folder / f"{'-'.join(options.values())}.blob"


#: OpenVINO's names of precisions.
NUMBER_TYPES = {Precision.FP32: "f32", Precision.BF16: "bf16"}

#: Few texts use all cores together; with many batches, each core runs one. Fused attention kernels
#: (OpenVINO's "snippets") are faster for the former and slower for the latter.
ONE_BY_ONE = {"PERFORMANCE_HINT": "LATENCY"}
SIDE_BY_SIDE = {"PERFORMANCE_HINT": "THROUGHPUT", "SNIPPETS_MODE": "DISABLE"}


class Converted(NamedTuple):
    """A converted model in the cache."""

    folder: Path
    facts: ModelFacts

    def text_model(self, precision: Precision) -> TextModel:
        """The model, ready to read texts.

        Args:
            precision: FP32 or BF16; in a quantised model, that of the other layers.
        """
        return TextModel(self.facts, self._tokenizer, OpenVINORuntime(self.folder, precision))

    def _tokenizer(self) -> Tokenizer:
        from tokenizers import Tokenizer

        return Tokenizer.from_file(str(self.folder / "tokenizer.json"))


class OpenVINORuntime:
    """Runs a converted model on batches in parallel, while the next texts are tokenised.

    Args:
        folder: the folder of the converted model.
        precision: FP32 or BF16.
    """

    #: OpenVINO prepares kernels for each new shape, which costs more than a little padding.
    batching = Batching(1024, 250_000, few_step=8, step=4, exact_length=32)

    def __init__(self, folder: Path, precision: Precision) -> None:
        self._folder = folder
        self._number_type = NUMBER_TYPES[precision]
        # By process: a forked one inherits requests, but not the threads that run them. Its
        # parent's stay here, because freeing them could wait for these threads.
        self._alone: dict[int, Any] = {}
        self._parallel: dict[int, list[Any]] = {}

    @property
    def at_once(self) -> int:
        """The number of batches run in parallel."""
        return len(self._side_by_side) // 2

    def run(self, batches: Iterator[Features]) -> Iterator[Matrix]:
        """The output for each batch, in order: shape (texts, dimension)."""
        # No AsyncInferQueue: deleting a model right after its callbacks deadlocks between threads
        # of OpenVINO and Python's global lock (2026.4).
        running: deque[Any] = deque()
        idle = list(self._side_by_side)
        for features in batches:
            if not idle:
                yield _result(running[0])
                idle.append(running.popleft())
            running.append(idle.pop())
            running[-1].start_async(features)
        while running:
            yield _result(running.popleft())

    def run_alone(self, features: Features) -> Matrix:
        """The output for one batch, on all cores: shape (texts, dimension)."""
        found: Matrix = self._one_by_one.infer(features)[0]
        return found

    def keep_compiled(self) -> None:
        """Store the compiled model, so that later uses need not compile it."""
        for options in (ONE_BY_ONE, SIDE_BY_SIDE):
            keep_compiled(self._folder, self._with_number_type(options))

    @property
    def _one_by_one(self) -> Any:
        """A request that uses all cores."""
        process = os.getpid()
        if process not in self._alone:
            self._alone[process] = self._compiled(ONE_BY_ONE).create_infer_request()
        return self._alone[process]

    @property
    def _side_by_side(self) -> list[Any]:
        """Requests that run in parallel on parts of the cores, and as many to queue."""
        process = os.getpid()
        if process not in self._parallel:
            model = self._compiled(SIDE_BY_SIDE)
            streams = int(model.get_property("OPTIMAL_NUMBER_OF_INFER_REQUESTS"))
            self._parallel[process] = [model.create_infer_request() for _ in range(2 * streams)]
        return self._parallel[process]

    def _compiled(self, options: dict[str, str]) -> Any:
        return compiled_model(self._folder, self._with_number_type(options))

    def _with_number_type(self, options: dict[str, str]) -> dict[str, str]:
        return {"INFERENCE_PRECISION_HINT": self._number_type, **options}


def _result(request: Any) -> Matrix:
    """The result of a request, whose memory is reused by the next run."""
    request.wait()
    found: Matrix = request.get_output_tensor().data
    return found


def float_precision(precision: Precision) -> Precision:
    """The floating-point precision for a requested precision: FP32 or BF16.

    Raises:
        EncoderError: bf16 is requested, and the processor does not support it.
    """
    if precision is Precision.FP32:
        return precision
    if _has_bf16():
        return Precision.BF16
    if precision is Precision.BF16:
        raise EncoderError("this processor does not support bf16; use --precision fp32 or auto")
    return Precision.FP32


@cache
def _has_bf16() -> bool:
    return "BF16" in openvino_core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")
