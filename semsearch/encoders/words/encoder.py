"""An encoder that averages word vectors, and counts unknown words."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import Any
from unicodedata import normalize

import numpy
from numpy.typing import NDArray

from semsearch.encoders.base import EncodesSentences
from semsearch.encoders.cache import cached_entry, file_sha256
from semsearch.encoders.sample import sample_texts
from semsearch.encoders.words.treebank import TOKENIZER_VERSION, word_spans
from semsearch.encoders.words.word_vectors import open_word_vectors
from semsearch.errors import EncoderError, ModelNotFoundError, check_text, check_texts
from semsearch.protocols import Matrix, TokenSpans
from semsearch.records import Coverage

#: Part of the fingerprint: incremented with every change of how words are processed.
VERSION = 1
TEXTS_AT_ONCE = 1024

#: The maximum number of unknown words remembered, and the number of those shown.
REMEMBERED, SHOWN = 100_000, 10

#: A remainder this small, relative to the original, is rounding.
NOTHING_LEFT = 1e-6

#: SIF's `a`; 1e-3 to 1e-4 were best on all data sets of the paper.
SIF_A = 1e-3

Vectors = NDArray[numpy.float64]


class WordVectorEncoder(EncodesSentences):
    """The cosine-normalised average of a text's word vectors.

    Words are looked up like in the corpus of the vectors: lower-cased unless the file contains
    capitals, with contractions split if the file contains "n't". Words not found are looked up
    lower-cased (like Sentence-Transformers' tokenizer for word vectors), then by their parts if
    they contain a hyphen or a slash; words still unknown are left out and counted. A text without
    known words gets the direction of the mean of all vectors, which GloVe's authors recommend for
    unknown words.

    Punctuation is left out, although most files have vectors for it: it would make all texts that
    end with a full stop more similar.

    With SIF (Arora, Liang & Ma 2017, A simple but tough-to-beat baseline for sentence embeddings),
    frequent words have lower weights, and the common component of texts is removed. The line of a
    word is taken as its rank, which is correct for files sorted by frequency, such as those of
    GloVe, word2vec and fastText.

    Args:
        spec: ``glove:PATH``, of a text file in GloVe's or word2vec's format, with an optional
            suffix ``@sif``.

    Raises:
        ModelNotFoundError: there is no such file.
        EncoderError: it contains no word vectors, or the cache cannot be written.
    """

    def __init__(self, spec: str) -> None:
        name = spec.partition(":")[2]
        is_sif = name.endswith("@sif")
        self._weighting = "sif" if is_sif else "mean"
        file = Path(name.removesuffix("@sif").removesuffix("@mean")).expanduser().resolve()
        if not file.is_file():
            raise ModelNotFoundError(f"no file of word vectors {name!r} (glove:FILE or FILE@sif)")
        sha256 = file_sha256(file)
        self._words = open_word_vectors(file, sha256)
        self.spec = f"glove:{file}"
        self.dimension = self._words.vectors.shape[1]
        # The maximum length of passages; longer texts are averaged as a whole.
        self.max_document_tokens = 256
        self.max_query_tokens = None  # no limit
        self._lock = Lock()
        self._word_count = self._unknown_count = 0
        self._unknown_words: Counter[str] = Counter()
        self._weights = numpy.ones(len(self._words.vectors))
        self._component = numpy.zeros(self.dimension)
        identity = f"words {VERSION} {TOKENIZER_VERSION} {sha256} {self._weighting}"
        if is_sif:
            self.spec = f"{self.spec}@sif"
            sample = hashlib.sha256("\n".join(sample_texts()).encode())
            identity = f"{identity} {sample.hexdigest()}"
            self._weights = sif_weights(len(self._words.vectors))
        self.fingerprint = hashlib.sha256(identity.encode()).hexdigest()
        if is_sif:
            fitted = cached_entry(f"sif-{self.fingerprint[:32]}", self._fit_component)
            self._component = numpy.load(fitted / "component.npy", allow_pickle=False)
        anything = numpy.eye(1, self.dimension)
        self._for_unknown = self._directions(self._words.mean[None], anything)

    def description(self) -> Mapping[str, Any]:
        """The number of its words, and how they are looked up and weighted."""
        return {
            "words": len(self._words.vocabulary),
            "cased": self._words.is_cased,
            "contractions": self._words.has_contractions,
            "weighting": self._weighting,
            "max_tokens": self.max_document_tokens,
        }

    def knows(self, word: str) -> bool:
        """Whether it has a vector for a word or a part of it."""
        return any(self._find(self._words_of(word)).values())

    def coverage(self) -> Coverage:
        """The numbers of words and unknown words in all documents encoded so far."""
        with self._lock:
            most = sorted(self._unknown_words.items(), key=lambda item: (-item[1], item[0]))
            shown = tuple(word for word, _ in most[:SHOWN])
            return Coverage(self._word_count, self._unknown_count, shown)

    def token_spans(self, text: str) -> TokenSpans:
        """The character ranges of the words and punctuation marks of a text."""
        check_text("text", text)
        spans = list(word_spans(text, contractions=self._words.has_contractions))
        return numpy.array(spans, numpy.int64).reshape(-1, 2)

    def encode_queries(self, texts: Sequence[str]) -> Matrix:
        """The same vectors as for documents; their words are not counted."""
        return self._encode(texts)

    def encode_documents(self, texts: Sequence[str]) -> Matrix:
        """Unit vectors, shape (len(texts), dimension)."""
        return self._encode(texts, count=True)

    def _encode(self, texts: Sequence[str], *, count: bool = False) -> Matrix:
        texts = check_texts("texts", texts)
        matrix = numpy.empty((len(texts), self.dimension), numpy.float32)
        for start in range(0, len(texts), TEXTS_AT_ONCE):
            window = slice(start, start + TEXTS_AT_ONCE)
            averages = self._averages(texts[window], count=count)
            matrix[window] = self._directions(averages, self._for_unknown)
        return matrix

    def _averages(self, texts: Sequence[str], *, count: bool = False) -> Vectors:
        """Weighted means of known words, shape (len(texts), dimension); zero if there is none."""
        words = [self._words_of(text) for text in texts]
        occurring = Counter(chain.from_iterable(words))
        rows_of = self._find(occurring)
        if count:
            self._count(occurring, {word for word, rows in rows_of.items() if not rows})
        averages = numpy.zeros((len(texts), self.dimension))
        for average, text_words in zip(averages, words, strict=True):
            found = [row for word in text_words for row in rows_of[word]]
            if found:
                rows, times = numpy.unique(found, return_counts=True)
                average[:] = (times * self._weights[rows]) @ self._words.vectors[rows] / len(found)
        return averages

    def _fit_component(self, folder: Path) -> None:
        """Write the first principal component of the sample corpus's vectors, uncentred.

        The paper fits it on each set of sentences. An encoder must return the same vector for a
        text in any context, so here it is fitted once.
        """
        matrix = self._averages(sample_texts())
        if not matrix.any():
            raise EncoderError("no word of the English sample corpus has a vector; leave out @sif")
        numpy.save(folder / "component.npy", numpy.linalg.svd(matrix, full_matrices=False)[2][0])

    def _count(self, words: Counter[str], unknown: set[str]) -> None:
        """Count the words of documents; of many unknown words, the rarer half is dropped."""
        with self._lock:
            self._word_count += words.total()
            self._unknown_count += sum(words[word] for word in unknown)
            self._unknown_words.update({word: words[word] for word in unknown})
            if len(self._unknown_words) > REMEMBERED:
                self._unknown_words = Counter(
                    dict(self._unknown_words.most_common(REMEMBERED // 2))
                )

    def _directions(self, averages: Vectors, otherwise: Vectors) -> Vectors:
        """Unit vectors without the common component; `otherwise` if nothing remains."""
        common = (averages * self._component).sum(axis=1, keepdims=True)
        rest = averages - common * self._component
        norms = numpy.linalg.norm(rest, axis=1, keepdims=True)
        is_left = norms > NOTHING_LEFT * numpy.linalg.norm(averages, axis=1, keepdims=True)
        directions: Vectors = numpy.where(is_left, rest / numpy.where(is_left, norms, 1), otherwise)
        return directions

    def _words_of(self, text: str) -> list[str]:
        spans = word_spans(text, contractions=self._words.has_contractions)
        words = [normalize("NFC", text[start:end]).replace("’", "'") for start, end in spans]
        words = [word for word in words if any(map(str.isalnum, word))]
        return words if self._words.is_cased else [word.lower() for word in words]

    def _find(self, words: Iterable[str]) -> dict[str, list[int]]:
        """The rows of each word: its own, or those of its parts, or none."""
        whole = self._find_whole(words)
        parts = {word: re.split("[-/]", word) for word, row in whole.items() if row is None}
        part_rows = self._find_whole({part for each in parts.values() for part in each})
        rows = {
            word: [part_rows[part] for part in parts[word]] if row is None else [row]
            for word, row in whole.items()
        }
        return {word: [row for row in each if row is not None] for word, each in rows.items()}

    def _find_whole(self, words: Iterable[str]) -> dict[str, int | None]:
        """The row of each word as it is or lower-cased; None if unknown."""
        words = list(words)
        rows = self._words.vocabulary.rows(words)
        if self._words.is_cased:
            lower = self._words.vocabulary.rows([word.lower() for word in words])
            rows = [low if row is None else row for row, low in zip(rows, lower, strict=True)]
        return dict(zip(words, rows, strict=True))


def sif_weights(words: int) -> NDArray[numpy.float64]:
    """The weight a / (a + p) of each rank, the most frequent word first, shape (words,).

    Published vectors are sorted by frequency, but without counts. So the probability of a word is
    estimated from its rank by Zipf's law: p(rank) = 1 / (rank * H), where H, the sum of 1 / rank
    over all words, normalises the probabilities.
    """
    ranks = numpy.arange(1, words + 1, dtype=numpy.float64)
    probabilities = 1 / (ranks * (1 / ranks).sum())
    weights: NDArray[numpy.float64] = SIF_A / (SIF_A + probabilities)
    return weights
