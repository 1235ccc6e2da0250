"""Filters as users write them, for one state of an index."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from semsearch.storage.interface import Reader, Selection

if TYPE_CHECKING:
    from semsearch.filters import Condition

logger = logging.getLogger(__name__)


def parse_filter(reader: Reader, where: str) -> Condition:
    """Parse a filter and check it against the fields of an index.

    Raises:
        FilterError: the filter cannot be parsed, names an unknown field, or compares a field with
            a value of a type that it never holds.
    """
    from semsearch.filters.checking import check
    from semsearch.filters.parsing import parse

    return check(parse(where), reader.fields())


def warn_if_none_match(reader: Reader, condition: Condition) -> None:
    """Log a warning if a filter matches no document."""
    if not reader.ids(Selection(condition=condition), limit=1):
        logger.warning("where: no document matches")
