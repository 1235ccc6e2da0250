"""Converted models on a CPU: OpenVINO, with `tokenizers` and without torch."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from semsearch.encoders.batching import Batching
from semsearch.encoders.compiled import compiled_model, keep_compiled
from semsearch.encoders.precision import Precision
from semsearch.encoders.text_model import Features, ModelFacts, TextModel
from semsearch.protocols import Matrix

if TYPE_CHECKING:
    from tokenizers import Tokenizer

#: What OpenVINO calls the precisions.
NUMBER_TYPES = {Precision.FP32: "f32", Precision.BF16: "bf16"}

#: Few texts have all cores; of many batches, each core has its own. Attention as one fused kernel
#: (OpenVINO's "snippets") is faster for the former and slower for the latter.
ONE_BY_ONE = {"PERFORMANCE_HINT": "LATENCY"}
SIDE_BY_SIDE = {"PERFORMANCE_HINT": "THROUGHPUT", "SNIPPETS_MODE": "DISABLE"}


class Converted(NamedTuple):
    """A converted model in the cache."""

    folder: Path
    facts: ModelFacts

    def text_model(self, precision: Precision) -> TextModel:
        """The model, ready to read texts.

        Args:
            precision: FP32 or BF16; a quantised model computes the rest of its layers so.
        """
        return TextModel(self.facts, self._tokenizer, OpenVINORuntime(self.folder, precision))

    def _tokenizer(self) -> Tokenizer:
        from tokenizers import Tokenizer

        return Tokenizer.from_file(str(self.folder / "tokenizer.json"))


class OpenVINORuntime:
    """Runs a converted model; batches side by side while the next texts are tokenised.

    Args:
        folder: where the model is.
        precision: FP32 or BF16.
    """

    #: OpenVINO prepares itself for each shape that it meets, and that costs more than a little
    #: padding.
    batching = Batching(1024, 250_000, few_step=8, step=4, exact_length=32)

    def __init__(self, folder: Path, precision: Precision) -> None:
        self._folder = folder
        self._number_type = NUMBER_TYPES[precision]

    @property
    def at_once(self) -> int:
        """How many batches it runs side by side."""
        return len(self._side_by_side) // 2

    def run(self, batches: Iterator[Features]) -> Iterator[Matrix]:
        """What the model says of each batch, in their order: shape (texts, dimension)."""
        # No AsyncInferQueue: a model that is dropped right behind its callbacks waits for threads
        # of OpenVINO, which wait for Python's lock, for ever (2026.4).
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
        """What the model says of one batch, as fast as can be: shape (texts, dimension)."""
        found: Matrix = self._one_by_one.infer(features)[0]
        return found

    def keep_compiled(self) -> None:
        """Spare whoever uses the model after this the time that compiling it takes."""
        for options in (ONE_BY_ONE, SIDE_BY_SIDE):
            keep_compiled(self._folder, self._with_number_type(options))

    @cached_property
    def _one_by_one(self) -> Any:
        """A request that has all cores to itself."""
        return self._compiled(ONE_BY_ONE).create_infer_request()

    @cached_property
    def _side_by_side(self) -> list[Any]:
        """Requests that run at once, each on a part of the cores, and some to follow them."""
        model = self._compiled(SIDE_BY_SIDE)
        streams = int(model.get_property("OPTIMAL_NUMBER_OF_INFER_REQUESTS"))
        return [model.create_infer_request() for _ in range(2 * streams)]

    def _compiled(self, options: dict[str, str]) -> Any:
        return compiled_model(self._folder, self._with_number_type(options))

    def _with_number_type(self, options: dict[str, str]) -> dict[str, str]:
        return {"INFERENCE_PRECISION_HINT": self._number_type, **options}


def _result(request: Any) -> Matrix:
    """What a request has found; its memory is used again by the next one that it runs."""
    request.wait()
    found: Matrix = request.get_output_tensor().data
    return found
