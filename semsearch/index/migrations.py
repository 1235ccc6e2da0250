"""From older formats of the database to this one, a step at a time."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import Connection

from semsearch.errors import IndexFormatError
from semsearch.index.schema import FORMAT_VERSION

__all__ = ["migrate"]

#: What makes format n + 1 of format n. There has been one format so far.
STEPS: dict[int, Callable[[Connection], None]] = {}


def migrate(connection: Connection) -> None:
    """Bring a database to this format, within the transaction of the connection.

    Raises:
        IndexFormatError: its format was never one.
    """
    version = connection.exec_driver_sql("PRAGMA user_version").scalar_one()
    for number in range(version, FORMAT_VERSION):
        if number not in STEPS:
            raise IndexFormatError(f"no semsearch ever wrote index format {number}")
        STEPS[number](connection)
        connection.exec_driver_sql(f"PRAGMA user_version = {number + 1}")
