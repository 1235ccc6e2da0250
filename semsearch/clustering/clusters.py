"""Groups of texts of like meaning, each with its keywords and its central text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy

from semsearch.analysis.forms import folded
from semsearch.arguments import (
    check_callable,
    check_number,
    check_texts,
    check_whole_number,
)
from semsearch.clustering.communities import communities
from semsearch.clustering.kmeans import default_groups, nearest_centroids
from semsearch.clustering.records import Cluster, Clustering, ClusterMethod
from semsearch.clustering.words import keywords
from semsearch.errors import ArgumentError, CombinationError
from semsearch.pairwise import SCORE_DECIMALS, Rows, unit_rows
from semsearch.protocols import Matrix
from semsearch.texts import quantity

DEFAULT_MIN_SIZE = 5
DEFAULT_WORDS = 6


def cluster(
    vectors: Matrix,
    texts: Sequence[str],
    n: int | None = None,
    *,
    min_score: float | None = None,
    min_size: int | None = None,
    seed: int = 0,
    words: int = DEFAULT_WORDS,
    stop_words: Iterable[str] = (),
    notify: Callable[[str], None] = lambda message: None,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> Clustering:
    """Group texts by their vectors.

    >>> from semsearch import cluster, load_encoder
    >>> texts = ["red fish", "a red fish", "blue bird", "a blue bird"]
    >>> groups = cluster(load_encoder("hashing").encode_documents(texts), texts, n=2)
    >>> [group.members for group in groups.clusters]
    [(0, 1), (2, 3)]

    With `min_score`, the groups are communities: their members score that much with one text in
    the middle, and texts that are in none stay ungrouped. Else there are `n` groups, by k-means,
    and every text is in one. Communities compare all pairs; memory grows with the texts alone.

    Args:
        vectors: unit vectors, shape (number of texts, dimension).
        texts: where the words are found.
        n: how many groups; None chooses one by the number of texts, and reports it.
        min_score: the cosine that makes a community.
        min_size: how many texts a community has at least; None is 5.
        seed: where k-means starts; the same seed brings the same groups.
        words: how many keywords a group has, at most.
        stop_words: words that are no keywords; English function words are none in any case.
        notify: called with one line when the number of groups was chosen.
        on_progress: called with the comparisons done, and the most there can be.

    Raises:
        ArgumentError: conflicting arguments, the shapes do not fit, or a vector is not of unit
            length.
    """
    check_arguments(n, min_score, min_size=min_size, seed=seed, words=words)
    check_callable("notify", notify)
    check_callable("on_progress", on_progress)
    vectors, texts = unit_rows(vectors), check_texts("texts", texts)
    if len(vectors) != len(texts):
        raise ArgumentError(
            f"{quantity(len(texts), 'text')}, but {quantity(len(vectors), 'vector')}"
        )
    left_out = set(map(folded, check_texts("stop_words", stop_words)))
    groups: list[Rows] = []
    if min_score is not None:
        method = ClusterMethod.COMMUNITIES
        size = DEFAULT_MIN_SIZE if min_size is None else min_size
        groups = communities(vectors, min_score, size, on_progress)
    else:
        method = ClusterMethod.KMEANS
        wanted = default_groups(len(texts)) if n is None else n
        if len(texts):
            groups = nearest_centroids(vectors, min(wanted, len(texts)), seed, on_progress)
        if n is None:
            notify(
                f"{quantity(len(texts), 'text')} in {quantity(len(groups), 'group')}, "
                "a number by rule of thumb"
            )
        elif len(groups) < n:
            notify(f"{quantity(len(groups), 'group')}, not {n:,}: no more of the texts differ")
    groups.sort(key=lambda rows: (-len(rows), rows[0]))
    told = keywords(texts, groups, words, left_out)
    clusters = tuple(
        Cluster(label, *_by_score(vectors, rows), some)
        for label, (rows, some) in enumerate(zip(groups, told, strict=True), start=1)
    )
    alone = numpy.ones(len(texts), numpy.bool)
    for rows in groups:
        alone[rows] = False
    return Clustering(method, clusters, tuple(numpy.flatnonzero(alone).tolist()))


def check_arguments(
    n: int | None,
    min_score: float | None,
    *,
    min_size: int | None = None,
    seed: int = 0,
    words: int = DEFAULT_WORDS,
) -> None:
    """Refuse what `cluster` would refuse, before there are vectors.

    Raises:
        ArgumentError: conflicting arguments, or one is out of its range.
    """
    if n is not None and min_score is not None:
        raise CombinationError("name a number of groups, or the score that makes one, not both")
    if min_score is None and min_size is not None:
        raise CombinationError(
            "a least size is for groups by score; k-means puts every text in one"
        )
    if min_score is not None:
        check_number("min_score", min_score, -1, 1)
    if n is not None:
        check_whole_number("the number of groups", n, 1)
    if min_size is not None:
        check_whole_number("the least size", min_size, 1)
    check_whole_number("the seed", seed, 0)
    check_whole_number("the number of words", words, 0)


def _by_score(vectors: Matrix, rows: Rows) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Members and their cosines to the centroid, the nearest first; equal ones by place."""
    members = vectors[rows]
    centroid = members.mean(axis=0, dtype=numpy.float64)
    length = float(numpy.linalg.norm(centroid))
    if length > 0:  # opposites have their middle nowhere
        centroid /= length
    cosines = members @ centroid.astype(numpy.float32)
    scores = numpy.clip(cosines.astype(numpy.float64).round(SCORE_DECIMALS), -1, 1)
    order = numpy.lexsort((rows, -scores))
    return tuple(rows[order].tolist()), tuple(scores[order].tolist())
