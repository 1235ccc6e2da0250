"""The results of scripts/bench/peers: medians with their spread, and ratios."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field, is_dataclass
from typing import Any, NamedTuple

from scripts.bench.systems import HELP, System
from scripts.shared.corpora import Corpus

#: The peer that cold and warm figures are compared with: it has no layer that could cost time.
BASELINE = "script"

#: The time of a run without its start-up is reported from this fraction of the start-up on; less
#: is noise.
MIN_REST = 0.1


class Spread(NamedTuple):
    """The median and range of a figure over all rounds."""

    median: float
    low: float
    high: float


class Finished(NamedTuple):
    """A finished command."""

    seconds: float
    peak_mebibytes: float
    output: str


@dataclass
class BulkFigures:
    """How fast a system indexed a corpus.

    Rates are in documents a second; ratios are to the fastest peer in the same precision.
    """

    system: str
    corpus: str
    seconds: Spread
    start_seconds: Spread
    rate: Spread
    rate_without_start: Spread | None
    peak_mebibytes: Spread
    ratio: float | None = None
    ratio_without_start: float | None = None
    bound: float | None = None  #: the rate that the processor's matrix products would allow


@dataclass
class QueryFigures:
    """The time of a query in a system.

    Args:
        ratio: how many times as fast as the baseline.
        same_ten: the fraction of the baseline's ten best that it also found.
    """

    system: str
    seconds: Spread
    ratio: float | None = None
    same_ten: float | None = None


@dataclass
class Results:
    """All results of a run."""

    options: dict[str, Any]
    versions: dict[str, dict[str, str]]  #: by environment and package
    corpora: list[dict[str, Any]]
    machine: dict[str, Any] | None = None
    bulk: list[BulkFigures] = field(default_factory=list)
    cold: list[QueryFigures] = field(default_factory=list)
    warm: list[QueryFigures] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)


class BulkRound(NamedTuple):
    """One measurement of indexing."""

    start: Finished  #: a corpus of one text
    whole: Finished

    def rest(self) -> float | None:
        """The seconds without start-up; None if they are lost in its noise."""
        rest = self.whole.seconds - self.start.seconds
        return rest if rest > MIN_REST * self.start.seconds else None


def spread(values: Sequence[float]) -> Spread:
    """The median and range of values."""
    return Spread(statistics.median(values), min(values), max(values))


def bulk_figures(
    system: System, corpus: Corpus, rounds: Sequence[BulkRound], peaks: dict[str, float | None]
) -> BulkFigures:
    """The figures of a system over its rounds."""
    documents = len(corpus.texts)
    rests = [(documents - 1) / rest for one in rounds if (rest := one.rest()) is not None]
    peak = peaks.get(system.precision)
    return BulkFigures(
        system=system.name,
        corpus=corpus.name,
        seconds=spread([one.whole.seconds for one in rounds]),
        start_seconds=spread([one.start.seconds for one in rounds]),
        rate=spread([documents / one.whole.seconds for one in rounds]),
        rate_without_start=spread(rests) if len(rests) == len(rounds) else None,
        peak_mebibytes=spread([one.whole.peak_mebibytes for one in rounds]),
        bound=documents * peak * 1e9 / corpus.flops if peak else None,
    )


def compared(seconds: dict[str, list[float]]) -> list[QueryFigures]:
    """The figures of queries, with ratios to the baseline."""
    figures = {name: QueryFigures(name, spread(values)) for name, values in seconds.items()}
    if BASELINE in figures:
        for figure in figures.values():
            if figure.system != HELP.tool:  # no peer has a counterpart
                figure.ratio = figures[BASELINE].seconds.median / figure.seconds.median
    return list(figures.values())


def overlap(found: Sequence[Sequence[str]], expected: Sequence[Sequence[str]]) -> float:
    """The mean fraction of the expected documents that were found."""
    return statistics.fmean(
        len(set(some) & set(others)) / len(others)
        for some, others in zip(found, expected, strict=True)
    )


def as_json(results: Results) -> dict[str, Any]:
    """The results as JSON values: a spread becomes an object."""
    return {key: as_plain(value) for key, value in vars(results).items()}


def as_plain(value: Any) -> Any:
    """A figure, or a list of them, as JSON values."""
    if isinstance(value, Spread):
        return value._asdict()
    if is_dataclass(value):
        return {key: as_plain(item) for key, item in vars(value).items()}
    if isinstance(value, list):
        return [as_plain(item) for item in value]
    return value
