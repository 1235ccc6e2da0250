"""The keywords that distinguish a group of texts from the rest.

They have the highest log-likelihood ratios (Dunning 1993, Accurate methods for the statistics of
surprise and coincidence): it is unlikely that they occur in this many texts of the group by chance.
Function words (the, of, she), whose frequency also varies between groups, are excluded.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Sequence
from functools import cache
from typing import Any

import numpy
from numpy.typing import NDArray

from semsearch.corpus.texts import marks
from semsearch.explore.vectors import Rows
from semsearch.storage.words.forms import folded, in_pairs

#: At least two characters including marks, beginning with a letter: no numbers.
WORD = rf"(?u)\b[^\W\d_][\w{marks()}]+"
#: The 5 % significance level: chi-squared with one degree of freedom.
MIN_RATIO = 3.84
#: The minimum number of texts with the word: a word of one text only describes that text.
MIN_TEXTS = 2

#: Content words in scikit-learn's list of English stop words; most are listed by Nothman, Qin &
#: Yurchak 2018, Stop Word Lists in Free Open-source Software Packages.
_CONTENT_WORDS = (
    "amount bill bottom call cry describe detail empty fill find fire found front full interest "
    "mill mine move name part serious show side sincere system thick thin top"
)
#: What `WORD` leaves of contractions such as don't and we'll.
_CUT_WORDS = "aren couldn didn doesn don hadn hasn haven isn ll mustn shouldn ve wasn weren wouldn"


@cache
def function_words() -> frozenset[str]:
    """English function words."""
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    listed = frozenset(ENGLISH_STOP_WORDS) - {*_CONTENT_WORDS.split()}
    return listed | {*_CUT_WORDS.split()}


def keywords(
    texts: Sequence[str], groups: Sequence[Rows], count: int, stop_words: Collection[str] = ()
) -> list[tuple[str, ...]]:
    """Up to `count` keywords of each group by log-likelihood ratio, highest first.

    A word counts once per text. A group that is the whole collection has none.

    Args:
        texts: the collection.
        groups: the positions of the texts of each group.
        count: the maximum number of keywords of a group.
        stop_words: excluded words in addition to English function words, case-folded.
    """
    from scipy.sparse import csr_array
    from sklearn.feature_extraction.text import CountVectorizer

    vectorizer = CountVectorizer(preprocessor=composed, token_pattern=WORD, binary=True)
    try:
        counts = csr_array(vectorizer.fit_transform(texts))
    except ValueError:  # there are no words
        return [() for _ in groups]
    names = vectorizer.get_feature_names_out()
    left_out = function_words().union(stop_words)
    allowed = numpy.array([folded(name) not in left_out for name in names], numpy.bool)
    totals = counts.sum(axis=0)
    found = []
    for rows in groups:
        frequencies = counts[rows].sum(axis=0)
        words = numpy.flatnonzero(allowed & (frequencies >= min(MIN_TEXTS, len(rows))))
        ratios = _ratios(frequencies[words], totals[words], len(rows), len(texts))
        order = numpy.argsort(-ratios, kind="stable")[:count]
        found.append(tuple(names[words[order[ratios[order] >= MIN_RATIO]]].tolist()))
    return found


def composed(text: str) -> str:
    """Normalise to NFC and lower case; scripts without spaces become pairs of characters."""
    return in_pairs(unicodedata.normalize("NFC", text).lower())


def _ratios(observed: NDArray[Any], totals: NDArray[Any], size: int, n: int) -> NDArray[Any]:
    """Dunning's G², signed, of words in `observed` of `size` texts and in `totals` of `n`."""
    from scipy.special import xlogy

    expected = totals * (size / n)
    table = (  # with and without the word, inside and outside the group
        (observed, expected),
        (totals - observed, totals - expected),
        (size - observed, size - expected),
        (n - size - totals + observed, n - size - totals + expected),
    )
    ratios = 2 * sum(xlogy(seen, seen / numpy.maximum(wanted, 1e-9)) for seen, wanted in table)
    signed: NDArray[Any] = numpy.where(observed > expected, ratios, -ratios)
    return signed
