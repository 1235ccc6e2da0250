"""Groups texts by their vectors, with keywords and a central text for each group."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import Any, NamedTuple

import numpy

from semsearch.errors import (
    ArgumentError,
    check_number,
    check_texts,
    quantity,
)
from semsearch.explore.keywords import keywords
from semsearch.explore.vectors import Rows, check_unit_rows
from semsearch.protocols import Matrix
from semsearch.records import SCORE_DECIMALS
from semsearch.search.options import check_whole_number
from semsearch.storage.words.forms import folded

DEFAULT_MIN_SIZE = 5
DEFAULT_WORDS = 6
MAX_DEFAULT_GROUPS = 50
#: The best of several runs of k-means on a sample continues with all vectors.
RESTARTS = 4
SAMPLE_PER_CENTROID = 100
#: The candidates for each initial centroid: with scikit-learn's few, k-means merges small groups.
CANDIDATES = 16

#: Rows of the blocks whose products are computed at once.
BLOCK_ROWS = 1024
#: The size, in numbers, of the products of centres with all texts that are computed at once.
PRODUCTS_AT_ONCE = 1 << 22


class ClusterMethod(Enum):
    """The clustering algorithm."""

    KMEANS = "k-means"  #: each text belongs to the nearest centroid
    COMMUNITIES = "communities"  #: texts within a minimum score of a central text


class Cluster(NamedTuple):
    """A group of texts.

    >>> from semsearch import Cluster
    >>> group = Cluster(1, members=(4, 0), scores=(0.9, 0.7), words=("fish",))
    >>> group.central, group.cohesion
    (4, 0.8)

    ``label`` counts from 1, the largest group first; ``members`` are positions in the collection,
    the nearest to the centroid first, and ``scores`` their cosines to it, rounded to six decimals;
    ``words`` are its keywords, the most distinctive one first.
    """

    label: int
    members: tuple[int, ...]
    scores: tuple[float, ...]
    words: tuple[str, ...]

    @property
    def central(self) -> int:
        """The member nearest to the centroid."""
        return self.members[0]

    @property
    def cohesion(self) -> float:
        """The mean of the scores; higher is more cohesive."""
        return sum(self.scores) / len(self.scores)


class Clustering(NamedTuple):
    """The groups of a collection, the largest first; ``ungrouped`` texts are in none.

    >>> from semsearch import cluster, load_encoder
    >>> texts = ["red fish", "a red fish", "blue bird"]
    >>> cluster(load_encoder("hashing").encode_documents(texts), texts, n=2).labels()
    [1, 1, 2]
    """

    method: ClusterMethod
    clusters: tuple[Cluster, ...]
    ungrouped: tuple[int, ...]

    def labels(self) -> list[int | None]:
        """The label of each text, in the order of the collection; None for ungrouped ones."""
        label = {row: cluster.label for cluster in self.clusters for row in cluster.members}
        return [label.get(row) for row in range(len(label) + len(self.ungrouped))]


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
) -> Clustering:
    """Group texts by their vectors.

    >>> from semsearch import cluster, load_encoder
    >>> texts = ["red fish", "a red fish", "blue bird", "a blue bird"]
    >>> groups = cluster(load_encoder("hashing").encode_documents(texts), texts, n=2)
    >>> [group.members for group in groups.clusters]
    [(0, 1), (2, 3)]

    With `min_score`, the groups are communities: all members have at least this cosine with a
    central text, and other texts stay ungrouped; all pairs are compared. Otherwise, k-means puts
    every text in one of `n` groups.

    Args:
        vectors: unit vectors, shape (number of texts, dimension).
        texts: the texts, for keywords.
        n: the number of groups; None chooses it by the number of texts, and calls `notify`.
        min_score: the minimum cosine of a community.
        min_size: the minimum size of a community; None is 5.
        seed: of k-means; the same seed returns the same groups.
        words: the maximum number of keywords of a group.
        stop_words: words that are not keywords, in addition to English function words.
        notify: called with one line about the chosen number of groups.

    Raises:
        ArgumentError: arguments conflict, the shapes do not match, or a vector is not of unit
            length.
    """
    check_arguments(n, min_score, min_size)
    seed = check_whole_number("the seed", seed, 0)
    words = check_whole_number("the number of words", words, 0)
    vectors, texts = check_unit_rows(vectors), check_texts("texts", texts)
    if len(vectors) != len(texts):
        raise ArgumentError(
            f"{quantity(len(texts), 'text')}, but {quantity(len(vectors), 'vector')}"
        )
    left_out = set(map(folded, check_texts("stop_words", stop_words)))
    if min_score is not None:
        method = ClusterMethod.COMMUNITIES
        size = DEFAULT_MIN_SIZE if min_size is None else min_size
        groups = _communities(vectors, float(min_score), size)
    else:
        method = ClusterMethod.KMEANS
        wanted = _default_groups(len(texts)) if n is None else n
        groups = _k_means(vectors, wanted, seed)
        found = quantity(len(groups), "group")
        if n is None:
            notify(f"{quantity(len(texts), 'text')} in {found}, a number chosen by a rule of thumb")
        elif len(groups) < n:
            notify(f"{found}, not {n:,}: other texts are identical")
    groups.sort(key=lambda rows: (-len(rows), rows[0]))
    words_of_groups = keywords(texts, groups, words, left_out)
    clusters = tuple(
        Cluster(label, *_by_score(vectors, rows), group_words)
        for label, (rows, group_words) in enumerate(zip(groups, words_of_groups, strict=True), 1)
    )
    grouped = {row for group in clusters for row in group.members}
    ungrouped = tuple(row for row in range(len(texts)) if row not in grouped)
    return Clustering(method, clusters, ungrouped)


def check_arguments(n: int | None, min_score: float | None, min_size: int | None) -> None:
    """Validate arguments of `cluster` before vectors are computed.

    Raises:
        ArgumentError: arguments conflict, or one is out of range.
    """
    if n is not None and min_score is not None:
        raise ArgumentError("name either a number of groups or a minimum score, not both")
    if min_score is None and min_size is not None:
        raise ArgumentError(
            "a minimum size is only for groups with a minimum score; k-means groups every text"
        )
    if min_score is not None:
        check_number("min_score", min_score, -1, 1)
    if n is not None:
        check_whole_number("the number of groups", n, 1)
    if min_size is not None:
        check_whole_number("the minimum size", min_size, 1)


def _default_groups(n: int) -> int:
    """√(n/2), a rule of thumb (Mardia et al. 1979), but at most MAX_DEFAULT_GROUPS."""
    return max(1, min(round(math.sqrt(n / 2)), MAX_DEFAULT_GROUPS))


def _k_means(vectors: Matrix, groups: int, seed: int) -> list[Rows]:
    """Rows by their nearest centroid; fewer groups if there are fewer distinct vectors."""
    from sklearn.cluster import KMeans, kmeans_plusplus
    from sklearn.exceptions import ConvergenceWarning

    if not len(vectors):
        return []
    count = min(groups, len(vectors))
    size = min(len(vectors), count * SAMPLE_PER_CENTROID)
    sample = numpy.random.default_rng(seed).choice(len(vectors), size, replace=False)

    def initial(vectors: Matrix, count: int, random_state: Any) -> Matrix:
        trials = {"n_local_trials": CANDIDATES, "random_state": random_state}
        return kmeans_plusplus(vectors, count, **trials)[0]  # type: ignore[no-any-return]

    started = KMeans(count, init=initial, n_init=RESTARTS, random_state=seed % 2**32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # identical vectors
        best = started.fit(vectors[sample])
        nearest = KMeans(count, init=best.cluster_centers_, n_init=1).fit_predict(vectors)
    return [numpy.flatnonzero(nearest == label) for label in numpy.unique(nearest)]


def _communities(vectors: Matrix, min_score: float, min_size: int) -> list[Rows]:
    """Texts within a minimum score, rounded to six decimals, of a central text.

    The fast community detection of Sentence-Transformers: each text, with all texts within the
    minimum score, is a candidate. The largest is taken, then the next whose centre is still free,
    without texts already taken. This returns the same groups as `util.community_detection` twice as
    fast, without torch and in little memory: candidates are counted first, over half of all pairs,
    and collected only for the largest.
    """
    vectors = numpy.asarray(vectors, numpy.float32)
    n = len(vectors)
    least = numpy.float32(min_score - 0.5 * 10**-SCORE_DECIMALS)  # which rounds to it
    sizes = numpy.zeros(n, numpy.int64)
    for start in range(0, n, BLOCK_ROWS):
        rows = slice(start, start + BLOCK_ROWS)
        for other in range(start, n, BLOCK_ROWS):
            columns = slice(other, other + BLOCK_ROWS)
            near = vectors[rows] @ vectors[columns].T >= least
            sizes[rows] += near.sum(axis=1)
            if other > start:
                sizes[columns] += near.sum(axis=0)

    groups = []
    free = numpy.ones(n, numpy.bool)
    centres = numpy.argsort(-sizes, kind="stable")
    centres = centres[sizes[centres] >= min_size]
    at_once = max(1, min(BLOCK_ROWS, PRODUCTS_AT_ONCE // max(1, n)))
    while len(centres := centres[free[centres]]):
        batch, centres = centres[:at_once], centres[at_once:]
        others = numpy.flatnonzero(free)
        products = vectors[batch] @ vectors[others].T
        for centre, near in zip(batch, products >= least, strict=True):
            members = others[near | (others == centre)]
            members = members[free[members]]
            if free[centre] and len(members) >= min_size:
                groups.append(members)
                free[members] = False
    return groups


def _by_score(vectors: Matrix, rows: Rows) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Members and their cosines to the centroid, the nearest first; equal ones by position."""
    members = vectors[rows]
    centroid = members.mean(axis=0, dtype=numpy.float64)
    length = float(numpy.linalg.norm(centroid))
    if length > 0:  # the mean of opposite vectors is zero
        centroid /= length
    cosines = members @ centroid.astype(numpy.float32)
    scores = numpy.clip(cosines.astype(numpy.float64).round(SCORE_DECIMALS), -1, 1)
    order = numpy.lexsort((rows, -scores))
    return tuple(rows[order].tolist()), tuple(scores[order].tolist())
