"""Cross-encoders: a query and a passage, or two sentences, read together."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy

from semsearch.arguments import check_pairs, check_texts
from semsearch.encoders.model_files import model_modules
from semsearch.encoders.model_folder import ModelFolder
from semsearch.encoders.torch_runtime import TORCH_PRECISIONS, loading
from semsearch.errors import EncoderError
from semsearch.protocols import Scores

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder

CROSS_ENCODER_PREFIX = "cross-encoder:"


class TorchReranker:
    """A cross-encoder with one output, on torch. Its weights are loaded at the first use."""

    def __init__(
        self, folder: ModelFolder, device: str | None = None, attention: str | None = None
    ) -> None:
        self._folder = folder
        self._device = device
        self._attention = attention  # of transformers' implementations; None leaves it to them

    @property
    def spec(self) -> str:
        """What loads it again."""
        return CROSS_ENCODER_PREFIX + self._folder.spec

    def score(self, query: str, passages: Sequence[str]) -> Scores:
        """How well each passage answers, higher is better, shape (len(passages),)."""
        return self.score_pairs([(query, passage) for passage in check_texts("passages", passages)])

    @property
    def precision(self) -> str:
        """That of its weights."""
        return TORCH_PRECISIONS[str(self.model.dtype)]

    def score_pairs(self, pairs: Sequence[tuple[str, str]]) -> Scores:
        """One score a pair, higher is better, shape (len(pairs),)."""
        pairs = check_pairs("pairs", pairs)
        if not pairs:
            return numpy.empty(0, numpy.float32)
        scores = self.model.predict(pairs, show_progress_bar=False)
        return numpy.asarray(scores, numpy.float32).reshape(len(pairs))

    @cached_property
    def model(self) -> CrossEncoder:
        """The model itself, loaded."""
        from sentence_transformers import CrossEncoder

        with loading(self._folder.spec):
            model = CrossEncoder(
                str(self._folder.path),
                device=self._device,
                trust_remote_code=False,
                local_files_only=True,
                model_kwargs={"use_safetensors": True, "attn_implementation": self._attention},
            )
        return model.eval()


def check_head(folder: ModelFolder) -> None:
    """Refuse a model without a trained head: transformers would make its weights up.

    Raises:
        EncoderError: it is no cross-encoder, or gives several scores a pair.
    """
    try:
        config = json.loads((folder.path / "config.json").read_text("utf-8"))
        architectures = [str(name) for name in config.get("architectures") or ()]
        labels = len(config.get("id2label") or "01")  # transformers leaves out two, its default
    except (OSError, ValueError, TypeError, AttributeError):
        raise EncoderError(f"model '{folder.spec}': its config.json cannot be read") from None
    is_classifier = any(name.endswith("ForSequenceClassification") for name in architectures)
    modules = [module.type for module in model_modules(folder.path)]
    if not is_classifier and not any(".cross_encoder." in module for module in modules):
        raise EncoderError(
            f"model '{folder.spec}' is no cross-encoder: it has no trained head that scores pairs "
            "(semsearch train cross-encoder makes one)"
        )
    if is_classifier and labels > 1:
        raise EncoderError(
            f"model '{folder.spec}' gives {labels} values a pair, and not one score to rank by"
        )
