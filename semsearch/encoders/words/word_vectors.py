"""Word vectors in the user's cache: converted once, then memory-mapped by every process."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any, NamedTuple

import numpy
from numpy.typing import NDArray

from semsearch.encoders.cache import cached_entry
from semsearch.encoders.words.vector_file import VectorFile
from semsearch.encoders.words.vector_text import LINE_MAX_BYTES, read_blocks
from semsearch.encoders.words.vocabulary import Vocabulary, VocabularyWriter
from semsearch.protocols import Matrix

logger = logging.getLogger(__name__)

#: Grows with every change of what is written here.
VERSION = 1

#: Lower-cased files have a few words in capitals, too: special ones, like UNK.
CASED_SHARE = 0.01


class WordVectors(NamedTuple):
    """The vectors of a file, one row a line, and what words they belong to."""

    vectors: Matrix  #: as published, not of unit length; shape (lines, dimension)
    mean: NDArray[numpy.float64]  #: of all words, shape (dimension,)
    vocabulary: Vocabulary
    is_cased: bool  #: whether words with capitals are words of their own
    has_contractions: bool  #: whether "don't" was read as "do" and "n't"


def open_word_vectors(file: VectorFile, sha256: str) -> WordVectors:
    """The vectors of a file, read into the cache now if they have not been before.

    Args:
        file: where they are.
        sha256: of that file.

    Raises:
        EncoderError: the file cannot be read or is no file of word vectors.
    """
    entry = cached_entry(f"words-{VERSION}-{sha256[:32]}", lambda draft: _convert(file, draft))
    facts = json.loads((entry / "facts.json").read_text("utf-8"))
    vectors = numpy.load(entry / "vectors.npy", mmap_mode="r", allow_pickle=False)
    mean = numpy.load(entry / "mean.npy", allow_pickle=False)
    return WordVectors(numpy.asarray(vectors), mean, Vocabulary(entry), **facts)


def _convert(file: VectorFile, draft: Path) -> None:
    """Write vectors, their mean and the vocabulary into a folder, holding only a block of them."""
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
