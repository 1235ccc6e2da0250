"""Word vectors in the user's cache: converted once, then memory-mapped by every process.

The rows of words are found in an SQLite database instead of a dictionary, so that opening two
million words takes no longer than ten.
"""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import numpy
from numpy.typing import NDArray

from semsearch.encoders.cache import cached_entry
from semsearch.encoders.words.vector_file import LINE_MAX_BYTES, VectorFile, read_blocks
from semsearch.protocols import Matrix

logger = logging.getLogger(__name__)

#: Incremented with every change of the written files.
VERSION = 2

#: Lower-cased files also have a few words with capitals, such as UNK.
CASED_SHARE = 0.01


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

    def rows(self, words: Sequence[str]) -> list[int | None]:
        """The row of each word, or None."""
        query = (
            "SELECT word, row FROM words "
            "WHERE word IN (SELECT CAST(value AS BLOB) FROM json_each(?))"
        )
        rows = dict(self._connection.execute(query, (json.dumps(list(words)),)).fetchall())
        # Texts may contain unpaired surrogates, words of files do not.
        return [rows.get(word.encode("utf-8", "surrogatepass")) for word in words]


class WordVectors(NamedTuple):
    """The vectors of a file, one row per line, and their words."""

    vectors: Matrix  #: as published, not normalised; shape (lines, dimension)
    mean: NDArray[numpy.float64]  #: of all words, shape (dimension,)
    vocabulary: Vocabulary
    is_cased: bool  #: whether words differ by case
    has_contractions: bool  #: whether "don't" is split into "do" and "n't"


def open_word_vectors(file: VectorFile, sha256: str) -> WordVectors:
    """The vectors of a file, from the cache or converted now.

    Args:
        file: the file.
        sha256: its hash.

    Raises:
        EncoderError: the file cannot be read or does not contain word vectors.
    """
    entry = cached_entry(f"words-{VERSION}-{sha256[:32]}", lambda draft: _convert(file, draft))
    facts = json.loads((entry / "facts.json").read_text("utf-8"))
    vectors = numpy.load(entry / "vectors.npy", mmap_mode="r", allow_pickle=False)
    mean = numpy.load(entry / "mean.npy", allow_pickle=False)
    vocabulary = Vocabulary(entry / "words.sqlite")
    return WordVectors(numpy.asarray(vectors), mean, vocabulary, **facts)


def _convert(file: VectorFile, draft: Path) -> None:
    """Write vectors, their mean and the vocabulary into a folder, a block in memory at a time."""
    logger.warning("reading the word vectors of %s into the cache; this is done once", file.name)
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
        for block in read_blocks(file.lines(LINE_MAX_BYTES), file.name):
            rows = range(shape[0], shape[0] + len(block.words))
            connection.executemany(  # the first of equal words is kept
                "INSERT OR IGNORE INTO words VALUES (?, ?)", zip(block.words, rows, strict=True)
            )
            shape = (rows.stop, block.vectors.shape[1])
            stream.write(block.vectors.astype("<f4").tobytes())
            total += block.vectors.sum(axis=0, dtype=numpy.float64)
            cased += sum(map(_has_capital, block.words))
        stream.seek(0)
        _write_header(stream, shape)  # numpy leaves room for a longer first axis
        kept = [row for (row,) in connection.execute("SELECT row FROM words")]
    vectors = numpy.load(draft / "vectors.npy", mmap_mode="r", allow_pickle=False)
    for row in numpy.setdiff1d(numpy.arange(shape[0]), kept):
        total -= vectors[row]
    numpy.save(draft / "mean.npy", total / len(kept))
    facts = {
        "is_cased": cased >= CASED_SHARE * shape[0],
        "has_contractions": Vocabulary(draft / "words.sqlite").rows(["n't"]) != [None],
    }
    (draft / "facts.json").write_text(json.dumps(facts), "utf-8")


def _write_header(stream: Any, shape: tuple[int, ...]) -> None:
    header = {"descr": "<f4", "fortran_order": False, "shape": shape}
    numpy.lib.format.write_array_header_1_0(stream, header)


def _has_capital(word: bytes) -> bool:
    text = word.decode("utf-8", "replace")
    return text != text.lower()
