"""Words as the Penn Treebank divides them, which is how GloVe's authors divided their texts.

After the Stanford tokenizer (Manning et al. 2014) and the Treebank's ``tokenizer.sed``, without
their rewriting of quotes and brackets, which the published GloVe files hold as they are written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

#: Part of fingerprints: grows with every change of what a text is divided into.
TOKENIZER_VERSION = 1

_ABBREVIATIONS = (
    "Mr|Mrs|Ms|Dr|Prof|Rev|Gov|Sen|Rep|Gen|Col|Maj|Capt|Lt|St|Jr|Sr|Inc|Corp|Co|Ltd|vs|etc|"
    "Jan|Feb|Aug|Sept|Oct|Nov|Dec"
)

_TOKEN = re.compile(
    rf"""
      (?:https?://|www\.)[^\s<>"]*[^\s<>".,;:!?)\]'’]  # addresses
    | [\w.+-]{{1,64}}@\w+(?:[.-]\w+)+
    | (?:{_ABBREVIATIONS})\.(?!\w)                      # Dr.
    | No\.(?=\s?\d)                                    # No. 5
    | (?:[^\W\d_]\.){{2,}}(?![^\W_])                   # U.S., e.g.
    | \d+(?:[.,:/]\d+)+(?![^\W_])                      # 3.14, 1,000, 10:30, 1/2
    | [^\W_]+(?:[-/&'’][^\W_]+)*                       # words, well-known, O'Brien
    | \.{{2,}} | -{{2,}} | _+ | `` | ''                # ellipses, dashes, quotes
    | \S
    """,
    re.VERBOSE | re.IGNORECASE,
)
_CONTRACTION = re.compile(r"(?:n['’]t|['’](?:s|m|d|re|ve|ll))$", re.IGNORECASE)

#: Two words written as one, and where the second begins. Not "cannot": the GloVe files have it.
_FUSED = {"gimme": 3, "gonna": 3, "gotta": 3, "lemme": 3, "wanna": 3}


def word_spans(text: str, *, contractions: bool) -> Iterator[tuple[int, int]]:
    """Where the words and marks of a text stand: characters [start, end).

    Args:
        text: any text.
        contractions: whether "don't" is two words, "do" and "n't".
    """
    for match in _TOKEN.finditer(text):
        start, end = match.span()
        cut = _second_word(match[0]) if contractions else 0
        if cut:
            yield start, start + cut
        yield start + cut, end


def compound_parts(word: str) -> list[str]:
    """The words that hyphens or slashes join in a word; none where there are no such marks."""
    parts = re.split("[-/]", word)
    return [part for part in parts if part] if len(parts) > 1 else []


def _second_word(word: str) -> int:
    """Where in a contraction the second word begins; 0 in other words."""
    if "'" in word or "’" in word:
        found = _CONTRACTION.search(word)
        return found.start() if found else 0
    return _FUSED.get(word.lower(), 0)
