"""A model with its tokenizer: texts in, a row of numbers a text out, on any runtime.

Texts are sorted by length and batched by tokens, so that little is computed for padding. A runtime
(OpenVINO, torch) does the rest: features in, rows out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

import numpy

from semsearch.encoders.batching import Batching, Ids, Text, batches, padded, windows
from semsearch.errors import EncoderError, first_line
from semsearch.protocols import Matrix, TokenSpans

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

#: A model's inputs by name, each of shape (texts, tokens).
Features: TypeAlias = dict[str, Ids]

#: What a model may read of a text.
INPUTS = ("input_ids", "attention_mask", "token_type_ids")

#: Up to so many texts, those of like length at once with all cores are faster than side by side.
FEW_TEXTS = 4
#: How short the shortest of these may be, as a part of the longest.
FEW_LEAST_FILL = 0.5


class ModelFacts(NamedTuple):
    """What must be known of a model to use it, whatever runs it."""

    dimension: int  #: width of its rows
    max_tokens: int  #: how many tokens it reads, special ones not counted
    inputs: list[str]  #: the ones of `INPUTS` that it takes
    pad_id: int
    prompts: dict[str, str]
    modules: list[str]


class Runtime(Protocol):
    """Runs one model."""

    @property
    def batching(self) -> Batching:
        """The batches that suit it."""

    @property
    def at_once(self) -> int:
        """How many batches it runs side by side."""

    def run(self, batches: Iterator[Features]) -> Iterator[Matrix]:
        """What the model says of each batch, in their order: shape (texts, dimension)."""

    def run_alone(self, features: Features) -> Matrix:
        """What the model says of one batch, as fast as can be: shape (texts, dimension)."""


@contextmanager
def running(spec: str) -> Iterator[None]:
    """Whatever a runtime raises while it runs a model, as an error of ours."""
    try:
        yield
    except RuntimeError as error:  # of torch and OpenVINO, a lack of memory included
        raise EncoderError(f"model '{spec}' fails: {first_line(error)}") from error


class TextModel:
    """Tokenises and batches texts, or pairs of texts, for a model.

    Several threads may use it; one at a time is served.

    Args:
        facts: about the model.
        load_tokenizer: the model's own, which cuts off what the model does not read.
        runtime: what runs the model.
    """

    def __init__(
        self, facts: ModelFacts, load_tokenizer: Callable[[], Tokenizer], runtime: Runtime
    ) -> None:
        self.facts = facts
        self._load_tokenizer = load_tokenizer
        self._runtime = runtime
        self._lock = Lock()

    def encode(self, texts: Sequence[str], prompt: str = "") -> Matrix:
        """The rows of texts behind a prompt, shape (len(texts), dimension), in their order."""
        return self.run([prompt + text for text in texts] if prompt else texts)

    def run(self, texts: Sequence[Text]) -> Matrix:
        """What the model says of each text, shape (len(texts), dimension), in their order."""
        with self._lock:
            return self._run_few(texts) if len(texts) <= FEW_TEXTS else self._run_batches(texts)

    def features(self, text: Text) -> Features:
        """The model's inputs for one text, each of shape (1, tokens)."""
        encoding = self._encoding(text)
        return self._features([encoding], len(encoding.ids))

    def token_spans(self, text: str) -> TokenSpans:
        """Character ranges of a text's tokens, shape (n, 2), special tokens left out."""
        tokens = self._tokenizer.encode(text)  # what the model does not read is `overflowing`
        return numpy.concatenate([_spans(part) for part in (tokens, *tokens.overflowing)])

    def _run_few(self, texts: Sequence[Text]) -> Matrix:
        matrix = self._empty(len(texts))
        batching = self._runtime.batching
        encodings = [self._encoding(text) for text in texts]
        found = batches(
            [encoding.ids for encoding in encodings],
            batching.tokens,
            length_of=lambda longest: self._stepped(longest, batching.few_step),
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
        """The model's inputs for some texts, each of shape (texts, length)."""
        ids, mask = padded([one.ids for one in encodings], length, self.facts.pad_id)
        types = numpy.zeros_like(ids)
        if encodings[0].n_sequences > 1:
            types, _ = padded([one.type_ids for one in encodings], length, 0)
        features = dict(zip(INPUTS, (ids, mask, types), strict=True))
        return {name: features[name] for name in self.facts.inputs}

    def _padded_length(self, length: int) -> int:
        batching = self._runtime.batching
        return self._stepped(length, batching.step) if length > batching.exact_length else length

    def _stepped(self, length: int, step: int) -> int:
        stepped = length + -length % step
        return min(stepped, int(self._tokenizer.truncation["max_length"]))

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        return self._load_tokenizer()


def _spans(encoding: Encoding) -> TokenSpans:
    """Where the tokens of an encoding stand, special ones left out."""
    spans: TokenSpans = numpy.array(encoding.offsets, numpy.int64).reshape(-1, 2)
    special = numpy.array(encoding.special_tokens_mask, bool)
    return spans.compress(~special, axis=0)
