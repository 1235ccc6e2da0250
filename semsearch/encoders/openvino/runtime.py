"""OpenVINO on a CPU: runs converted models with `tokenizers` and without torch."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Iterator
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


def float_precision(precision: Precision) -> Precision:
    """The floating-point precision for a requested precision: FP32 or BF16; INT8 is ignored.

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


#: OpenVINO's names of precisions.
NUMBER_TYPES = {Precision.FP32: "f32", Precision.BF16: "bf16"}

#: Few texts use all cores together; with many batches, each core runs one. Fused attention kernels
#: (OpenVINO's "snippets") are faster for the former and slower for the latter.
ALONE = "LATENCY"
PARALLEL = "THROUGHPUT"
OPTIONS = {ALONE: {}, PARALLEL: {"SNIPPETS_MODE": "DISABLE"}}


#: The folder in which OpenVINO caches compiled models.
COMPILED = "compiled"


class OpenVINORuntime:
    """Runs a converted model on batches in parallel, while the next texts are tokenised.

    OpenVINO caches compiled models beside the converted one, because compiling takes longer than a
    query, and reading a compiled model a third of that. The weights are not stored twice.

    Args:
        folder: the folder of the converted model.
        precision: FP32 or BF16.
    """

    #: OpenVINO prepares kernels for each new shape, which costs more than a little padding.
    batching = Batching(1024, 250_000, step=4, exact_length=32)

    def __init__(self, folder: Path, precision: Precision) -> None:
        self._folder = folder
        self._options = {
            "INFERENCE_PRECISION_HINT": NUMBER_TYPES[precision],
            "CACHE_DIR": str(folder / COMPILED),
            "CACHE_MODE": "OPTIMIZE_SIZE",  # without weights
        }
        # By process: a forked one inherits requests, but not the threads that run them. Its
        # parent's stay here, because freeing them could wait for these threads.
        self._requests: dict[tuple[int, str], list[Any]] = {}

    @property
    def at_once(self) -> int:
        """The number of batches run in parallel."""
        return len(self._requests_for(PARALLEL)) // 2

    def run(self, batches: Iterator[Features]) -> Iterator[Matrix]:
        """The output for each batch, in order: shape (texts, dimension)."""
        # No AsyncInferQueue: deleting a model right after its callbacks deadlocks between threads
        # of OpenVINO and Python's global lock (2026.4).
        running: deque[Any] = deque()
        idle = list(self._requests_for(PARALLEL))
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
        (request,) = self._requests_for(ALONE)
        rows: Matrix = request.infer(features)[0]
        return rows

    def _requests_for(self, hint: str) -> list[Any]:
        """One request that uses all cores, or those in parallel, and as many to queue."""
        key = os.getpid(), hint
        if key not in self._requests:
            options = {**self._options, "PERFORMANCE_HINT": hint, **OPTIONS[hint]}
            model = openvino_core().compile_model(str(self._folder / "model.xml"), "CPU", options)
            streams = int(model.get_property("OPTIMAL_NUMBER_OF_INFER_REQUESTS"))
            count = 1 if hint == ALONE else 2 * streams
            self._requests[key] = [model.create_infer_request() for _ in range(count)]
        return self._requests[key]


def _result(request: Any) -> Matrix:
    """The result of a request, whose memory is reused by the next run."""
    request.wait()
    rows: Matrix = request.get_output_tensor().data
    return rows
