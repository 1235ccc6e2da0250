"""A document's text as its passages and its rest: the characters outside them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def rest_of(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """The characters of a text outside these ranges, which are in order."""
    parts, place = [], 0
    for start, end in spans:
        parts.append(text[place:start])
        place = end
    return "".join([*parts, text[place:]])


def joined(passages: Sequence[tuple[int, int, str]], rest: str) -> str:
    """The text that these passages and the characters outside them are of."""
    parts: list[str] = []
    place = used = 0
    for start, end, text in passages:
        gap = start - place
        parts += (rest[used : used + gap], text)
        place, used = end, used + gap
    return "".join([*parts, rest[used:]])
