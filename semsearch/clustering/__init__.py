"""Grouping a collection by what its texts are about."""

from semsearch.clustering.clusters import DEFAULT_MIN_SIZE, DEFAULT_WORDS, check_arguments, cluster
from semsearch.clustering.records import Cluster, Clustering, ClusterMethod

__all__ = [
    "DEFAULT_MIN_SIZE",
    "DEFAULT_WORDS",
    "Cluster",
    "ClusterMethod",
    "Clustering",
    "check_arguments",
    "cluster",
]
