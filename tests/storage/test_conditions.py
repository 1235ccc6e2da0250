"""Conditions as SQL: SQLite finds the same rows as the reference implementation in Python."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from conditions_model import holds
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, create_engine, event, select

from semsearch import Document, Index
from semsearch.errors import FilterError
from semsearch.filters import And, Comparison, Condition, In, IsNull, Like, Not, Operator, Or
from semsearch.filters.parsing import parse
from semsearch.filters.times import instant
from semsearch.records import metadata_field
from semsearch.storage.sqlite.conditions import MAX_DEPTH, MAX_TESTS, to_sql
from semsearch.storage.sqlite.fields import index_field, json_path
from semsearch.storage.sqlite.schema import documents, tables


@pytest.fixture(scope="module")
def connection() -> Iterator[Connection]:
    engine = create_engine("sqlite://")
    event.listen(engine, "connect", lambda raw, _: raw.create_function("instant", 1, instant))
    with engine.connect() as connection:
        tables.create_all(connection)
        yield connection
    engine.dispose()


def matching(
    connection: Connection,
    condition: Condition,
    rows: list[dict[str, Any]],
    *,
    names: list[str | None] | None = None,
) -> list[int]:
    """The indices of the rows that meet a condition; `names` fills the column `title`."""
    with connection.begin_nested() as savepoint:
        for number, row in enumerate(rows):
            new = {"document_id": number, "external_id": str(number), "text_hash": ""}
            new |= {"title": names[number] if names else None}
            new |= {"metadata": json.dumps(row, ensure_ascii=False)}
            connection.execute(documents.insert().values(new))
        scalars = {
            metadata_field(name)
            for row in rows
            for name in row
            if not any(isinstance(other.get(name), list) for other in rows)
        }

        def found(scalars):
            clause = to_sql(condition, scalars=scalars)
            return sorted(connection.scalars(select(documents.c.document_id).where(clause)))

        by_name = found([])
        assert found(scalars) == by_name
        for name in {name for row in rows for name in row if json_path(name)}:
            index_field(connection, name)
        assert found(scalars) == by_name
        savepoint.rollback()
    return by_name


# The oracle.

# Few names, texts and numbers, so that conditions often hold; odd ones as edge cases.

names = st.sampled_from(
    ["a", "A", "a b", "a.b", "a[0]", 'a"b', "a\\b", "a\\u0062", "\t", "é", "😀", "", "$"]
)
texts = st.text("aAbéÉſK%_\\'\"\n\x7f😀", max_size=3)
numbers = (
    st.integers(-2, 2)
    | st.floats(-2, 2, width=16)
    | st.sampled_from([0.1, 0.1 + 0.2, 0.3, 2**53 + 1, 2.0**53, 2**63 - 1, 2.0**63, -(2**63)])
)
ordered = texts | numbers.filter(lambda number: -(2**63) <= number < 2**63)
literals = ordered | st.booleans()
scalars = texts | numbers | st.booleans() | st.none()
values = (
    scalars
    | st.lists(scalars | st.lists(scalars, max_size=2), max_size=3)
    | st.dictionaries(names, scalars, max_size=2)
)
rows = st.dictionaries(names, values, max_size=6)
patterns = st.lists(st.sampled_from(["%", "_", "a", "b", "É", "\\%", "\\\\"]), max_size=4)

conditions = st.recursive(
    st.builds(Comparison, names, st.sampled_from([Operator.EQUAL, Operator.NOT_EQUAL]), literals)
    | st.builds(Comparison, names, st.sampled_from(Operator), ordered)
    | st.builds(In, names, st.lists(literals, max_size=4).map(tuple))
    | st.builds(Like, names, patterns.map("".join))
    | st.builds(IsNull, names),
    lambda inner: (
        st.builds(Not, inner)
        | st.builds(And, st.lists(inner, min_size=2, max_size=3).map(tuple))
        | st.builds(Or, st.lists(inner, min_size=2, max_size=4).map(tuple))
    ),
    max_leaves=8,
)


@settings(max_examples=60)
@given(condition=conditions, rows=st.lists(rows, max_size=6))
def test_sqlite_and_python_find_the_same(connection, condition, rows):
    expected = [number for number, row in enumerate(rows) if holds(condition, row)]
    assert matching(connection, condition, rows) == expected


# Times within some days, so that they are often equal, in many notations; and other texts.
notations = st.builds(
    lambda seconds, minutes, separator, precision, zone: (
        (datetime(2024, 6, 1, 10, tzinfo=UTC) + timedelta(seconds=seconds))
        .astimezone(timezone(timedelta(minutes=minutes)))
        .isoformat(separator, precision)
        .removesuffix("+00:00")
        + ("" if minutes else zone)
    ),
    st.sampled_from([0, 0.001, 0.000001, 60, -36_000, 14 * 3600]) | st.integers(-200_000, 200_000),
    st.sampled_from([0, 0, 120, -300, 330, 1439, -1439]),
    st.sampled_from("T "),
    st.sampled_from(["auto", "minutes", "seconds", "milliseconds", "microseconds"]),
    st.sampled_from(["", "Z", "+00", "+0000", "-00:00"]),
)
dates = st.sampled_from(["2024-05-31", "2024-06-01", "2024-06-02", "0001-01-01", "9999-12-31"])
no_times = st.sampled_from(["", "2024", "2024-06", "2024-06-31", "2024-06-01?", "unknown", "~"])
moments = notations | dates | no_times


@settings(max_examples=100)
@given(
    condition=st.builds(Comparison, st.just("at"), st.sampled_from(Operator), moments)
    | st.builds(In, st.just("at"), st.lists(moments | numbers, max_size=3).map(tuple)),
    held=st.lists(moments | numbers | st.lists(moments | st.just(1), max_size=3), max_size=8),
)
@example(parse("at > '2024-06-01T12:00:00+02:00'"), ["2024-06-01T11:00:00", "2024-06-01T10:00:00"])
@example(parse("at = '2024-06-01T23:30Z'"), ["2024-06-02T01:30+02:00", "2024-06-02T01:30"])
@example(parse("at in ('2024-06-01T00:30Z')"), ["2024-05-31T22:30-02:00", "2024-05-31"])
@example(parse("at < '9999-12-31T23:00-05:00'"), ["9999-12-31T23:00:00Z", "9999-12-31"])
@example(parse("at >= '0001-01-01T00:00+05:00'"), ["0001-01-01", "0001-01-01T00:00+06:00", "0"])
def test_times_compare_as_instants(connection, condition, held):
    rows = [{"at": value} for value in held]
    expected = [number for number, row in enumerate(rows) if holds(condition, row)]
    assert matching(connection, condition, rows) == expected


def test_titles_are_no_times(connection):
    titles = ["2024-06-01", "2024-06-01T00:00Z"]
    for where in ("title = '2024-06-01T00:00Z'", "title > '2024-06-01'"):
        assert matching(connection, parse(where), [{}, {}], names=titles) == [1]


def test_user_input_is_passed_as_parameters():
    condition = parse(
        "\"name\"\"1\" = 'text1' or name2 like 'text2' and name3 > 42 or name4 is null"
    )
    statement = to_sql(condition).compile()
    assert not re.search(r"name\d|name\"|text\d|42", str(statement))
    assert {'name"1', "name2", "name3", "name4"} <= set(statement.params.values())


ROWS = [{"a": number, "b": f"text {number}"} for number in range(4)]


class TestLarge:
    def test_long_in_lists(self, connection):
        condition = parse(f"a in ({','.join(map(str, range(2, 17_000)))})")
        assert matching(connection, condition, ROWS) == [2, 3]

    @pytest.mark.parametrize("keyword", ["and", "or"])
    def test_the_maximum_number_of_tests(self, connection, keyword):
        test = "b like 'text %'"
        chain = [test] * MAX_TESTS
        condition = parse(f" {keyword} ".join(chain))
        assert matching(connection, condition, ROWS, names=["x"] * 4) == [0, 1, 2, 3]
        with pytest.raises(FilterError):
            matching(connection, parse(f" {keyword} ".join([*chain, test])), ROWS)

    @pytest.mark.parametrize("layers", [(And, Or), (And, Not), (Or, Not), (Not,)])
    def test_the_maximum_nesting(self, connection, layers):
        test = parse("b >= '2024-06-01'")
        nested = [test]
        for layer in itertools.islice(itertools.cycle(layers), MAX_DEPTH + 1):
            nested.append(layer(nested[-1] if layer is Not else (test, nested[-1])))
        *_, deepest, too_deep = nested
        expected = [number for number, row in enumerate(ROWS) if holds(deepest, row)]
        assert matching(connection, deepest, ROWS) == expected
        with pytest.raises(FilterError):
            matching(connection, too_deep, ROWS)


def test_true_and_one_are_different_conditions(tmp_path):
    """Python says that they are equal; what is known of one must not answer the other."""
    values = [True] * 3 + [1] * 3 + [0.5] * 600
    with Index.create(tmp_path / "x", "hashing:32") as index:
        index.add(Document(str(n), "common", metadata={"x": x}) for n, x in enumerate(values))
        for where, ids in {"x = true": "012", "x = 1": "345", "x in (true)": "012"}.items():
            for mode in ("semantic", "bm25"):
                hits = index.search("common", 10, where=where, mode=mode)
                assert {hit.document_id for hit in hits} == set(ids), where
