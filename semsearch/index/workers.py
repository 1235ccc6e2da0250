"""Workers cut documents into passages and encode them, while others are being read and written.

`LocalWorkers` work in this process; `semsearch.index.cluster` has workers on Ray.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol, Self, TypeVar

from semsearch.corpus.chunking import fitting_spans
from semsearch.protocols import Encoder, Matrix, encode_usable
from semsearch.stores.protocol import Space

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

#: The passages of a document, as character ranges.
Spans = list[tuple[int, int]]
#: The embedding spaces to fill, each with its encoder; the first encoder counts tokens.
Spaces = Sequence[tuple[Space, Encoder]]


class Encoded(NamedTuple):
    """The vectors of texts."""

    vectors: Matrix  #: unit vectors, shape (m, dimension)
    places: list[int]  #: the positions of the m texts that have a vector
    seconds: float  #: the time taken
    node: str = ""  #: the node of a cluster that encoded them


class Workers(AbstractContextManager["Workers"], Protocol):
    """Cut documents into passages, and encode passages."""

    @property
    def cutting_ahead(self) -> int:
        """How many batches may be cut ahead of encoding."""

    @property
    def encoding_ahead(self) -> int:
        """How many batches may be encoded ahead of writing."""

    def cut(self, texts: Sequence[str], max_tokens: int) -> Callable[[], list[Spans]]:
        """Start to cut documents into passages; the function returned waits for the result.

        Args:
            texts: the documents.
            max_tokens: the maximum number of tokens per passage.
        """

    def encode(self, space: Space, texts: Sequence[str]) -> Callable[[], Encoded]:
        """Start to encode passages for a space; the function returned waits for the vectors."""


class LocalWorkers:
    """Encode in one thread of this process; cut documents in the caller's thread.

    Args:
        spaces: see `Spaces`.
    """

    cutting_ahead = 0
    encoding_ahead = 1

    def __init__(self, spaces: Spaces) -> None:
        self._spaces = spaces
        self._encoders = {space.id: encoder for space, encoder in spaces}
        self._thread = ThreadPoolExecutor(1, "semsearch-encoding")

    def cut(self, texts: Sequence[str], max_tokens: int) -> Callable[[], list[Spans]]:
        """Cut documents into passages immediately."""
        spans = cut_texts(self._spaces[0][1], texts, max_tokens)
        return lambda: spans

    def encode(self, space: Space, texts: Sequence[str]) -> Callable[[], Encoded]:
        """Start to encode passages for a space."""
        encoding: Future[Encoded] = self._thread.submit(
            encode_texts, self._encoders[space.id], texts
        )
        return encoding.result

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        # Nobody takes the results any more; after Ctrl-C, nobody waits for them, either.
        interrupted = kind is not None and issubclass(kind, KeyboardInterrupt)
        self._thread.shutdown(wait=not interrupted, cancel_futures=kind is not None)


def cut_texts(tokenizer: Encoder, texts: Sequence[str], max_tokens: int) -> list[Spans]:
    """The passages of documents, as character ranges."""
    return [fitting_spans(text, tokenizer.token_spans, max_tokens) for text in texts]


def encode_texts(encoder: Encoder, texts: Sequence[str]) -> Encoded:
    """The vectors of passages."""
    started = time.perf_counter()
    vectors, places = encode_usable(encoder, texts)
    return Encoded(vectors, places, time.perf_counter() - started)


def begun_ahead(
    items: Iterable[_Item],
    begin: Callable[[_Item], Callable[[], _Result]],
    ahead: Callable[[], int],
) -> Generator[tuple[_Item, _Result], None, None]:
    """Yield items with the results of work on them, in order, while work on later ones has begun.

    If taking an item fails, the results of the items before it are yielded first.

    Args:
        items: taken as room permits.
        begin: starts the work on an item; the function it returns waits for the result.
        ahead: the number of items whose work may be started ahead.
    """
    begun: deque[tuple[_Item, Callable[[], _Result]]] = deque()
    remaining = iter(items)
    error: BaseException | None = None
    goes_on = True
    while goes_on:
        try:
            item = next(remaining)
            begun.append((item, begin(item)))
        except StopIteration:
            goes_on = False
        except BaseException as broken:  # also Ctrl-C: finish the work that was started
            error, goes_on = broken, False
        while begun and (not goes_on or len(begun) > ahead()):
            item, result = begun.popleft()
            yield item, result()
    if error is not None:
        try:
            raise error
        finally:
            del error  # it refers to this frame
