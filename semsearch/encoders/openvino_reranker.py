"""A cross-encoder on a plain CPU: converted once, then run without torch."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy

from semsearch.arguments import check_pairs, check_texts
from semsearch.encoders.conversion import (
    PROBE,
    NotConvertibleError,
    cached_conversion,
    save_converted,
)
from semsearch.encoders.cross_encoder import CROSS_ENCODER_PREFIX, TorchReranker
from semsearch.encoders.model_folder import ModelFolder
from semsearch.encoders.openvino_runtime import Converted, OpenVINORuntime
from semsearch.encoders.precision import Precision, float_precision
from semsearch.errors import EncoderError
from semsearch.protocols import Scores

#: How much a score may differ between the two runtimes, both in fp32: of itself, and at all.
TOLERANCE = 1e-3


class OpenVINOReranker:
    """A cross-encoder that OpenVINO runs, in bf16 where the processor has it.

    Raises:
        EncoderError: the processor is not fit for that precision.
    """

    def __init__(
        self, folder: ModelFolder, converted: Converted, precision: Precision = Precision.AUTO
    ) -> None:
        if precision is Precision.INT8:
            raise EncoderError("a cross-encoder has no int8 here; use fp32 or bf16")
        self.spec = CROSS_ENCODER_PREFIX + folder.spec
        floats = float_precision(precision)
        self.precision = floats.value
        self._runtime = OpenVINORuntime(converted, floats)

    def score(self, query: str, passages: Sequence[str]) -> Scores:
        """How well each passage answers, higher is better, shape (len(passages),)."""
        return self.score_pairs([(query, passage) for passage in check_texts("passages", passages)])

    def score_pairs(self, pairs: Sequence[tuple[str, str]]) -> Scores:
        """One score a pair, higher is better, shape (len(pairs),)."""
        return self._runtime.run(check_pairs("pairs", pairs))[:, 0]


def converted_reranker(folder: ModelFolder) -> Converted:
    """The cross-encoder, with its activation, converted now if it has not been before.

    Raises:
        NotConvertibleError: it is not BERT-like, its scores would be other ones, or its
            conversion failed.
    """
    return cached_conversion("reranker", folder, folder.fingerprint(), _convert)


def _convert(folder: ModelFolder, draft: Path) -> None:
    reranker = TorchReranker(folder, device="cpu", attention="eager")
    model = reranker.model
    converted = save_converted(
        model,
        lambda features: model.activation_fn(features["scores"]).reshape(-1, 1),
        draft,
        pairs=True,
        dimension=1,
        prompts={},
    )
    pairs = list(product(PROBE, PROBE))
    scores = OpenVINORuntime(converted, Precision.FP32).run(pairs)[:, 0]
    expected = reranker.score_pairs(pairs)
    if not numpy.allclose(scores, expected, rtol=TOLERANCE, atol=TOLERANCE):
        worst = float(numpy.abs(scores - expected).max())
        raise NotConvertibleError(f"its scores would change (by {worst:.4f})")
