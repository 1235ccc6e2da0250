"""Normalisation of words in texts and queries, so that spelling variants match.

*   Compatibility forms become ordinary letters (NFKC), and case is folded.
*   Marks that are optional in writing are dropped: accents that stand alone, the vowel points of
    Arabic and Hebrew, soft hyphens, joiners. FTS5 drops those of Latin letters; й stays й, and the
    vowel signs of Indic and Thai words stay in them.
*   Letters with a common plain spelling match it: Łódź and lodz, ещё and еще, an alef with and
    without hamza, Turkish ı and i (most of this is in Lucene's ASCIIFoldingFilter and its
    normalisers of Arabic, Persian and Hindi).
*   Runs of the scripts that put no spaces between words (Chinese, Japanese, Thai, Lao, Khmer,
    Burmese), and of Korean, whose particles are attached, become overlapping pairs of characters:
    東京都 is 東京, 京都, 都. A word of two characters matches its pair, a single character the
    pairs that start with it. For retrieval, pairs are as good as words from a dictionary (Nie, Gao,
    Zhang & Zhou 2000, On the use of words and n-grams for Chinese information retrieval).

*   Signs that belong to a word are spelled: C++, C# and .NET are cplusplus, csharp and dotnet.

Other ASCII is not changed.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from itertools import zip_longest

from semsearch.corpus.texts import marks

#: The scripts that are cut into pairs, without their digits and punctuation.
_UNSPACED = "".join(
    (
        "\u0e01-\u0e3a\u0e40-\u0e4e",  # Thai
        "\u0e81-\u0ece\u0edc-\u0edf",  # Lao
        "\u1000-\u103f\u1050-\u108f\u109a-\u109d\ua9e0-\ua9ef\uaa60-\uaa7f",  # Burmese
        "\u1780-\u17d3\u17d7\u17dc\u17dd",  # Khmer
        "\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3038-\u303c",  # marks of Chinese and Japanese
        "\u3041-\u309a\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff",  # kana
        "\u3105-\u312f\u31a0-\u31bf",  # Bopomofo
        "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff",  # Chinese characters
        "\u1100-\u11ff\ua960-\ua97c\uac00-\ud7a3\ud7b0-\ud7fb",  # Korean
    )
)

# The patterns below are compiled when a text first needs them: plain ASCII needs none.


@cache
def run_pattern() -> re.Pattern[str]:
    """Runs of the scripts that put no spaces between words."""
    return re.compile(f"([{_UNSPACED}]+)")


def _is_optional(mark: str) -> bool:
    """Whether a word without this mark is the same word."""
    kind = unicodedata.combining(mark)  # 10 to 36: vowel points; 200 on: accents; 1: strokes
    return kind == 1 or 10 <= kind <= 36 or kind >= 200


@cache
def _dropped() -> re.Pattern[str]:
    """Soft hyphens, the stretching of Arabic lines, joiners, variation selectors, optional marks.

    In Arabic script, the non-joiner ends a part of a word, so it stays, as a separator.
    """
    return re.compile(
        "[\u00ad\u0640\u200d\u2060\ufe00-\ufe2f\U000e0100-\U000e01ef"
        f"{''.join(filter(_is_optional, marks()))}]+|(?<![\u0600-\u06ff])\u200c"
    )


@cache
def _unit() -> re.Pattern[str]:
    """A character of a run with its marks."""
    return re.compile(".[{}]*".format("".join(filter(run_pattern().match, marks()))), re.DOTALL)


#: Letters with a common plain spelling.
_PLAINER = (
    dict(zip("ıłøđħŧðё", "ilodhtdе", strict=True))
    | {"æ": "ae", "œ": "oe", "þ": "th"}
    | dict.fromkeys("آأإٱ", "ا")  # alef with hamza or madda
    | {"ى": "ي", "ی": "ي", "ک": "ك"}  # as Arabic and as Persian keyboards have them
    | {"ँ": "ं"}  # candrabindu, anusvara
)
_NOT_PLAIN = re.compile(f"[{''.join(_PLAINER)}]")


@cache
def _word() -> re.Pattern[str]:
    """Letters, digits and marks; FTS5 takes characters newer than Unicode 6.1 for letters."""
    return re.compile(rf"[\w{marks()}]+")


def plain(text: str) -> str:
    """A folded text with plain spellings; applied after stemming."""
    return _NOT_PLAIN.sub(lambda letter: _PLAINER[letter[0]], text)


def in_pairs(text: str) -> str:
    """A text whose runs without spaces are separated into pairs."""
    return run_pattern().sub(lambda run: f" {' '.join(pairs(run[0]))} ", text)


#: Signs that belong to a word: C++, C#, .NET.
_SIGNS = re.compile(
    r"\.(?<![\w.].)(?=[^\W\d_])|\+(?<=[^\W\d_].)\+?(?!\w)|#(?<=[^\W\d_].)(?!\w)", re.DOTALL
)
_SPELLED = {".": "dot", "+": "plus", "++": "plusplus", "#": "sharp"}


def spelled(text: str) -> str:
    """A text whose words with signs are spelled as people say them: ``cplusplus``, ``dotnet``."""
    return _SIGNS.sub(lambda sign: _SPELLED[sign[0]], text)


def folded(text: str) -> str:
    """A normalised form of a text, in which spelling variants are equal."""
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return spelled(_dropped().sub("", text))


def pairs(run: str) -> list[str]:
    """Overlapping pairs of characters; the last character is single."""
    characters = _unit().findall(run)
    return [
        first + second for first, second in zip_longest(characters, characters[1:], fillvalue="")
    ]


def words(text: str) -> list[str]:
    """The words of a folded text."""
    return _word().findall(text)
