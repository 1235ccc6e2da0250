"""The words that tell a group of texts from the rest.

Log-likelihood ratios (Dunning 1993, Accurate methods for the statistics of surprise and
coincidence): how unlikely it is that a word is in so many texts of the group by chance. Function
words (the, of, she), whose share differs between groups as well, are left out.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Sequence
from functools import cache
from typing import Any

import numpy
from numpy.typing import NDArray

from semsearch.analysis.forms import folded, in_pairs, marks
from semsearch.pairwise import Rows

#: Two letters or more with their marks, begun by a letter: no numbers.
WORD = rf"(?u)\b[^\W\d_][\w{marks()}]+"
#: What chance exceeds for one word in twenty: chi-squared with one degree of freedom.
MIN_RATIO = 3.84
#: In how many texts of a group a word is, or more: what one text has alone tells of that text.
MIN_TEXTS = 2

#: What scikit-learn's list of English stop words has of other words; most of them are named by
#: Nothman, Qin & Yurchak 2018, Stop Word Lists in Free Open-source Software Packages.
_CONTENT_WORDS = (
    "amount bill bottom call cry describe detail empty fill find fire found front full interest "
    "mill mine move name part serious show side sincere system thick thin top"
)
#: What `WORD` makes of don't and we'll.
_CUT_WORDS = "aren couldn didn doesn don hadn hasn haven isn ll mustn shouldn ve wasn weren wouldn"


@cache
def function_words() -> frozenset[str]:
    """English words that name nothing."""
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    listed = frozenset(ENGLISH_STOP_WORDS) - {*_CONTENT_WORDS.split()}
    return listed | {*_CUT_WORDS.split()}


def keywords(
    texts: Sequence[str], groups: Sequence[Rows], count: int, stop_words: Collection[str] = ()
) -> list[tuple[str, ...]]:
    """For each group its `count` keywords, or fewer, by log-likelihood ratio, highest first.

    A word counts once a text. A group that is all of the collection has none.

    Args:
        texts: the collection.
        groups: places of the texts of each group.
        count: how many keywords at most.
        stop_words: what else is left out beside English function words, case-folded.
    """
    from scipy.sparse import csr_array
    from sklearn.feature_extraction.text import CountVectorizer

    vectorizer = CountVectorizer(preprocessor=_composed, token_pattern=WORD, binary=True)
    try:
        counts = vectorizer.fit_transform(texts)
    except ValueError:  # its way to say that there is no word
        return [() for _ in groups]
    names = vectorizer.get_feature_names_out()
    left_out = function_words().union(stop_words)
    telling = numpy.array([folded(name) not in left_out for name in names], numpy.bool)
    n = len(texts)
    everywhere = numpy.asarray(counts.sum(axis=0), numpy.float64).ravel()
    members = numpy.concatenate([*groups, numpy.empty(0, numpy.int64)])
    ends = numpy.cumsum([0, *map(len, groups)])
    belongs = csr_array((numpy.ones(len(members)), members, ends), (len(groups), n))
    inside = (belongs @ counts).tocsr()
    found = []
    for number, rows in enumerate(groups):
        places = slice(inside.indptr[number], inside.indptr[number + 1])
        words, often = inside.indices[places], inside.data[places]
        shared = telling[words] & (often >= min(MIN_TEXTS, len(rows)))
        words, often = words[shared], often[shared]
        ratios = _ratios(often, everywhere[words], len(rows), n)
        order = numpy.lexsort((words, -ratios))[:count]
        found.append(tuple(names[words[order[ratios[order] >= MIN_RATIO]]].tolist()))
    return found


def _composed(text: str) -> str:
    """In one form and small letters; scripts without spaces in pairs of characters."""
    return in_pairs(unicodedata.normalize("NFC", text).lower())


def _ratios(often: NDArray[Any], everywhere: NDArray[Any], size: int, n: int) -> NDArray[Any]:
    """Dunning's G² of words in `often` of `size` texts and in `everywhere` of `n`, signed."""
    from scipy.special import xlogy

    expected = everywhere * (size / n)
    table = (  # with the word and without it, within the group and without
        (often, expected),
        (everywhere - often, everywhere - expected),
        (size - often, size - expected),
        (n - size - everywhere + often, n - size - everywhere + expected),
    )
    ratios = 2 * sum(xlogy(seen, seen / numpy.maximum(wanted, 1e-9)) for seen, wanted in table)
    signed: NDArray[Any] = numpy.where(often > expected, ratios, -ratios)
    return signed
