"""An encoder that averages word vectors, a baseline without a neural network.

Texts are split into words as by the Penn Treebank tokenizer, which GloVe's authors used: after the
Stanford tokenizer (Manning et al. 2014) and the Treebank's ``tokenizer.sed``, without their
rewriting of quotes and brackets, which the published GloVe files contain unchanged.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any
from unicodedata import normalize

import numpy

from semsearch.corpus.texts import marks
from semsearch.encoders.base import Coverage, EncodesSentences
from semsearch.encoders.cache import file_sha256
from semsearch.encoders.word_vectors import open_word_vectors
from semsearch.errors import ModelNotFoundError, check_text, check_texts
from semsearch.protocols import Matrix, TokenSpans

#: Part of the fingerprint: incremented with every change of how words are found and processed.
VERSION = 3
#: The number of unknown words shown.
SHOWN = 10

_ABBREVIATIONS = (
    "Mr|Mrs|Ms|Dr|Prof|Rev|Gov|Sen|Rep|Gen|Col|Maj|Capt|Lt|St|Jr|Sr|Inc|Corp|Co|Ltd|vs|etc|"
    "Jan|Feb|Aug|Sept|Oct|Nov|Dec"
)

#: Letters and digits with the marks on them: accents that stand alone, the vowel signs of Hindi.
_LETTERS = rf"[^\W_]+(?:[{marks()}]+[^\W_]*)*"

_TOKEN = re.compile(
    rf"""
      (?:https?://|www\.)[^\s<>"]*[^\s<>".,;:!?)\]'’]  # addresses
    | [\w.+-]{{1,64}}@\w+(?:[.-]\w+)+
    | (?:{_ABBREVIATIONS})\.(?!\w)                      # Dr.
    | No\.(?=\s?\d)                                    # No. 5
    | (?:[^\W\d_]\.){{2,}}(?![^\W_])                   # U.S., e.g.
    | \d+(?:[.,:/]\d+)+(?![^\W_])                      # 3.14, 1,000, 10:30, 1/2
    | {_LETTERS}(?:[-/&'’]{_LETTERS})*                   # words, well-known, O'Brien
    | \.{{2,}} | -{{2,}} | _+ | `` | ''                # ellipses, dashes, quotes
    | \S
    """,
    re.VERBOSE | re.IGNORECASE,
)
_CONTRACTION = re.compile(r"(?:n['’]t|['’](?:s|m|d|re|ve|ll))$", re.IGNORECASE)

#: Two words written as one, and the start of the second. Not "cannot", which GloVe files contain.
_FUSED = {"gimme": 3, "gonna": 3, "gotta": 3, "lemme": 3, "wanna": 3}


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

    Args:
        spec: ``glove:PATH``, of a text file in GloVe's or word2vec's format.

    Raises:
        ModelNotFoundError: there is no such file.
        EncoderError: it contains no word vectors, or the cache cannot be written.
    """

    def __init__(self, spec: str) -> None:
        file = Path(spec.partition(":")[2]).expanduser().resolve()
        if not file.is_file():
            raise ModelNotFoundError(f"no file of word vectors {file} (glove:FILE)")
        sha256 = file_sha256(file)
        self._words = open_word_vectors(file, sha256)
        self.spec = f"glove:{file}"
        self.fingerprint = f"words-{VERSION}-{sha256}"
        self.dimension = self._words.vectors.shape[1]
        # The maximum length of passages; longer texts are averaged as a whole.
        self.max_document_tokens = 256
        self._word_count = 0
        self._unknown_words: Counter[str] = Counter()

    def description(self) -> Mapping[str, Any]:
        """The number of its words, and how they are looked up."""
        return {
            "words": len(self._words.vocabulary),
            "cased": self._words.is_cased,
            "contractions": self._words.has_contractions,
            "max_tokens": self.max_document_tokens,
        }

    def knows(self, word: str) -> bool:
        """Whether it has a vector for a word or a part of it."""
        return any(self._find(self._words_of(word)).values())

    def coverage(self) -> Coverage:
        """The numbers of words and unknown words in all documents encoded so far."""
        most = tuple(word for word, _ in self._unknown_words.most_common(SHOWN))
        return Coverage(self._word_count, self._unknown_words.total(), most)

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
        words = [self._words_of(text) for text in check_texts("texts", texts)]
        occurring = Counter(chain.from_iterable(words))
        rows_of = self._find(occurring)
        if count:
            self._word_count += occurring.total()
            unknown = {word: occurring[word] for word, rows in rows_of.items() if not rows}
            self._unknown_words.update(unknown)
        sums = numpy.tile(self._words.mean, (len(words), 1))
        for row, text_words in zip(sums, words, strict=True):
            found = [place for word in text_words for place in rows_of[word]]
            total = self._words.vectors[found].sum(axis=0, dtype=numpy.float64)
            if total.any():
                row[:] = total
        unit: Matrix = (sums / numpy.linalg.norm(sums, axis=1)[:, None]).astype(numpy.float32)
        return unit

    def _words_of(self, text: str) -> list[str]:
        spans = word_spans(text, contractions=self._words.has_contractions)
        words = [normalize("NFC", text[start:end]).replace("’", "'") for start, end in spans]
        words = [word for word in words if any(map(str.isalnum, word))]
        return words if self._words.is_cased else [word.lower() for word in words]

    def _find(self, words: Iterable[str]) -> dict[str, list[int]]:
        """The rows of each word: its own, or those of its parts, or none."""
        parts = {word: [word, *re.split("[-/]", word)] for word in words}
        known = self._find_whole({part for each in parts.values() for part in each})
        rows = {}
        for word, (_, *others) in parts.items():
            read = [word] if word in known else others
            rows[word] = [known[part] for part in read if part in known]
        return rows

    def _find_whole(self, words: Collection[str]) -> dict[str, int]:
        """The rows of words as they are or lower-cased; unknown ones are left out."""
        known = self._words.vocabulary.rows(words)
        if self._words.is_cased:
            lower = self._words.vocabulary.rows(word.lower() for word in words)
            for word in words:
                if word not in known and word.lower() in lower:
                    known[word] = lower[word.lower()]
        return known


def word_spans(text: str, *, contractions: bool) -> Iterator[tuple[int, int]]:
    """The character ranges [start, end) of the words and punctuation marks of a text.

    Args:
        text: any text.
        contractions: split "don't" into "do" and "n't".
    """
    for match in _TOKEN.finditer(text):
        start, end = match.span()
        cut = _second_word(match[0]) if contractions else 0
        if cut:
            yield start, start + cut
        yield start + cut, end


def _second_word(word: str) -> int:
    """The start of the second word in a contraction; 0 for other words."""
    if "'" in word or "’" in word:
        found = _CONTRACTION.search(word)
        return found.start() if found else 0
    return _FUSED.get(word.lower(), 0)
