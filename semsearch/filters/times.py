"""Times in ISO 8601, which compare as instants."""

from __future__ import annotations

from datetime import UTC, datetime

DAY = 24 * 3600 * 10**6  # microseconds
_EPOCH = datetime(1970, 1, 1)
_EPOCH_UTC = datetime(1970, 1, 1, tzinfo=UTC)


def instant(text: str) -> int | None:
    """The microseconds from 1970 to a time; None if the text is not a time.

    A time is a date (2024-06-01), which means its midnight, or a date and a time of day after a
    ``T`` or a blank, with or without seconds, a fraction of them, and ``Z``, " UTC" or an offset
    (+02:00, +0200, +02). Without an offset, it is in UTC.

    >>> instant("1970-01-02") == instant("1970-01-02 02:00:00.000+02:00") == 86_400_000_000
    True
    """
    if not (text[4:5] == text[7:8] == "-" and text[10:11] in ("", "T", " ")):
        return None
    standard = text.replace(" UTC", "Z").replace(" +", "+").replace(" -", "-")  # as databases write
    try:
        time = datetime.fromisoformat(standard)
    except ValueError:
        return None
    since = time - (_EPOCH_UTC if time.tzinfo else _EPOCH)
    return since.days * DAY + since.seconds * 10**6 + since.microseconds
