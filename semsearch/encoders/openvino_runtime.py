"""Converted models on a CPU: OpenVINO, with `tokenizers` and without torch."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from enum import Enum
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy
from numpy.typing import NDArray

from semsearch.encoders.openvino_library import import_openvino
from semsearch.protocols import Matrix, TokenSpans

if TYPE_CHECKING:
    from tokenizers import Tokenizer

__all__ = ["Converted", "OpenVINORuntime", "Precision"]

#: How many tokens, padding included, go through the model at once.
BATCH_TOKENS = 1024
#: How many texts are tokenised and sorted by length at once.
WINDOW_TEXTS = 4096
#: Up to so many texts, one after another with all cores is faster than side by side.
FEW_TEXTS = 4

Ids = NDArray[numpy.int64]


class Precision(Enum):
    """In which numbers a model computes."""

    FP32 = "f32"
    BF16 = "bf16"


class Converted(NamedTuple):
    """A converted model in the cache, and what must be known to use it."""

    folder: Path
    dimension: int
    max_tokens: int
    inputs: list[str]
    pad_id: int
    prompts: dict[str, str]
    modules: list[str]


class OpenVINORuntime:
    """Runs a converted model.

    Texts are sorted by length and batched by tokens, so that little is computed for padding; the
    batches are run side by side while the next texts are tokenised.
    """

    def __init__(self, converted: Converted, precision: Precision) -> None:
        self._converted = converted
        self._precision = precision
        self._lock = Lock()  # a request serves one thread at a time

    def encode(self, texts: Sequence[str], prompt: str = "") -> Matrix:
        """Unit vectors of texts, shape (len(texts), dimension), in their order."""
        matrix = numpy.empty((len(texts), self._converted.dimension), numpy.float32)
        with self._lock:
            if len(texts) <= FEW_TEXTS:
                for row, text in enumerate(texts):
                    features = self._features([self._tokenizer.encode(prompt + text).ids])
                    matrix[row] = self._one_by_one.infer(features)[0]
            else:
                self._encode_side_by_side(texts, prompt, matrix)
        return matrix

    def _encode_side_by_side(self, texts: Sequence[str], prompt: str, matrix: Matrix) -> None:
        # No AsyncInferQueue: a model that is dropped right behind its callbacks waits for threads
        # of OpenVINO, which wait for Python's lock, for ever (2026.4).
        running: deque[tuple[Any, Ids]] = deque()
        idle = list(self._side_by_side)

        def finish_oldest() -> None:
            request, rows = running.popleft()
            request.wait()
            matrix[rows] = request.get_output_tensor().data
            idle.append(request)

        for start in range(0, len(texts), WINDOW_TEXTS):
            window = [prompt + text for text in texts[start : start + WINDOW_TEXTS]]
            token_ids = [encoded.ids for encoded in self._tokenizer.encode_batch_fast(window)]
            for rows in _batches(token_ids):
                if not idle:
                    finish_oldest()
                request = idle.pop()
                request.start_async(self._features([token_ids[row] for row in rows]))
                running.append((request, start + rows))
        while running:
            finish_oldest()

    def token_spans(self, text: str) -> TokenSpans:
        """Character ranges of a text's tokens, shape (n, 2), special tokens left out."""
        offsets = self._whole_text_tokenizer.encode(text, add_special_tokens=False).offsets
        return numpy.array(offsets, numpy.int64).reshape(-1, 2)

    def _features(self, token_ids: Sequence[list[int]]) -> dict[str, Ids]:
        """The model's inputs for some texts, each of shape (texts, tokens of the longest)."""
        lengths = numpy.array([len(ids) for ids in token_ids])
        mask = numpy.arange(lengths.max()) < lengths[:, None]
        ids = numpy.full(mask.shape, self._converted.pad_id, numpy.int64)
        ids[mask] = numpy.concatenate(token_ids)
        features = {
            "input_ids": ids,
            "attention_mask": mask.astype(numpy.int64),
            "token_type_ids": numpy.zeros_like(ids),
        }
        return {name: features[name] for name in self._converted.inputs}

    @cached_property
    def _one_by_one(self) -> Any:
        """A request that has all cores to itself."""
        return self._compiled("LATENCY").create_infer_request()

    @cached_property
    def _side_by_side(self) -> list[Any]:
        """Requests that run at once, each on a part of the cores, and some to follow them."""
        model = self._compiled("THROUGHPUT")
        streams = int(model.get_property("OPTIMAL_NUMBER_OF_INFER_REQUESTS"))
        return [model.create_infer_request() for _ in range(2 * streams)]

    def _compiled(self, hint: str) -> Any:
        options = {"INFERENCE_PRECISION_HINT": self._precision.value, "PERFORMANCE_HINT": hint}
        core = import_openvino().Core()
        return core.compile_model(str(self._converted.folder / "model.xml"), "CPU", options)

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        from tokenizers import Tokenizer

        return Tokenizer.from_file(str(self._converted.folder / "tokenizer.json"))

    @cached_property
    def _whole_text_tokenizer(self) -> Tokenizer:
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_str(self._tokenizer.to_str())
        tokenizer.no_truncation()
        return tokenizer


def _batches(token_ids: Sequence[list[int]]) -> Iterator[Ids]:
    """The places of texts of like length, long ones first, some at a time."""
    lengths = numpy.array([len(ids) for ids in token_ids])
    order = numpy.argsort(-lengths, kind="stable")
    start = 0
    while start < len(order):
        size = max(1, BATCH_TOKENS // int(lengths[order[start]]))
        yield order[start : start + size]
        start += size
