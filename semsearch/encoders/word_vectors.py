"""Word vectors in the user's cache: read once from a text file, then memory-mapped.

GloVe's format: a word and its numbers per line, separated by single spaces. Word2vec's and
fastText's: the same after a header with two integers, the numbers of words and dimensions.

The rows of words are found in an SQLite database instead of a dictionary, so that opening two
million words takes no longer than ten.
"""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import numpy
from numpy.typing import NDArray

from semsearch.encoders.cache import cached_entry
from semsearch.errors import EncoderError
from semsearch.protocols import Matrix

logger = logging.getLogger(__name__)

#: Incremented with every change of the written files.
VERSION = 3

#: Lower-cased files also have a few words with capitals, such as UNK.
CASED_SHARE = 0.01

BLOCK_WORDS = 1024


class Vocabulary:
    """The rows of the words of a file.

    Args:
        file: the database that `_convert` wrote.
    """

    def __init__(self, file: Path) -> None:
        self._connection = sqlite3.connect(
            f"{file.absolute().as_uri()}?mode=ro&immutable=1", uri=True, check_same_thread=False
        )

    def __len__(self) -> int:
        return int(self._connection.execute("SELECT COUNT(*) FROM words").fetchone()[0])

    def rows(self, words: Iterable[str]) -> dict[str, int]:
        """The rows of those words that are in the file."""
        query = (
            "SELECT word, row FROM words "
            "WHERE word IN (SELECT CAST(value AS BLOB) FROM json_each(?))"
        )
        found = self._connection.execute(query, (json.dumps(list(words)),))
        return {word.decode("utf-8", "replace"): row for word, row in found}


class WordVectors(NamedTuple):
    """The vectors of a file, one row per line, and their words."""

    vectors: Matrix  #: as published, not normalised; shape (lines, dimension)
    mean: NDArray[numpy.float64]  #: of all lines, shape (dimension,); not zero
    vocabulary: Vocabulary
    is_cased: bool  #: whether words differ by case
    has_contractions: bool  #: whether "don't" is split into "do" and "n't"


def open_word_vectors(file: Path, sha256: str) -> WordVectors:
    """The vectors of a file, from the cache or converted now.

    Args:
        file: the file.
        sha256: its hash.

    Raises:
        EncoderError: the file does not contain word vectors.
    """
    entry = cached_entry(f"words-{VERSION}-{sha256[:32]}", lambda draft: _convert(file, draft))
    facts = json.loads((entry / "facts.json").read_text("utf-8"))
    vectors = numpy.load(entry / "vectors.npy", mmap_mode="r", allow_pickle=False)
    mean = numpy.load(entry / "mean.npy", allow_pickle=False)
    mean = mean if mean.any() else numpy.ones_like(mean)
    vocabulary = Vocabulary(entry / "words.sqlite")
    return WordVectors(numpy.asarray(vectors), mean, vocabulary, **facts)


def _convert(file: Path, draft: Path) -> None:
    """Write vectors, their mean and the vocabulary into a folder, a block in memory at a time."""
    logger.warning("reading the word vectors of %s into the cache; this is done once", file)
    cased = 0
    total: Any = 0.0
    shape = (0, 0)
    with (
        (draft / "vectors.npy").open("wb") as stream,
        closing(sqlite3.connect(draft / "words.sqlite")) as connection,
        connection,
    ):
        connection.execute(
            "CREATE TABLE words (word BLOB PRIMARY KEY, row INTEGER NOT NULL) WITHOUT ROWID"
        )
        _write_header(stream, shape)
        for words, vectors in _read_blocks(file):
            rows = range(shape[0], shape[0] + len(words))
            connection.executemany(  # the first of equal words is kept
                "INSERT OR IGNORE INTO words VALUES (?, ?)", zip(words, rows, strict=True)
            )
            shape = (rows.stop, vectors.shape[1])
            stream.write(vectors.astype("<f4").tobytes())
            total += vectors.sum(axis=0, dtype=numpy.float64)
            cased += sum(map(_has_capital, words))
        if not shape[0]:
            raise EncoderError(f"{file} contains no word vectors")
        stream.seek(0)
        _write_header(stream, shape)  # numpy leaves room for a longer first axis
    numpy.save(draft / "mean.npy", total / shape[0])
    facts = {
        "is_cased": cased >= CASED_SHARE * shape[0],
        "has_contractions": bool(Vocabulary(draft / "words.sqlite").rows(["n't"])),
    }
    (draft / "facts.json").write_text(json.dumps(facts), "utf-8")


def _read_blocks(file: Path) -> Iterator[tuple[list[bytes], Matrix]]:
    """All words in UTF-8 with their vectors, in the order of the file, in blocks.

    Numbers are taken from the end of a line, because some words of glove.840B contain spaces.

    Raises:
        EncoderError: the file has another format, or a malformed line.
    """
    words: list[bytes] = []
    vectors: list[Matrix] = []
    with file.open("rb") as lines:
        first = next(lines, b"").rstrip(b" \r\n").split(b" ")
        has_header = len(first) == 2 and all(map(bytes.isdigit, first))
        dimension = int(first[1]) if has_header else len(first) - 1
        if not has_header:
            lines.seek(0)
        for number, line in enumerate(lines, start=2 if has_header else 1):
            word, *numbers = line.rstrip(b" \r\n").rsplit(b" ", dimension)
            try:
                with numpy.errstate(over="ignore"):
                    vector = numpy.array([float(text) for text in numbers], numpy.float32)
            except ValueError:
                vector = numpy.empty(0, numpy.float32)
            if not word or not 2 <= len(vector) == dimension or not numpy.isfinite(vector).all():
                raise EncoderError(
                    f"{file}:{number}: not a word and {dimension} finite numbers, separated by "
                    "spaces, as in the text formats of GloVe and word2vec"
                )
            words.append(word)
            vectors.append(vector)
            if len(words) == BLOCK_WORDS:
                yield words, numpy.array(vectors)
                words, vectors = [], []
    if words:
        yield words, numpy.array(vectors)


def _write_header(stream: Any, shape: tuple[int, ...]) -> None:
    header = {"descr": "<f4", "fortran_order": False, "shape": shape}
    numpy.lib.format.write_array_header_1_0(stream, header)


def _has_capital(word: bytes) -> bool:
    text = word.decode("utf-8", "replace")
    return text != text.lower()
