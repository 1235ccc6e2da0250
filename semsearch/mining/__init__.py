"""Mining a collection for what is alike in it."""

from semsearch.comparison import Rows
from semsearch.mining.pairs import EXACT_UP_TO, check_limits, similar_pairs

__all__ = ["EXACT_UP_TO", "Rows", "check_limits", "similar_pairs"]
