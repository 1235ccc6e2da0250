"""How well the vocabulary of an encoder suits texts.

In languages that a vocabulary does not cover, words are split into many pieces, or into unknown
ones; the number of pieces indicates how well a model reads a language (Rust et al. 2021, How good
is your tokenizer?). With MiniLM's English vocabulary, a word has 1.0 pieces in texts about films,
1.3 in biology papers and 1.9 in Portuguese and German; in Russian, nearly every letter is one.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy
from numpy.typing import NDArray

from semsearch.encoders.model_folder import find_model, transformer_folder
from semsearch.errors import EncoderError

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

#: The number of texts sampled, and the characters read of each.
SAMPLE_TEXTS, SAMPLE_CHARACTERS = 64, 400

#: Texts with fewer letters or words are skipped: names, codes, headings.
MIN_LETTERS, MIN_WORDS = 10, 4
#: The limits of pieces per word and per letter; technical terms exceed only the first.
MAX_PIECES_PER_WORD, MAX_PIECES_PER_LETTER = 1.5, 0.3
#: The maximum share of letters in unknown pieces.
MAX_UNKNOWN = 0.1
#: Vocabularies of at least this size are multilingual, with more pieces per word by design.
SHARED_VOCABULARY = 100_000

#: The number and share of poorly read texts that cause a warning.
POOR_TEXTS, POOR_SHARE = 2, 0.25

_AROUND_WORDS = "!\"#$%&'()*+,-./:;<=>?@[]^_`{|}~«»“”„‘’…–—¿¡،؛؟।"
_INSIDE_WORDS = dict.fromkeys(map(ord, "'’-"))
#: Thai, Lao, Burmese, Khmer, kana, Chinese characters.
_WITHOUT_SPACES = re.compile("[\u0e01-\u0eff\u1000-\u109f\u1780-\u17ff\u3041-\u30ff\u3400-\u9fff]")


class Fit(NamedTuple):
    """The number of texts that a vocabulary does not suit."""

    texts: int  #: texts judged
    poor: int  #: texts with a poor fit
    pieces_per_word: float  #: in texts with a poor fit; NaN if none has words between spaces

    @property
    def is_poor(self) -> bool:
        """Whether the fit is poor enough for a warning."""
        return self.poor >= POOR_TEXTS and self.poor >= POOR_SHARE * self.texts


def vocabulary_fit(tokenizer: Tokenizer, texts: Sequence[str]) -> Fit:
    """Count the texts that a vocabulary does not suit."""
    heads = [text[:SAMPLE_CHARACTERS] for text in texts[:SAMPLE_TEXTS]]
    unknown = {tokenizer.token_to_id(piece) for piece in ("[UNK]", "<unk>")}
    is_shared = tokenizer.get_vocab_size() >= SHARED_VOCABULARY
    judged = poor = words = pieces = 0
    for text, encoding in zip(heads, tokenizer.encode_batch(heads), strict=True):
        read = _Read(text, encoding, unknown)
        if read.letters < MIN_LETTERS or (read.words < MIN_WORDS and not read.is_unspaced):
            continue
        judged += 1
        if read.is_unknown or (read.is_in_pieces and not is_shared):
            poor += 1
            words += read.words
            pieces += read.pieces
    return Fit(judged, poor, pieces / words if words else numpy.nan)


def tokenizer_of(spec: str) -> Tokenizer | None:
    """The tokenizer of a model on this machine, without the model; None if it has none."""
    if spec.partition(":")[0] in ("hashing", "glove"):
        return None
    from tokenizers import Tokenizer

    try:
        folder = transformer_folder(find_model(spec, local_files_only=True).path)
    except EncoderError:
        return None  # loading the model reports the error
    try:
        return Tokenizer.from_file(str(folder / "tokenizer.json"))
    except Exception:
        return None


class _Read:
    """Statistics of the pieces of a text."""

    def __init__(self, text: str, encoding: Encoding, unknown: set[int | None]) -> None:
        spans = numpy.array(encoding.offsets, numpy.int64).reshape(-1, 2)
        spans = spans[spans[:, 1] > spans[:, 0]]  # special pieces have no characters
        text = text[: spans[:, 1].max(initial=0)]  # the part that was tokenised
        is_letter = numpy.array([*map(str.isalpha, text)], bool)
        self.letters = int(is_letter.sum())
        lost = sum(
            int(is_letter[start:end].sum())
            for (start, end), piece in zip(encoding.offsets, encoding.ids, strict=True)
            if piece in unknown
        )
        ends = numpy.sort(spans[:, 1] - 1)
        # Letters that are split into several pieces are read byte by byte.
        in_bytes = int(is_letter[ends].sum()) > self.letters
        self.is_unknown = lost > MAX_UNKNOWN * self.letters or in_bytes
        self.is_unspaced = bool(_WITHOUT_SPACES.search(text))
        places = numpy.array(_words(text), numpy.int64).reshape(-1, 2)
        self.words = len(places)
        self.pieces = int(_between(ends, places).sum())
        letters = sum(len(unicodedata.normalize("NFD", text[i:j])) for i, j in places.tolist())
        self.is_in_pieces = (
            self.words >= MIN_WORDS
            and self.pieces > MAX_PIECES_PER_WORD * self.words
            and self.pieces > MAX_PIECES_PER_LETTER * letters
        )


def _between(ends: NDArray[numpy.int64], places: NDArray[numpy.int64]) -> NDArray[numpy.int64]:
    """The number of sorted positions within each of the ranges [start, end)."""
    starts, stops = numpy.searchsorted(ends, places).reshape(-1, 2).T
    return stops - starts


def _words(text: str) -> list[tuple[int, int]]:
    """Character ranges of words: letters, marks, apostrophes and hyphens; not capitalised."""
    found = []
    for part in re.finditer(r"\S+", text):
        word = part[0].strip(_AROUND_WORDS)
        if _is_word(word) and not word[0].isupper():
            start = part.start() + part[0].index(word)
            found.append((start, start + len(word)))
    return found


def _is_word(text: str) -> bool:
    if not text.isalpha():
        kinds = {unicodedata.category(one)[0] for one in text.translate(_INSIDE_WORDS)}
        return bool(kinds) and kinds <= {"L", "M"} and not _WITHOUT_SPACES.search(text)
    return text.isascii() or not _WITHOUT_SPACES.search(text)
