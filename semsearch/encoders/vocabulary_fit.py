"""How well the vocabulary of an encoder suits texts.

In languages that a vocabulary does not cover, words are split into many pieces, or into unknown
ones; the number of pieces indicates how well a model reads a language (Rust et al. 2021, How good
is your tokenizer?). With MiniLM's English vocabulary, a word has 1.0 pieces in texts about films,
1.3 in biology papers and 1.9 in Portuguese and German; in Russian, nearly every letter is one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy

from semsearch.encoders.model_folder import find_model, transformer_folder

if TYPE_CHECKING:
    from tokenizers import Tokenizer

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

#: Thai, Lao, Burmese, Khmer, kana, Chinese characters: written without spaces.
_UNSPACED = "\u0e01-\u0eff\u1000-\u109f\u1780-\u17ff\u3041-\u30ff\u3400-\u9fff"


@cache
def _word_pattern() -> re.Pattern[str]:
    """A word between spaces and punctuation marks; no names, codes or addresses."""
    from semsearch.corpus.texts import marks

    letter = rf"[^\W\d_{_UNSPACED}]"
    letters = rf"{letter}(?:{letter}|[{marks()}])*"
    return re.compile(rf"(?<!\S)[^\w\s]*({letters}(?:['’-]{letters})*)[^\w\s]*(?!\S)")


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
    judged = poor = poor_words = poor_pieces = 0
    for text, encoding in zip(heads, tokenizer.encode_batch(heads), strict=True):
        is_letter = numpy.array([*map(str.isalpha, text)], bool)
        letters = int(is_letter.sum())
        found = _word_pattern().finditer(text)
        words = [match.span(1) for match in found if not match[1][0].isupper()]
        is_unspaced = bool(re.search(f"[{_UNSPACED}]", text))
        if letters < MIN_LETTERS or (len(words) < MIN_WORDS and not is_unspaced):
            continue
        judged += 1
        in_word = numpy.zeros(len(text), bool)
        for start, end in words:
            in_word[start:end] = True
        # Special pieces have no characters.
        last = [end - 1 for start, end in encoding.offsets if end > start]
        pieces = int(in_word[last].sum())
        lost = sum(
            int(is_letter[start:end].sum())
            for (start, end), piece in zip(encoding.offsets, encoding.ids, strict=True)
            if piece in unknown
        )
        # Letters that are split into several pieces are read byte by byte.
        is_unknown = lost > MAX_UNKNOWN * letters or is_letter[last].sum() > letters
        is_split = (
            len(words) >= MIN_WORDS
            and pieces > MAX_PIECES_PER_WORD * len(words)
            and pieces > MAX_PIECES_PER_LETTER * in_word.sum()
        )
        if is_unknown or (is_split and not is_shared):
            poor += 1
            poor_words += len(words)
            poor_pieces += pieces
    return Fit(judged, poor, poor_pieces / poor_words if poor_words else numpy.nan)


def tokenizer_of(spec: str) -> Tokenizer | None:
    """The tokenizer of a model on this machine, without the model; None if it has none."""
    from tokenizers import Tokenizer

    with suppress(Exception):  # loading the model reports the error
        folder = transformer_folder(find_model(spec, local_files_only=True).path)
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return tokenizer
    return None
