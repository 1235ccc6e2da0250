"""Names of groups of texts that a person would give them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy
from numpy.typing import NDArray

from semsearch.explore.keywords import WORD, composed, function_words
from semsearch.explore.vectors import Rows
from semsearch.protocols import Matrix
from semsearch.storage.words.forms import folded

#: A value that so many of a group's texts have, and so many times as many as of all, is its name.
SHARE, LIFT = 0.4, 2.0
#: The longest value that is a name.
LONGEST = 30
#: The words of a name, and how many are considered.
WORDS, CANDIDATES = 2, 12
#: The least texts of a group with a word of its name: a twentieth, but at least two.
TWENTIETH, LEAST = 20, 2
#: Endings of forms that are counted with the word itself, and its own in their place.
_ENDINGS = (("s", ""), ("es", ""), ("ed", ""), ("d", ""), ("ing", ""), ("ing", "e"))


def group_names(
    texts: Sequence[str],
    vectors: Matrix,
    groups: Sequence[Rows],
    encode: Callable[[Sequence[str]], Matrix],
    metadata: Sequence[Mapping[str, Any]] = (),
    stop_words: Collection[str] = (),
) -> list[str]:
    """A name for each group: a value of a field that distinguishes it, or its words.

    >>> from semsearch import load_encoder
    >>> encode = load_encoder("hashing").encode_documents
    >>> texts = ["bread and butter", "fresh bread", "deep water", "water and ice"]
    >>> group_names(texts, encode(texts), [[0, 1], [2, 3]], encode)
    ['bread', 'water']

    Of the words with the highest class-based TF-IDF (as BERTopic's, Grootendorst 2022, with the
    share of the group's texts and its ratio to that of all), without stop words, those whose
    vectors are nearest to the group's centroid and far from that of all. Forms such as plurals
    count as one word. A value that several groups share is followed by a word of each.

    Args:
        texts: the collection.
        vectors: those of the texts, shape (number of texts, dimension).
        groups: the positions of the texts of each group.
        encode: returns the vectors of words, of the same encoder.
        metadata: that of the document of each text; empty for none.
        stop_words: further words that are left out, case-folded.
    """
    candidates = _words(texts, groups, function_words().union(stop_words))
    words = _nearest(candidates, vectors, groups, encode)
    values = _values(groups, metadata) if metadata else [None] * len(groups)
    shared = Counter(values)
    names = []
    for number, (value, found) in enumerate(zip(values, words, strict=True), 1):
        if value is None:
            names.append(", ".join(found) or f"group {number}")
        elif shared[value] == 1:
            names.append(value)
        else:
            distinct = [word for word in found if word not in value.lower()]
            names.append(": ".join([value, *distinct[:1]]))
    return names


def _values(groups: Sequence[Rows], metadata: Sequence[Mapping[str, Any]]) -> list[str | None]:
    """Of each group, the value of a field that many of its texts have and few others."""
    totals = Counter(pair for one in metadata for pair in set(_texts_of(one)))
    found: list[str | None] = []
    for rows in groups:
        counts = Counter(pair for row in rows for pair in set(_texts_of(metadata[row])))
        lift = {
            pair: count / len(rows) / (totals[pair] / len(metadata))
            for pair, count in counts.items()
            if count >= max(LEAST, SHARE * len(rows))
        }
        best = max(lift, key=lambda pair: (lift[pair] * counts[pair], pair), default=None)
        found.append(best[1] if best and lift[best] >= LIFT else None)
    return found


def _texts_of(metadata: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in metadata.items():
        for item in value if isinstance(value, list) else (value,):
            if isinstance(item, str) and 1 < len(item) <= LONGEST and any(map(str.isalpha, item)):
                yield name, item


def _nearest(
    candidates: Sequence[Sequence[str]],
    vectors: Matrix,
    groups: Sequence[Rows],
    encode: Callable[[Sequence[str]], Matrix],
) -> list[list[str]]:
    """Of the candidates of each group, the words whose meaning distinguishes it most."""
    distinct = sorted({word for words in candidates for word in words})
    encoded = dict(zip(distinct, encode(distinct), strict=True))
    mean = _direction(vectors)
    nearest = []
    for words, rows in zip(candidates, groups, strict=True):
        towards = _direction(vectors[rows]) - mean
        closeness = {word: float(encoded[word] @ towards) for word in words}
        nearest.append(sorted(words, key=closeness.__getitem__, reverse=True)[:WORDS])
    return nearest


def _direction(vectors: Matrix) -> NDArray[Any]:
    """The mean of unit vectors, of unit length."""
    mean: NDArray[Any] = vectors.mean(axis=0)
    mean /= max(float(numpy.linalg.norm(mean)), 1e-9)
    return mean


def _words(
    texts: Sequence[str], groups: Sequence[Rows], left_out: Collection[str]
) -> list[list[str]]:
    """Up to CANDIDATES words of each group by class-based TF-IDF, highest first."""
    from scipy.sparse import csr_array
    from sklearn.feature_extraction.text import CountVectorizer

    vectorizer = CountVectorizer(preprocessor=composed, token_pattern=WORD, binary=True)
    try:
        counts = csr_array(vectorizer.fit_transform(texts))
    except ValueError:  # there are no words
        return [[] for _ in groups]
    names = vectorizer.get_feature_names_out().tolist()
    lemmas = _lemmas(names)
    allowed = numpy.array([folded(name) not in left_out and len(name) > 2 for name in names])
    by_group = numpy.array([counts[rows].sum(axis=0) for rows in groups]) * allowed
    merged = numpy.array([numpy.bincount(lemmas, row, len(names)) for row in by_group])
    sizes = numpy.array([len(rows) for rows in groups])[:, None]
    share = merged / sizes
    overall = numpy.maximum(merged.sum(axis=0), 1) / sizes.sum()
    # Otherwise, the rarest words would name large groups.
    common = merged >= numpy.maximum(LEAST, sizes / TWENTIETH)
    weights = numpy.where(common, share * numpy.log(numpy.maximum(share / overall, 1)), 0.0)
    best = numpy.argsort(-weights, axis=1, kind="stable")[:, :CANDIDATES]
    return [
        [_form(names, lemmas, by_group[group], lemma) for lemma in row if weights[group, lemma]]
        for group, row in enumerate(best)
    ]


def _lemmas(names: Sequence[str]) -> NDArray[Any]:
    """Of each word, the place of the word that it is a form of, or its own."""
    place = {name: number for number, name in enumerate(names)}

    def lemma(name: str) -> int:
        for ending, own in _ENDINGS:
            stem = name.removesuffix(ending)
            if stem != name and len(stem) > 2 and stem + own in place:
                return place[stem + own]
        return place[name]

    return numpy.array([lemma(name) for name in names])


def _form(names: Sequence[str], lemmas: NDArray[Any], counts: NDArray[Any], lemma: int) -> str:
    """The most frequent form of a word in a group."""
    forms = numpy.flatnonzero(lemmas == lemma)
    return names[int(forms[numpy.argmax(counts[forms])])]
