"""Encoding of batches while others are read and written, in a thread of this process.

`semsearch.indexing.ray` has a pool of actors on Ray.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol, Self, TypeVar

from semsearch.protocols import Encoder, Matrix, encode_usable
from semsearch.storage.spaces import Space

_Item = TypeVar("_Item")

#: The embedding spaces to fill, each with its encoder.
Spaces = Sequence[tuple[Space, Encoder]]


class Encoded(NamedTuple):
    """The vectors of texts."""

    vectors: Matrix  #: unit vectors, shape (m, dimension)
    places: list[int]  #: the positions of the m texts that have a vector
    seconds: float  #: the time taken
    node: str = ""  #: the node of a cluster that encoded them


class EncoderPool(AbstractContextManager["EncoderPool"], Protocol):
    """Encodes passages."""

    @property
    def look_ahead(self) -> int:
        """How many batches to submit before the results of the first are taken."""

    def submit(self, space: Space, texts: Sequence[str]) -> Callable[[], Encoded]:
        """Start to encode passages for a space; the function returned waits for the vectors."""


class ThreadPool:
    """Encodes in one thread of this process."""

    look_ahead = 1

    def __init__(self, spaces: Spaces) -> None:
        self._encoders = {space.id: encoder for space, encoder in spaces}
        self._thread = ThreadPoolExecutor(1, "semsearch-encoding")

    def submit(self, space: Space, texts: Sequence[str]) -> Callable[[], Encoded]:
        """Start to encode passages for a space; the function returned waits for the vectors."""
        return self._thread.submit(encode_texts, self._encoders[space.id], texts).result

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        # Nobody takes the results any more; after Ctrl-C, nobody waits for them, either.
        interrupted = kind is not None and issubclass(kind, KeyboardInterrupt)
        self._thread.shutdown(wait=not interrupted, cancel_futures=kind is not None)


def pipelined(items: Iterator[_Item], pool: EncoderPool) -> Iterator[_Item]:
    """Yield items, each after `look_ahead` later ones were taken.

    If taking an item fails, also because of Ctrl-C, the items before it are yielded first.
    """
    in_flight: deque[_Item] = deque()
    failure: BaseException | None = None
    while True:
        try:
            in_flight.append(next(items))
        except StopIteration:
            break
        except BaseException as error:
            failure = error
            break
        if len(in_flight) > pool.look_ahead:
            yield in_flight.popleft()
    while in_flight:
        yield in_flight.popleft()
    if failure is not None:
        raise failure


def encode_texts(encoder: Encoder, texts: Sequence[str]) -> Encoded:
    """The vectors of passages."""
    started = time.perf_counter()
    vectors, places = encode_usable(encoder, texts)
    return Encoded(vectors, places, time.perf_counter() - started)
