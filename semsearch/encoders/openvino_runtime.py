"""Converted models on a CPU: OpenVINO, with `tokenizers` and without torch."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy

from semsearch.encoders.batching import Ids, Text, batches, padded, windows
from semsearch.encoders.compiled import compiled_model, keep_compiled
from semsearch.encoders.precision import Precision
from semsearch.protocols import Matrix, TokenSpans

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

#: How many tokens, padding included, go through the model at once.
BATCH_TOKENS = 1024
#: How many characters are tokenised, and their texts sorted by length, at once.
WINDOW_CHARACTERS = 250_000
#: Up to so many texts, one after another with all cores is faster than side by side.
FEW_TEXTS = 4

#: Single texts, and those in a batch that are longer than `EXACT_LENGTH`, are padded to a multiple
#: of so many tokens: OpenVINO prepares itself for each shape that it meets, and that costs more
#: than a little padding.
SINGLE_STEP = 8
BATCH_STEP = 4
EXACT_LENGTH = 32

#: A text of so many characters a token is too long to be encoded whole.
LONG_WORD = 16

#: How many texts are remembered as tokens between their being cut and their being encoded.
REMEMBERED_TEXTS = 2048

#: What OpenVINO calls the precisions.
NUMBER_TYPES = {Precision.FP32: "f32", Precision.BF16: "bf16"}

#: One text has all cores; of many, each core has its own. Attention as one fused kernel
#: (OpenVINO's "snippets") is faster for the former and slower for the latter.
ONE_BY_ONE = {"PERFORMANCE_HINT": "LATENCY"}
SIDE_BY_SIDE = {"PERFORMANCE_HINT": "THROUGHPUT", "SNIPPETS_MODE": "DISABLE"}


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
    """Runs a converted model: a bi-encoder on texts, a cross-encoder on pairs of texts.

    Texts are sorted by length and batched by tokens, so that little is computed for padding; the
    batches are run side by side while the next texts are tokenised.

    Args:
        converted: the model in the cache.
        precision: FP32 or BF16; a quantised model computes the rest of its layers so.
    """

    def __init__(self, converted: Converted, precision: Precision) -> None:
        self._converted = converted
        self._number_type = NUMBER_TYPES[precision]
        self._tokenised: dict[Text, Encoding] = {}
        self._ahead: dict[Text, Matrix] = {}
        self._lock = Lock()  # a request serves one thread at a time

    def encode(self, texts: Sequence[str], prompt: str = "") -> Matrix:
        """Unit vectors of texts, shape (len(texts), dimension), in their order."""
        return self.run([prompt + text for text in texts] if prompt else texts)

    def encode_ahead(self, texts: Sequence[str], prompt: str = "") -> None:
        """Encode texts that the next `encode` will be asked for.

        Those that are too long to be encoded whole are left out: they will be cut before.
        """
        longest = LONG_WORD * self._converted.max_tokens
        likely = [prompt + text for text in texts if len(text) < longest]
        whole = [text for text in likely if not self._tokens(text).overflowing]
        with self._lock:
            self._ahead = dict(zip(whole, self._run_side_by_side(whole), strict=True))

    def run(self, texts: Sequence[Text]) -> Matrix:
        """What the model says of each text, shape (len(texts), dimension), in their order."""
        with self._lock:
            ahead, self._ahead = self._ahead, {}
            if ahead:
                others = [row for row, text in enumerate(texts) if text not in ahead]
                found = iter(self._run_side_by_side([texts[row] for row in others]))
                matrix = self._empty(len(texts))
                for row, text in enumerate(texts):
                    matrix[row] = ahead[text] if text in ahead else next(found)
                return matrix
            if len(texts) > FEW_TEXTS:
                return self._run_side_by_side(texts)
            return self._run_one_by_one(texts)

    def _run_one_by_one(self, texts: Sequence[Text]) -> Matrix:
        matrix = self._empty(len(texts))
        for row, text in enumerate(texts):
            encoding = self._encoding(text)
            features = self._features([encoding], self._stepped(len(encoding.ids), SINGLE_STEP))
            matrix[row] = self._one_by_one.infer(features)[0]
        return matrix

    def _run_side_by_side(self, texts: Sequence[Text]) -> Matrix:
        matrix = self._empty(len(texts))
        # No AsyncInferQueue: a model that is dropped right behind its callbacks waits for threads
        # of OpenVINO, which wait for Python's lock, for ever (2026.4).
        running: deque[tuple[Any, Ids]] = deque()
        idle = list(self._side_by_side)

        def finish_oldest() -> None:
            request, rows = running.popleft()
            request.wait()
            matrix[rows] = request.get_output_tensor().data
            idle.append(request)

        for start, window in windows(texts, WINDOW_CHARACTERS):
            encodings = self._encodings(window)
            token_ids = [encoding.ids for encoding in encodings]
            for rows, length in batches(token_ids, BATCH_TOKENS, length_of=self._padded_length):
                if not idle:
                    finish_oldest()
                request = idle.pop()
                request.start_async(self._features([encodings[row] for row in rows], length))
                running.append((request, start + rows))
        while running:
            finish_oldest()
        return matrix

    def _empty(self, rows: int) -> Matrix:
        return numpy.empty((rows, self._converted.dimension), numpy.float32)

    def features(self, text: str) -> dict[str, Ids]:
        """The model's inputs for one text, each of shape (1, tokens)."""
        encoding = self._encoding(text)
        return self._features([encoding], len(encoding.ids))

    def keep_compiled(self) -> None:
        """Spare whoever uses the model after this the time that compiling it takes."""
        for options in (ONE_BY_ONE, SIDE_BY_SIDE):
            keep_compiled(self._converted.folder, self._with_number_type(options))

    def token_spans(self, text: str) -> TokenSpans:
        """Character ranges of a text's tokens, shape (n, 2), special tokens left out."""
        tokens = self._tokens(text)
        return numpy.concatenate([_spans(part) for part in (tokens, *tokens.overflowing)])

    def _tokens(self, text: str) -> Encoding:
        """A text's tokens as the model reads them; what it does not read is `overflowing`."""
        encoding = self._tokenizer.encode(text)
        if not encoding.overflowing:  # likely to be encoded as it is
            if len(self._tokenised) >= REMEMBERED_TEXTS:
                self._tokenised.clear()
            self._tokenised[text] = encoding
        return encoding

    def _encodings(self, texts: Sequence[Text]) -> list[Encoding]:
        """Their tokens, cut to what the model reads; those that `token_spans` found are reused."""
        known = [self._tokenised.pop(text, None) for text in texts]
        others = [text for text, tokens in zip(texts, known, strict=True) if tokens is None]
        new = iter(self._tokenizer.encode_batch_fast(others))
        return [next(new) if one is None else one for one in known]

    def _encoding(self, text: Text) -> Encoding:
        sequences = (text,) if isinstance(text, str) else text
        return self._tokenizer.encode(*sequences)

    def _features(self, encodings: Sequence[Encoding], length: int) -> dict[str, Ids]:
        """The model's inputs for some texts, each of shape (texts, length)."""
        ids, mask = padded([one.ids for one in encodings], length, self._converted.pad_id)
        types = numpy.zeros_like(ids)
        if encodings[0].n_sequences > 1:
            types, _ = padded([one.type_ids for one in encodings], length, 0)
        features = {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}
        return {name: features[name] for name in self._converted.inputs}

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

    def _padded_length(self, length: int) -> int:
        return self._stepped(length, BATCH_STEP) if length > EXACT_LENGTH else length

    def _stepped(self, length: int, step: int) -> int:
        stepped = length + -length % step
        return min(stepped, int(self._tokenizer.truncation["max_length"]))

    def _compiled(self, options: dict[str, str]) -> Any:
        return compiled_model(self._converted.folder, self._with_number_type(options))

    def _with_number_type(self, options: dict[str, str]) -> dict[str, str]:
        return {"INFERENCE_PRECISION_HINT": self._number_type, **options}

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        from tokenizers import Tokenizer

        return Tokenizer.from_file(str(self._converted.folder / "tokenizer.json"))


def _spans(encoding: Encoding) -> TokenSpans:
    """Where the tokens of an encoding stand, special ones left out."""
    spans: TokenSpans = numpy.array(encoding.offsets, numpy.int64).reshape(-1, 2)
    special = numpy.array(encoding.special_tokens_mask, bool)
    return spans.compress(~special, axis=0)
