"""`encode` as sentence-transformers has it, for code that takes a SentenceTransformer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import numpy
from numpy.typing import NDArray

from semsearch.arguments import check_text, check_texts, shown
from semsearch.encoders.model_folder import ModelFolder
from semsearch.errors import ArgumentError, EncoderError, first_line
from semsearch.protocols import Encoder, Matrix, TokenSpans, check_unit

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer


class EncodesSentences:
    """What encoders have so that they can stand in for a SentenceTransformer."""

    def encode(
        self: Encoder,
        sentences: str | Sequence[str],
        prompt_name: str | None = None,
        *,
        batch_size: int | None = None,
        show_progress_bar: bool | None = None,
        convert_to_tensor: bool = False,
        convert_to_numpy: bool = True,
        normalize_embeddings: bool = True,
        **others: Any,
    ) -> Any:
        """Unit vectors of sentences.

        >>> from semsearch import load_encoder
        >>> load_encoder("hashing:64").encode(["a cat", "a dog"], batch_size=32).shape
        (2, 64)

        Args:
            sentences: one, or several.
            prompt_name: ``query`` encodes them as queries, None and ``document`` as documents.
            batch_size: not used: batches are made by length.
            show_progress_bar: not used: there is none.
            convert_to_tensor: return a tensor of torch's.
            convert_to_numpy: not used: without `convert_to_tensor`, an array is returned.
            normalize_embeddings: not used: vectors are of unit length.
            others: further arguments of sentence-transformers, which have to be None.

        Returns:
            float32, shape (dimension,) for one sentence, else (sentences, dimension).

        Raises:
            ArgumentError: there is no such prompt, the sentences are something else, or another
                argument is given.
        """
        del batch_size, show_progress_bar, convert_to_numpy, normalize_embeddings
        for name, value in others.items():
            if value is not None:
                raise ArgumentError(f"encode takes no {name}, which is {shown(value)}")
        if prompt_name not in (None, "document", "query"):
            raise ArgumentError(f"prompt_name must be query or document, not {shown(prompt_name)}")
        one = isinstance(sentences, str)
        texts = check_texts("sentences", [sentences] if one else sentences)
        encode = self.encode_queries if prompt_name == "query" else self.encode_documents
        vectors: Any = encode(texts)
        if convert_to_tensor:
            import torch

            vectors = torch.from_numpy(vectors)
        return vectors[0] if one else vectors


Ids = NDArray[numpy.int64]

#: What a model reads at once: a text or, for a cross-encoder, two.
Text: TypeAlias = str | tuple[str, str]


class Batching(NamedTuple):
    """The batches that suit a runtime."""

    tokens: int  #: how many go through the model at once, padding included
    window_characters: int  #: how many are tokenised, and their texts sorted by length, at once
    least_fill: float = 0.0  #: how short the shortest text of a batch may be, as a part of it
    #: Few texts, and those in a batch that are longer than `exact_length`, are padded to a
    #: multiple of so many tokens, where a runtime prepares itself for each shape that it meets.
    few_step: int = 1
    step: int = 1
    exact_length: int = 0


def windows(texts: Sequence[Text], characters: int) -> Iterator[tuple[int, Sequence[Text]]]:
    """Runs of texts of about equal size, each near so many characters.

    Yields:
        Where a run begins, and its texts.
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
    """The places of texts of like length, long ones first, and the length to pad them to.

    Args:
        token_ids: the texts.
        tokens: how many tokens a batch holds, padding included.
        at_once: how many batches are computed side by side. Texts that fill fewer are shared out
            among so many.
        length_of: to which length a batch is padded whose longest text has so many tokens.
        least_fill: how short the shortest text of a batch may be, as a part of its length.
    """
    lengths = numpy.array([len(ids) for ids in token_ids])
    order = numpy.argsort(-lengths, kind="stable")
    falling = -lengths[order]
    sums = numpy.cumsum(lengths[order])  # of tokens, up to each text and with it
    start = before = 0
    while start < len(order):
        length = max(1, length_of(-int(falling[start])))  # of texts without a token, padding
        filled = int(numpy.searchsorted(falling, -least_fill * length, side="right"))
        share = (int(sums[-1]) - before) / max(1, at_once)  # of the tokens that are left
        shared = int(numpy.searchsorted(sums, before + share, side="right"))
        end = max(start + 1, min(start + tokens // length, filled, shared))
        yield order[start:end], length
        start, before, at_once = end, int(sums[end - 1]), at_once - 1


def padded(token_ids: Sequence[list[int]], length: int, pad_id: int) -> tuple[Ids, Ids]:
    """Ids and attention mask of some texts, each of shape (texts, length)."""
    lengths = numpy.array([len(ids) for ids in token_ids])
    mask = numpy.arange(length) < lengths[:, None]
    ids = numpy.full(mask.shape, pad_id, numpy.int64)
    ids[mask] = numpy.concatenate(token_ids)
    return ids, mask.astype(numpy.int64)


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


class BiEncoder(EncodesSentences, ABC):
    """A transformer that turns texts into unit vectors.

    Args:
        folder: the model.
    """

    def __init__(self, folder: ModelFolder) -> None:
        self.folder = folder

    @property
    def spec(self) -> str:
        """What was asked for; a folder by its absolute path."""
        return self.folder.spec

    @property
    def fingerprint(self) -> str:
        """SHA-256 over the model's files; known without loading it."""
        return self.folder.fingerprint

    @property
    @abstractmethod
    def facts(self) -> ModelFacts:
        """What must be known of the model."""

    @property
    @abstractmethod
    def precision(self) -> str:
        """In which numbers it computes; of int8, documents."""

    @property
    @abstractmethod
    def queries(self) -> TextModel:
        """What queries run on; its rows are unit vectors."""

    @property
    @abstractmethod
    def documents(self) -> TextModel:
        """What documents run on."""

    @property
    def dimension(self) -> int:
        """Width of its vectors."""
        return self.facts.dimension

    @cached_property
    def max_document_tokens(self) -> int:
        """How many tokens of a document it reads, besides its prompt and special tokens.

        Raises:
            EncoderError: the prompt alone is as long as what it reads.
        """
        return self._tokens_left("document")

    @cached_property
    def max_query_tokens(self) -> int | None:
        """How many tokens of a query it reads, besides its prompt and special tokens.

        None where it reads all of any query.

        Raises:
            EncoderError: the prompt alone is as long as what it reads.
        """
        return self._tokens_left("query")

    def description(self) -> Mapping[str, Any]:
        """Its modules, its prompts, how much of a text it reads, and the numbers it computes in."""
        return {
            "modules": self.facts.modules,
            "prompts": self.facts.prompts,
            "max_tokens": self.facts.max_tokens,
            "precision": self.precision,
            **({"commit": self.folder.commit} if self.folder.commit else {}),
        }

    def token_spans(self, text: str) -> TokenSpans:
        """Character ranges of a text's tokens, shape (n, 2), special tokens left out."""
        return self.documents.token_spans(check_text("text", text))

    def encode_queries(self, texts: Sequence[str]) -> Matrix:
        """Unit vectors with the model's prompt for queries, shape (len(texts), dimension)."""
        return self._encode(self.queries, texts, "query")

    def encode_documents(self, texts: Sequence[str]) -> Matrix:
        """Unit vectors with the model's prompt for documents, shape (len(texts), dimension)."""
        return self._encode(self.documents, texts, "document")

    def _encode(self, model: TextModel, texts: Sequence[str], name: str) -> Matrix:
        listed = check_texts("texts", texts)
        with running(self.spec):
            found = model.encode(listed, self.facts.prompts.get(name, ""))
        return check_unit(found, self.spec)

    def _tokens_left(self, name: str) -> int:
        """How many tokens of a text it reads behind one of its prompts."""
        prompt = self.facts.prompts.get(name)
        return tokens_left(
            self.spec, self.facts.max_tokens, name, len(self.token_spans(prompt)) if prompt else 0
        )


def tokens_left(spec: str, max_tokens: int, name: str, used: int) -> int:
    """How many tokens of a text a model reads behind a prompt.

    Args:
        spec: the model.
        max_tokens: how many tokens it reads in all, special tokens not counted.
        name: the prompt's, ``query`` or ``document``.
        used: how many tokens the prompt has.

    Raises:
        EncoderError: none are left.
    """
    if used >= max_tokens:
        raise EncoderError(
            f"model '{spec}' reads {max_tokens} tokens, and its prompt for a {name} has {used} "
            "already; shorten the prompt in its config_sentence_transformers.json"
        )
    return max_tokens - used
