"""Formats numbers for tables, and shortens names of systems."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

from semsearch.corpus.texts import one_line
from semsearch.evaluation.datasets import RetrievalSet, StsSet
from semsearch.evaluation.results import Result

LABEL_CHARACTERS = 28

#: Characters that are invalid in HTML, XML or UTF-8.
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")

#: The folders of paths inside a spec, which may contain several: hybrid:glove:/a/b.txt.
_FOLDERS = re.compile(r"[^:+]*[/\\]")


def printable(text: str) -> str:
    """Replace the characters of a text that are invalid in a page."""
    return _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)


def short_name(name: str) -> str:
    """A label; a long path is shortened to its last part."""
    label = printable(name)
    if len(label) > LABEL_CHARACTERS:
        label = _FOLDERS.sub("…/", label)
    if len(label) > LABEL_CHARACTERS:
        half = (LABEL_CHARACTERS - 1) // 2
        label = f"{label[:half]}…{label[-half:]}"
    return label


def name_of(dataset: StsSet | RetrievalSet) -> str:
    """The name of a set and its split."""
    return f"{dataset.name} {dataset.split}"


def shortened(text: str, max_characters: int) -> str:
    """The beginning of a text, on one line."""
    line = one_line(text)
    return line if len(line) <= max_characters else f"{line[: max_characters - 1]}…"


def rate_cell(things: int, seconds: float) -> str:
    """A number per second; empty if the time is unknown."""
    rate = things / seconds if seconds > 0 else math.nan
    return "" if math.isnan(rate) else f"{rate:,.0f}" if rate >= 10 else f"{rate:.1f}"


def published_cell(results: Iterable[Result]) -> str:
    """The published values of a system, with their measures."""
    published = [one for one in results if one.published is not None]
    return ", ".join(f"{one.over} {one.published:.2f}" for one in published)
