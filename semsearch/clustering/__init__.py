"""Clusters the texts of a collection."""

from semsearch.clustering.clusters import (
    DEFAULT_MIN_SIZE,
    DEFAULT_WORDS,
    Cluster,
    Clustering,
    ClusterMethod,
    check_arguments,
    cluster,
)

__all__ = [
    "DEFAULT_MIN_SIZE",
    "DEFAULT_WORDS",
    "Cluster",
    "ClusterMethod",
    "Clustering",
    "check_arguments",
    "cluster",
]
