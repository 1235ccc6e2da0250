"""Workers: what cuts documents into passages and encodes these, while others are read and written.

`LocalWorkers` do it in this process; `semsearch.index.cluster` has those that do it on Ray.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol, Self, TypeVar

from semsearch.corpus.chunking import fitting_spans
from semsearch.protocols import Encoder, Matrix
from semsearch.stores.space import Space
from semsearch.vectors import encode_usable

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

#: Where the passages of a document begin and end, in characters.
Spans = list[tuple[int, int]]
#: The embedding spaces that are filled, each with its encoder; the first one's tokens are counted.
Spaces = Sequence[tuple[Space, Encoder]]


class Encoded(NamedTuple):
    """What an encoder has made of texts."""

    vectors: Matrix  #: unit vectors, shape (m, dimension)
    places: list[int]  #: of their m texts: those that have a vector
    seconds: float  #: how long that took
    node: str = ""  #: the node of a cluster where it was done


class Workers(AbstractContextManager["Workers"], Protocol):
    """What cuts documents into passages, and encodes passages."""

    @property
    def cutting_ahead(self) -> int:
        """How many batches are being cut, or wait for that, while others are encoded."""

    @property
    def encoding_ahead(self) -> int:
        """How many batches are being encoded, or wait for that, while others are written."""

    def cut(self, texts: Sequence[str], max_tokens: int) -> Callable[[], list[Spans]]:
        """Begin to cut documents into passages; what is returned waits for them.

        Args:
            texts: the documents.
            max_tokens: the most tokens of a passage.
        """

    def encode(self, space: Space, texts: Sequence[str]) -> Callable[[], Encoded]:
        """Begin to encode passages for a space; what is returned waits for their vectors."""


class LocalWorkers:
    """One thread of this process encodes; documents are cut in the caller's.

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
        """Cut documents into passages, at once."""
        spans = cut_texts(self._spaces[0][1], texts, max_tokens)
        return lambda: spans

    def encode(self, space: Space, texts: Sequence[str]) -> Callable[[], Encoded]:
        """Begin to encode passages for a space."""
        encoding: Future[Encoded] = self._thread.submit(
            encode_texts, self._encoders[space.id], texts
        )
        return encoding.result

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.shutdown()


def cut_texts(tokenizer: Encoder, texts: Sequence[str], max_tokens: int) -> list[Spans]:
    """Where the passages of documents begin and end."""
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
    """Items with the results of work on them, in their order; later ones are begun meanwhile.

    When the items break off with an error, the results of those that were begun come before it.

    Args:
        items: are taken when there is room.
        begin: begins the work on one; what it returns waits for the result.
        ahead: how many may be begun whose results nobody has asked for.
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
        except BaseException as broken:  # Ctrl-C, too: what was begun is not lost
            error, goes_on = broken, False
        while begun and (not goes_on or len(begun) > ahead()):
            item, result = begun.popleft()
            yield item, result()
    if error is not None:
        raise error
