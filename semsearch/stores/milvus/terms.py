"""Metadata as the JSON that filters of Milvus read, and the values of filters as they stand there.

Milvus versions differ in how they compare JSON values of unlike types, what a missing key is under
`not`, and how a text is escaped in an expression. So values become terms: texts of the characters
``0-9a-f`` behind a letter and a colon, equal where the values are equal, and in their order. Each
field is a list of its value's or its elements' terms:

    {"genres": ["x", "t", "t:4472616d61"], "genres:t0": "4472616d61", "genres:t1": "4472616d61"}

``x`` says that the field is not null, ``t`` and ``n`` that it holds a text or a number. A list of
which any element is greater than a literal is one whose greatest element (``t1``, ``n1``) is.
A text that is a time has a second term, the instant, and ``d``, ``d0`` and ``d1``.
"""

from __future__ import annotations

import json
import re
import struct
from hashlib import blake2b
from typing import Any

from semsearch.filters import Value
from semsearch.filters.times import instant
from semsearch.records import BUILT_IN_FIELDS, metadata_field

NOT_NULL, HAS_TEXT, HAS_NUMBER, HAS_TIME = "x", "t", "n", "d"

#: Longer texts are known by their hash.
PLAIN_BYTES = 16
#: How many characters of a text decide its order.
ORDER_CHARACTERS = 64

_PLAIN_NAME = re.compile(r"[A-Za-z0-9_]{1,64}")


def document_terms(name: str, title: str | None, metadata: str) -> dict[str, Any]:
    """The terms of all fields of a document.

    Args:
        name: its id.
        title: its title.
        metadata: JSON.
    """
    fields = {metadata_field(name): value for name, value in json.loads(metadata).items()}
    fields |= dict(zip(BUILT_IN_FIELDS, (name, title), strict=True))
    terms: dict[str, Any] = {}
    for field, value in fields.items():
        if value is not None:
            terms |= _field_terms(field_key(field), value if isinstance(value, list) else [value])
    return terms


def field_key(field: str) -> str:
    """What a field, as conditions call it, is called among the terms."""
    if _PLAIN_NAME.fullmatch(field):
        return field
    return f"~{blake2b(field.encode(), digest_size=16).hexdigest()}"


def term(value: Value) -> str:
    """What stands for a value; equal values have equal terms."""
    if isinstance(value, bool):
        return f"b:{value:d}"
    if isinstance(value, str):
        data = value.encode()
        if len(data) <= PLAIN_BYTES:
            return f"t:{data.hex()}"
        return f"h:{blake2b(data, digest_size=16).hexdigest()}"
    return f"n:{order_code(value)}"


def time_term(time: int) -> str:
    """What stands for the instant of a time."""
    return f"d:{order_code(time)}"


def order_code(value: str | float) -> str:
    """What stands for a text or a number in their order; of a text, for its beginning."""
    if isinstance(value, str):
        return value[:ORDER_CHARACTERS].encode().hex()
    try:
        near = float(value)
    except OverflowError:
        near = float("inf") if value > 0 else float("-inf")
    # Between neighbouring floats there are integers of 64 bits, at most 512 from the nearer one.
    beyond = value - int(near) if isinstance(value, int) and -(2**63) <= value < 2**63 else 0
    (bits,) = struct.unpack(">Q", struct.pack(">d", near + 0.0))  # without the sign of -0.0
    ordered = bits ^ (2**64 - 1) if bits >> 63 else bits | 1 << 63
    return f"{ordered:016x}{beyond + 2048:03x}"


def _field_terms(key: str, values: list[Any]) -> dict[str, Any]:
    texts = [order_code(value) for value in values if isinstance(value, str)]
    numbers = [order_code(value) for value in values if _is_number(value)]
    instants = [instant(value) for value in values if isinstance(value, str)]
    times = [time for time in instants if time is not None]
    scalars = [value for value in values if isinstance(value, (str, bool)) or _is_number(value)]
    listed = {NOT_NULL: None, **dict.fromkeys([*map(term, scalars), *map(time_term, times)])}
    found: dict[str, Any] = {key: listed}
    kinds = ((HAS_TEXT, texts), (HAS_NUMBER, numbers), (HAS_TIME, list(map(order_code, times))))
    for kind, codes in kinds:
        if codes:
            listed[kind] = None
            found |= {f"{key}:{kind}0": min(codes), f"{key}:{kind}1": max(codes)}
    return found | {key: list(listed)}


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
