"""What grouping a collection brings."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class ClusterMethod(Enum):
    """How texts were grouped."""

    KMEANS = "k-means"  #: each text to the nearest of some centroids
    COMMUNITIES = "communities"  #: texts that score enough with one text in their middle


class Cluster(NamedTuple):
    """A group of texts.

    ``label`` counts from 1, the largest group first; ``members`` are places in the collection,
    the nearest to the centroid first, and ``scores`` their cosines to it, rounded to six decimals;
    ``words`` are its keywords, the most distinctive one first.
    """

    label: int
    members: tuple[int, ...]
    scores: tuple[float, ...]
    words: tuple[str, ...]

    @property
    def central(self) -> int:
        """The member that is nearest to the centroid."""
        return self.members[0]

    @property
    def cohesion(self) -> float:
        """The mean of the scores; higher is closer together."""
        return sum(self.scores) / len(self.scores)


class Clustering(NamedTuple):
    """The groups of a collection, the largest first; ``ungrouped`` are in none of them."""

    method: ClusterMethod
    clusters: tuple[Cluster, ...]
    ungrouped: tuple[int, ...]

    def labels(self) -> list[int | None]:
        """The label of each text's group, in the order of the collection; None for no group."""
        label = {row: cluster.label for cluster in self.clusters for row in cluster.members}
        return [label.get(row) for row in range(len(label) + len(self.ungrouped))]
