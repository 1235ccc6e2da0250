"""Words as split by the Penn Treebank tokenizer, which GloVe's authors used.

After the Stanford tokenizer (Manning et al. 2014) and the Treebank's ``tokenizer.sed``, without
their rewriting of quotes and brackets, which the published GloVe files contain unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from semsearch.corpus.texts import marks

#: Part of fingerprints: incremented with every change of tokenisation.
TOKENIZER_VERSION = 2

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
