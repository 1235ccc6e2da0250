"""Times: which texts are times, and the instants that they mean."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from semsearch.filters.times import instant

NOON = int(datetime(2020, 5, 1, 12, tzinfo=UTC).timestamp()) * 10**6


@pytest.mark.parametrize(
    ("text", "microseconds"),
    [
        ("2020-05-01T12:00:00Z", 0),
        ("2020-05-01 12:00", 0),
        ("2020-05-01T12", 0),
        ("2020-05-01T14:00:00.000+02:00", 0),
        ("2020-05-01 07:00:00-0500", 0),
        ("2020-05-01 12:00:00 UTC", 0),  # BigQuery
        ("2020-05-01 13:00:00.0000000 +01:00", 0),  # SQL Server
        ("2020-05-01T12:00:00.000001Z", 1),
        ("2020-05-01T12:00:00.5", 500_000),
        ("2020-05-02", 12 * 3600 * 10**6),
        ("2020-05-01T00:00+12:00", -24 * 3600 * 10**6),
    ],
)
def test_instants(text, microseconds):
    assert instant(text) == NOON + microseconds


@pytest.mark.parametrize(
    "text",
    ["", "x", "2020", "2020-05", "20200501", "2020-02-30", "2020-05-01Z", "2020-05-01T25:00"]
    + ["2020-05-01, Friday", "2020-05-01_12:00", "1/5/2020", "2020-05-01T12:00Z" + " " * 40],
)
def test_other_texts_are_no_times(text):
    assert instant(text) is None
