"""Encoding on a Ray cluster. `workers_on` makes the workers that ``--on`` names."""

from semsearch.index.cluster.connection import workers_on

__all__ = ["workers_on"]
