"""Rows written and read without SQLAlchemy's processing of each value."""

from __future__ import annotations

import pytest
from sqlalchemy import create_engine

from semsearch.stores.local.schema import (
    INTEGER_LIMIT,
    DamageError,
    checked_columns,
    insert_rows,
    read_rows,
    settings,
    stored_bytes,
    stored_integer,
    stored_text,
    stored_text_or_null,
)


@pytest.fixture
def connection():
    engine = create_engine("sqlite://")
    with engine.connect() as connection:
        settings.create(connection)
        yield connection
    engine.dispose()


def read(connection):
    with read_rows(connection, "SELECT name, value FROM settings WHERE name > ?", ["a"]) as cursor:
        return cursor.fetchall()


def test_a_row_with_the_key_of_another_replaces_it(connection):
    insert_rows(connection, settings, ["name", "value"], [("b", "1"), ("c", "2")])
    insert_rows(connection, settings, ["name", "value"], [("d", "4"), ("b", "3")], key="name")
    assert read(connection) == [("b", "3"), ("c", "2"), ("d", "4")]


def test_valid_columns_are_returned():
    rows = [(1, "a", b"x", None), (2, "b", b"y", "t")]
    checks = (stored_integer, stored_text, stored_bytes, stored_text_or_null)
    assert checked_columns(rows, *checks) == [(1, 2), ("a", "b"), (b"x", b"y"), (None, "t")]


@pytest.mark.parametrize(
    ("check", "bad"),
    [
        (stored_integer, "1"),
        (stored_integer, 1.0),
        (stored_integer, INTEGER_LIMIT),
        (stored_integer, -INTEGER_LIMIT),
        (stored_text, None),
        (stored_text, b"a"),
        (stored_text_or_null, 1),
        (stored_bytes, "a"),
    ],
)
def test_one_bad_value_among_good_ones(check, bad):
    good = {stored_integer: 7, stored_bytes: b"x"}.get(check, "a")
    with pytest.raises(DamageError):
        checked_columns([(good,), (bad,), (good,)], check)
