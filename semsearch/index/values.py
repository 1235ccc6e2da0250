"""Many values at once: compared in one bound parameter, or inserted as they are."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, ScalarSelect, TableClause, func, select

__all__ = ["insert_rows", "values"]


def values(items: Iterable[int | str | None]) -> ScalarSelect[Any]:
    """For the right side of ``column.in_(values(…))``; SQLite limits how many `?` there can be."""
    array = func.json_each(json.dumps(list(items))).table_valued("value")
    return select(array.c.value).scalar_subquery()


def insert_rows(
    connection: Connection,
    table: TableClause,
    names: Sequence[str],
    rows: Sequence[tuple[Any, ...]],
) -> None:
    """Insert rows whose values are in SQLite's own types.

    SQLAlchemy looks at each value of each row; over a corpus that takes longer than the writing.
    """
    if rows:
        columns = ", ".join(f'"{table.columns[name].name}"' for name in names)
        places = ", ".join("?" * len(names))
        statement = f'INSERT INTO "{table.name}" ({columns}) VALUES ({places})'  # noqa: S608 - ours
        connection.exec_driver_sql(statement, list(rows))
