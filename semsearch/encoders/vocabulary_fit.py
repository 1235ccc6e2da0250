"""How well the vocabulary of an encoder suits texts.

In a language that it was not made for, words fall into many pieces, or into none that it knows; how
many tells how well a model reads the language (Rust et al. 2021, How good is your tokenizer?). Of
MiniLM's English vocabulary, a word has 1.0 pieces in texts about films, 1.3 in papers of biology
and 1.9 in Portuguese and German; in Russian, nearly every letter is one.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy
from numpy.typing import NDArray

from semsearch.encoders.model_folder import find_model, model_modules
from semsearch.errors import EncoderError

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

#: How many texts are worth reading, and how much of each.
SAMPLE_TEXTS, SAMPLE_CHARACTERS = 64, 400

#: Texts of fewer letters or words are not judged: names, codes, headings.
LEAST_LETTERS, LEAST_WORDS = 10, 4
#: Pieces a word, and a letter of it; technical terms have more of the one, not of the other.
MOST_PIECES_A_WORD, MOST_PIECES_A_LETTER = 1.5, 0.3
#: The share of letters that are in pieces that the vocabulary does not have.
MOST_UNKNOWN = 0.1
#: Vocabularies of so many pieces are shared by languages, which have more pieces a word by design.
SHARED_VOCABULARY = 100_000

#: What it takes to say that texts are read badly: so many of them, and such a share.
POOR_TEXTS, POOR_SHARE = 2, 0.25

_AROUND_WORDS = "!\"#$%&'()*+,-./:;<=>?@[]^_`{|}~«»“”„‘’…–—¿¡،؛؟।"
_INSIDE_WORDS = dict.fromkeys(map(ord, "'’-"))
#: Thai, Lao, Burmese, Khmer, kana, Chinese characters.
_WITHOUT_SPACES = re.compile("[\u0e01-\u0eff\u1000-\u109f\u1780-\u17ff\u3041-\u30ff\u3400-\u9fff]")


class Fit(NamedTuple):
    """How many texts a vocabulary does not suit."""

    texts: int  #: that were judged
    poor: int  #: of these
    pieces_a_word: float  #: in these; NaN where none has words between spaces

    @property
    def is_poor(self) -> bool:
        """Whether it is worth telling."""
        return self.poor >= POOR_TEXTS and self.poor >= POOR_SHARE * self.texts


def vocabulary_fit(tokenizer: Tokenizer, texts: Sequence[str]) -> Fit:
    """How many of some texts a vocabulary does not suit."""
    heads = [text[:SAMPLE_CHARACTERS] for text in texts[:SAMPLE_TEXTS]]
    unknown = {tokenizer.token_to_id(piece) for piece in ("[UNK]", "<unk>")}
    is_shared = tokenizer.get_vocab_size() >= SHARED_VOCABULARY
    judged = poor = words = pieces = 0
    for text, encoding in zip(heads, tokenizer.encode_batch(heads), strict=True):
        read = _Read(text, encoding, unknown)
        if read.letters < LEAST_LETTERS or (read.words < LEAST_WORDS and not read.is_unspaced):
            continue
        judged += 1
        if read.is_unknown or (read.is_in_pieces and not is_shared):
            poor += 1
            words += read.words
            pieces += read.pieces
    return Fit(judged, poor, pieces / words if words else numpy.nan)


def tokenizer_of(spec: str) -> Tokenizer | None:
    """The tokenizer of a model on this machine, without the model; None where it has none."""
    if spec.partition(":")[0] in ("hashing", "glove"):
        return None
    from tokenizers import Tokenizer

    try:
        folder = find_model(spec, local_files_only=True).path
        modules = model_modules(folder)
    except EncoderError:
        return None  # whoever needs the model is told
    file = (folder / modules[0].path if modules else folder) / "tokenizer.json"
    try:
        return Tokenizer.from_file(str(file))
    except Exception:
        return None


class _Read:
    """How a vocabulary reads a text."""

    def __init__(self, text: str, encoding: Encoding, unknown: set[int | None]) -> None:
        spans = numpy.array(encoding.offsets, numpy.int64).reshape(-1, 2)
        spans = spans[spans[:, 1] > spans[:, 0]]  # special pieces are nowhere
        text = text[: spans[:, 1].max(initial=0)]  # where it is cut off
        is_letter = numpy.array([*map(str.isalpha, text)], bool)
        self.letters = int(is_letter.sum())
        lost = sum(
            int(is_letter[start:end].sum())
            for (start, end), piece in zip(encoding.offsets, encoding.ids, strict=True)
            if piece in unknown
        )
        ends = numpy.sort(spans[:, 1] - 1)
        # A letter of several pieces is read byte by byte.
        in_bytes = int(is_letter[ends].sum()) > self.letters
        self.is_unknown = lost > MOST_UNKNOWN * self.letters or in_bytes
        self.is_unspaced = bool(_WITHOUT_SPACES.search(text))
        places = numpy.array(_words(text), numpy.int64).reshape(-1, 2)
        self.words = len(places)
        self.pieces = int(_between(ends, places).sum())
        letters = sum(len(unicodedata.normalize("NFD", text[i:j])) for i, j in places.tolist())
        self.is_in_pieces = (
            self.words >= LEAST_WORDS
            and self.pieces > MOST_PIECES_A_WORD * self.words
            and self.pieces > MOST_PIECES_A_LETTER * letters
        )


def _between(ends: NDArray[numpy.int64], places: NDArray[numpy.int64]) -> NDArray[numpy.int64]:
    """How many of some sorted places are within each of the ranges [start, end)."""
    starts, stops = numpy.searchsorted(ends, places).reshape(-1, 2).T
    return stops - starts


def _words(text: str) -> list[tuple[int, int]]:
    """Where words stand: letters, marks, apostrophes and hyphens; not capitalised, as names are."""
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
