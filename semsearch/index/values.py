"""Any number of values in one bound parameter: SQLite limits how many a statement can have."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from sqlalchemy import ScalarSelect, func, select

__all__ = ["values"]


def values(items: Iterable[int | str | None]) -> ScalarSelect[Any]:
    """For the right side of ``column.in_(values(…))``."""
    array = func.json_each(json.dumps(list(items))).table_valued("value")
    return select(array.c.value).scalar_subquery()
