"""Models with their tokenizers, on any runtime: texts in, one row of numbers per text out.

Texts are sorted by length and batched by tokens, so that little is computed for padding. A runtime
(OpenVINO, torch) computes the rows of a batch. `base.BiEncoder` adds prompts and limits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

import numpy
from numpy.typing import NDArray

from semsearch.protocols import Matrix, TokenSpans

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer


Ids = NDArray[numpy.int64]

#: The input of a model: a text or, for a cross-encoder, a pair.
Text: TypeAlias = str | tuple[str, str]


class Batching(NamedTuple):
    """The batching that suits a runtime."""

    tokens: int  #: tokens per batch, padding included
    window_characters: int  #: characters tokenised, and sorted by length, at once
    least_fill: float = 0.0  #: the minimum length of a batch's texts, as a share of the longest
    #: Texts longer than `exact_length` are padded to a multiple of `step`, for runtimes that
    #: prepare kernels for each new shape.
    step: int = 1
    exact_length: int = 0


def windows(texts: Sequence[Text], characters: int) -> Iterator[tuple[int, Sequence[Text]]]:
    """Split texts into windows of about equal size, near this number of characters.

    Yields:
        The start of each window, and its texts.
    """
    lengths = [len(text) if isinstance(text, str) else sum(map(len, text)) for text in texts]
    runs = max(1, round(sum(lengths) / characters))
    share = max(1, sum(lengths) / runs)
    start = held = 0
    for end, length in enumerate(lengths, 1):
        held += length
        if held >= share or end == len(lengths):
            yield start, texts[start:end]
            start, held = end, 0


def batches(
    token_ids: Sequence[list[int]],
    tokens: int,
    *,
    at_once: int = 1,
    length_of: Callable[[int], int] = lambda longest: longest,
    least_fill: float = 0.0,
) -> Iterator[tuple[Ids, int]]:
    """Batches of texts with similar lengths, long ones first.

    Args:
        token_ids: the texts.
        tokens: the maximum number of tokens per batch, padding included.
        at_once: the number of batches computed in parallel; texts that would fill fewer batches
            are distributed over this number.
        length_of: the padded length of a batch, given the length of its longest text.
        least_fill: the minimum length of a batch's texts, as a share of the longest.

    Yields:
        The positions of the texts in `token_ids`, and the length to pad them to.
    """
    lengths = numpy.array([len(ids) for ids in token_ids])
    order = numpy.argsort(-lengths, kind="stable")
    falling = -lengths[order]
    sums = numpy.cumsum(lengths[order])  # of tokens, including each text
    start = before = 0
    while start < len(order):
        length = max(1, length_of(-int(falling[start])))  # texts without tokens are padded
        filled = int(numpy.searchsorted(falling, -least_fill * length, side="right"))
        share = (int(sums[-1]) - before) / max(1, at_once)  # of the remaining tokens
        shared = int(numpy.searchsorted(sums, before + share, side="right"))
        end = max(start + 1, min(start + tokens // length, filled, shared))
        yield order[start:end], length
        start, before, at_once = end, int(sums[end - 1]), at_once - 1


def padded(token_ids: Sequence[list[int]], length: int, pad_id: int) -> tuple[Ids, Ids]:
    """The padded ids and the attention mask of texts, each of shape (texts, length)."""
    lengths = numpy.array([len(ids) for ids in token_ids])
    mask = numpy.arange(length) < lengths[:, None]
    ids = numpy.full(mask.shape, pad_id, numpy.int64)
    ids[mask] = numpy.concatenate(token_ids)
    return ids, mask.astype(numpy.int64)


#: A model's inputs by name, each of shape (texts, tokens).
Features: TypeAlias = dict[str, Ids]

#: The possible inputs of a model.
INPUTS = ("input_ids", "attention_mask", "token_type_ids")

#: Up to this number of texts, batches on all cores are faster than parallel batches.
FEW_TEXTS = 4
#: The minimum length of their texts, as a share of the longest in the batch.
FEW_LEAST_FILL = 0.5


class ModelFacts(NamedTuple):
    """The properties of a model that are needed to use it, on any runtime."""

    dimension: int  #: of its rows
    max_tokens: int  #: the maximum number of tokens, without special tokens
    inputs: list[str]  #: those of `INPUTS` that it takes
    pad_id: int
    prompts: dict[str, str]
    modules: list[str]


class Runtime(Protocol):
    """Runs one model."""

    @property
    def batching(self) -> Batching:
        """The batching that suits it."""

    @property
    def at_once(self) -> int:
        """The number of batches run in parallel."""

    def run(self, batches: Iterator[Features]) -> Iterator[Matrix]:
        """The output for each batch, in order: shape (texts, dimension)."""

    def run_alone(self, features: Features) -> Matrix:
        """The output for one batch, with all resources: shape (texts, dimension)."""


class TextModel:
    """Tokenises and batches texts, or pairs of texts, for a model.

    It is thread-safe; one thread at a time is served.

    Args:
        facts: the properties of the model.
        load_tokenizer: loads the tokenizer, which truncates texts to the model's length.
        runtime: runs the model.
    """

    def __init__(
        self, facts: ModelFacts, load_tokenizer: Callable[[], Tokenizer], runtime: Runtime
    ) -> None:
        self.facts = facts
        self._load_tokenizer = load_tokenizer
        self._runtime = runtime
        self._lock = Lock()

    def encode(self, texts: Sequence[str], prompt: str = "") -> Matrix:
        """The rows of texts with a prompt, shape (len(texts), dimension), in order."""
        return self.run([prompt + text for text in texts] if prompt else texts)

    def run(self, texts: Sequence[Text]) -> Matrix:
        """The rows of texts, shape (len(texts), dimension), in order."""
        with self._lock:
            return self._run_few(texts) if len(texts) <= FEW_TEXTS else self._run_batches(texts)

    def features(self, text: Text) -> Features:
        """The model's inputs for one text, each of shape (1, tokens)."""
        encoding = self._encoding(text)
        return self._features([encoding], len(encoding.ids))

    def token_spans(self, text: str) -> TokenSpans:
        """Character ranges of a text's tokens, shape (n, 2), without special tokens."""
        tokens = self._tokenizer.encode(text)  # truncated tokens are in `overflowing`
        spans = numpy.concatenate([_spans(part) for part in (tokens, *tokens.overflowing)])
        # A model may cut texts at the beginning.
        return spans[spans[:, 0].argsort(kind="stable")] if tokens.overflowing else spans

    def _run_few(self, texts: Sequence[Text]) -> Matrix:
        matrix = self._empty(len(texts))
        batching = self._runtime.batching
        encodings = [self._encoding(text) for text in texts]
        found = batches(
            [encoding.ids for encoding in encodings],
            batching.tokens,
            length_of=self._padded_length,
            least_fill=FEW_LEAST_FILL,
        )
        for rows, length in found:
            features = self._features([encodings[row] for row in rows], length)
            matrix[rows] = self._runtime.run_alone(features)
        return matrix

    def _run_batches(self, texts: Sequence[Text]) -> Matrix:
        matrix = self._empty(len(texts))
        places: deque[Ids] = deque()
        batching = self._runtime.batching

        def all_features() -> Iterator[Features]:
            for start, window in windows(texts, batching.window_characters):
                encodings = self._tokenizer.encode_batch_fast(window)
                token_ids = [encoding.ids for encoding in encodings]
                found = batches(
                    token_ids,
                    batching.tokens,
                    at_once=self._runtime.at_once,
                    length_of=self._padded_length,
                    least_fill=batching.least_fill,
                )
                for rows, length in found:
                    places.append(start + rows)
                    yield self._features([encodings[row] for row in rows], length)

        for rows in self._runtime.run(all_features()):
            matrix[places.popleft()] = rows
        return matrix

    def _empty(self, rows: int) -> Matrix:
        return numpy.empty((rows, self.facts.dimension), numpy.float32)

    def _encoding(self, text: Text) -> Encoding:
        sequences = (text,) if isinstance(text, str) else text
        return self._tokenizer.encode(*sequences)

    def _features(self, encodings: Sequence[Encoding], length: int) -> Features:
        """The model's inputs for texts, each of shape (texts, length)."""
        ids, mask = padded([one.ids for one in encodings], length, self.facts.pad_id)
        types = numpy.zeros_like(ids)
        if encodings[0].n_sequences > 1:
            types, _ = padded([one.type_ids for one in encodings], length, 0)
        features = dict(zip(INPUTS, (ids, mask, types), strict=True))
        return {name: features[name] for name in self.facts.inputs}

    def _padded_length(self, length: int) -> int:
        batching = self._runtime.batching
        if length <= batching.exact_length:
            return length
        return min(length + -length % batching.step, int(self._tokenizer.truncation["max_length"]))

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        return self._load_tokenizer()


def _spans(encoding: Encoding) -> TokenSpans:
    """The character ranges of an encoding's tokens, without special tokens."""
    spans: TokenSpans = numpy.array(encoding.offsets, numpy.int64).reshape(-1, 2)
    special = numpy.array(encoding.special_tokens_mask, bool)
    return spans.compress(~special, axis=0)
