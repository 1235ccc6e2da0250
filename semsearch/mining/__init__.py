"""Finds similar pairs in a collection."""

from semsearch.mining.pairs import EXACT_UP_TO, check_limits, similar_pairs
from semsearch.pairwise import Rows

__all__ = ["EXACT_UP_TO", "Rows", "check_limits", "similar_pairs"]
