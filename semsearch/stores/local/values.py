"""Many values at once: compared in one bound parameter, or inserted as they are."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import (
    JSON,
    BindParameter,
    Connection,
    ScalarSelect,
    TableClause,
    bindparam,
    func,
    select,
)


def values(items: Iterable[int | str | None]) -> ScalarSelect[Any]:
    """For the right side of ``column.in_(values(…))``; SQLite limits how many `?` there can be."""
    return _elements(json.dumps(list(items)))


def values_later(name: str) -> ScalarSelect[Any]:
    """The same for a statement that is built once: each execution brings a list of that name."""
    return _elements(bindparam(name, type_=JSON))


def _elements(array: str | BindParameter[Any]) -> ScalarSelect[Any]:
    each = func.json_each(array).table_valued("value")
    return select(each.c.value).scalar_subquery()


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
