"""The text formats in which word vectors are published, read line by line.

GloVe's: a word and its numbers, one space between each. Word2vec's and fastText's: the same
behind a header of two integers, how many words and how many numbers each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

import numpy

from semsearch.errors import DamagedModelError
from semsearch.protocols import Matrix

BLOCK_WORDS = 1024
LINE_MAX_BYTES = 1_000_000
MAX_DIMENSION = 65_536

EXPECTED = (
    "expected a text file with a word and its numbers a line, as GloVe publishes them or word2vec "
    "writes them (not its binary format)"
)


class Block(NamedTuple):
    """Some lines: words in UTF-8, and their vectors, shape (len(words), dimension)."""

    words: list[bytes]
    vectors: Matrix


def read_blocks(lines: Iterable[bytes], name: str) -> Iterator[Block]:
    """All words with their vectors, in the order of the file, a block at a time.

    The first line, or the header, says how many numbers a line has. They are taken from its end,
    because some words of glove.840B hold spaces.

    Args:
        lines: of the file, none longer than `LINE_MAX_BYTES`.
        name: what messages call it.

    Raises:
        EncoderError: it is in another format, or a line of it is malformed.
    """
    numbered = _numbered(lines, name)
    first = next(numbered, None)
    if first is None:
        raise DamagedModelError(f"{name} is empty; {EXPECTED}")
    promised, dimension = _header(first[1])
    if promised is None:
        dimension = first[1].count(b" ")
        numbered = chain([first], numbered)
    if not 2 <= dimension <= MAX_DIMENSION:
        raise DamagedModelError(f"{name}:1: these are no word vectors; {EXPECTED}")
    words = 0
    for block in _blocks(numbered, dimension, name):
        words += len(block.words)
        yield block
    if promised is not None and words != promised:
        raise DamagedModelError(
            f"{name} is not whole: its first line promises {promised:,} words, it has {words:,}"
        )
    if not words:
        raise DamagedModelError(f"{name} holds no words; {EXPECTED}")


def _blocks(numbered: Iterator[tuple[int, bytes]], dimension: int, name: str) -> Iterator[Block]:
    words: list[bytes] = []
    vectors = numpy.empty((BLOCK_WORDS, dimension), numpy.float32)
    for number, line in numbered:
        word, *numbers = line.rsplit(b" ", dimension)
        try:
            if not word or len(numbers) != dimension:
                raise ValueError
            with numpy.errstate(over="ignore"):  # infinite then, and refused as such
                vectors[len(words)] = [float(text) for text in numbers]
        except ValueError:
            what = f"not a word and {dimension} numbers"
            if number <= 2:
                what = f"{what}; {EXPECTED}"
            raise DamagedModelError(f"{name}:{number}: {what}") from None
        if not numpy.isfinite(vectors[len(words)]).all():
            raise DamagedModelError(f"{name}:{number}: a number is infinite or NaN")
        words.append(word)
        if len(words) == BLOCK_WORDS:
            yield Block(words, vectors)
            words = []
    if words:
        yield Block(words, vectors[: len(words)])


def _numbered(lines: Iterable[bytes], name: str) -> Iterator[tuple[int, bytes]]:
    for number, line in enumerate(lines, start=1):
        if len(line) == LINE_MAX_BYTES:
            limit = f"{LINE_MAX_BYTES:,} bytes"
            raise DamagedModelError(f"{name}:{number}: a line longer than {limit}; {EXPECTED}")
        yield number, line.rstrip(b" \r\n")  # word2vec leaves a space at the end of a line


def _header(line: bytes) -> tuple[int | None, int]:
    fields = line.split(b" ")
    if len(fields) == 2 and fields[0].isdigit() and fields[1].isdigit():
        return int(fields[0][:20]), int(fields[1][:20])
    return None, 0
