"""Word vectors in the user's cache: converted once, then memory-mapped by every process.

The rows of words are found by sorted 64-bit hashes in memory-mapped files instead of a dictionary,
so that opening two million words takes no longer than ten. Words with an equal hash are compared.
"""

from __future__ import annotations

import json
import logging
from array import array
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import numpy
from numpy.typing import NDArray

from semsearch.encoders.cache import cached_entry
from semsearch.encoders.words.vector_file import LINE_MAX_BYTES, VectorFile, read_blocks
from semsearch.protocols import Matrix

logger = logging.getLogger(__name__)

WORDS, OFFSETS, HASHES, ROWS = "words.bin", "offsets.npy", "hashes.npy", "rows.npy"


class VocabularyWriter:
    """Writes the words of a file, in order, into a folder.

    It needs 16 bytes of memory per word.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._offsets = array("q", [0])
        self._hashes = array("Q")

    def add(self, words: Sequence[bytes]) -> None:
        """Append words."""
        with (self._folder / WORDS).open("ab") as stream:
            stream.write(b"".join(words))
        for word in words:
            self._offsets.append(self._offsets[-1] + len(word))
            self._hashes.append(_hash(word))

    def finish(self) -> list[int]:
        """Write the index of the words; the first of equal words is kept.

        Returns:
            The rows of the duplicates.
        """
        offsets = numpy.frombuffer(self._offsets, numpy.int64)
        hashes = numpy.frombuffer(self._hashes, numpy.uint64)
        order = numpy.argsort(hashes, kind="stable")  # equal hashes in the order of rows
        hashes = hashes[order]
        words = numpy.memmap(self._folder / WORDS, numpy.uint8, "r")
        repeated = list(_repeated(hashes, order, offsets, words))
        kept = numpy.isin(order, repeated, invert=True)
        numpy.save(self._folder / OFFSETS, offsets)
        numpy.save(self._folder / HASHES, hashes[kept])
        numpy.save(self._folder / ROWS, order[kept].astype(numpy.int64))
        return repeated


class Vocabulary:
    """The words of a folder that `VocabularyWriter` wrote."""

    def __init__(self, folder: Path) -> None:
        self._hashes = _mapped(folder / HASHES)
        self._rows = _mapped(folder / ROWS)
        self._offsets = _mapped(folder / OFFSETS)
        self._words = memoryview(numpy.memmap(folder / WORDS, numpy.uint8, "r").data)

    def __len__(self) -> int:
        return len(self._rows)

    def rows(self, words: Sequence[str]) -> list[int | None]:
        """The row of each word, or None."""
        # Texts may contain unpaired surrogates, words of files do not.
        encoded = [word.encode("utf-8", "surrogatepass") for word in words]
        hashes = numpy.array([_hash(word) for word in encoded], numpy.uint64)
        places = numpy.searchsorted(self._hashes, hashes).tolist()
        return [
            self._row(word, place, code)
            for word, place, code in zip(encoded, places, hashes.tolist(), strict=True)
        ]

    def _row(self, word: bytes, place: int, code: int) -> int | None:
        while place < len(self._hashes) and int(self._hashes[place]) == code:
            row = int(self._rows[place])
            if self._words[int(self._offsets[row]) : int(self._offsets[row + 1])] == word:
                return row
            place += 1
        return None


def _hash(word: bytes) -> int:
    return int.from_bytes(blake2b(word, digest_size=8).digest(), "little")


def _repeated(
    hashes: NDArray[numpy.uint64],
    order: NDArray[numpy.intp],
    offsets: NDArray[numpy.int64],
    words: NDArray[numpy.uint8],
) -> Iterator[int]:
    """The rows whose words also occur in earlier rows."""
    changes = numpy.flatnonzero(hashes[1:] != hashes[:-1]) + 1
    bounds = numpy.concatenate([[0], changes, [len(hashes)]])
    several = numpy.flatnonzero(numpy.diff(bounds) > 1)
    for start, end in zip(bounds[several].tolist(), bounds[several + 1].tolist(), strict=True):
        seen = set()
        for row in order[start:end].tolist():
            word = words[offsets[row] : offsets[row + 1]].tobytes()
            if word in seen:
                yield row
            seen.add(word)


def _mapped(file: Path) -> NDArray[Any]:
    return numpy.asarray(numpy.load(file, mmap_mode="r", allow_pickle=False))


#: Incremented with every change of the written files.
VERSION = 1

#: Lower-cased files also have a few words with capitals, such as UNK.
CASED_SHARE = 0.01


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
    return WordVectors(numpy.asarray(vectors), mean, Vocabulary(entry), **facts)


def _convert(file: VectorFile, draft: Path) -> None:
    """Write vectors, their mean and the vocabulary into a folder, a block in memory at a time."""
    logger.warning("reading the word vectors of %s into the cache; this is done once", file.name)
    writer = VocabularyWriter(draft)
    cased = 0
    total: Any = 0.0
    shape = (0, 0)
    with (draft / "vectors.npy").open("wb") as stream:
        _write_header(stream, shape)
        for block in read_blocks(file.lines(LINE_MAX_BYTES), file.name):
            shape = (shape[0] + len(block.words), block.vectors.shape[1])
            stream.write(block.vectors.astype("<f4").tobytes())
            writer.add(block.words)
            total += block.vectors.sum(axis=0, dtype=numpy.float64)
            cased += sum(map(_has_capital, block.words))
        stream.seek(0)
        _write_header(stream, shape)  # numpy leaves room for a longer first axis
    repeated = writer.finish()
    vectors = numpy.load(draft / "vectors.npy", mmap_mode="r", allow_pickle=False)
    for row in repeated:
        total -= vectors[row]
    numpy.save(draft / "mean.npy", total / (shape[0] - len(repeated)))
    facts = {
        "is_cased": cased >= CASED_SHARE * shape[0],
        "has_contractions": Vocabulary(draft).rows(["n't"]) != [None],
    }
    (draft / "facts.json").write_text(json.dumps(facts), "utf-8")


def _write_header(stream: Any, shape: tuple[int, ...]) -> None:
    header = {"descr": "<f4", "fortran_order": False, "shape": shape}
    numpy.lib.format.write_array_header_1_0(stream, header)


def _has_capital(word: bytes) -> bool:
    text = word.decode("utf-8", "replace")
    return text != text.lower()
