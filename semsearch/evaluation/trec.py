"""Reads and writes runs in TREC format: lines of ``query Q0 document rank score tag``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

import numpy

from semsearch.arguments import check_path
from semsearch.errors import ArgumentError, DatasetError
from semsearch.evaluation.datasets.textlines import Line, numbered_lines

#: The scores of documents by query id and document id, best first.
Run: TypeAlias = dict[str, dict[str, float]]


def read_run(file: str | Path) -> Run:
    """Read a run, ordered by score and then by descending id, as in trec_eval.

    Scores are compared in double precision; to trec_eval, scores are equal that differ only beyond
    single precision.

    Raises:
        DatasetError: the file cannot be read, or a line is invalid.
    """
    run: Run = {}
    for line in numbered_lines(check_path("file", file)):
        if line.text.strip():
            query, document, score = _fields(line)
            found = run.setdefault(query, {})
            if document in found:
                raise DatasetError(f"{line.place}: duplicate document {document}")
            found[document] = score
    return {
        query: {name: found[name] for name in sorted(found, key=lambda n: (found[n], n))[::-1]}
        for query, found in run.items()
    }


def write_run(file: str | Path, run: Mapping[str, Mapping[str, float]], tag: str) -> None:
    """Write a run, with ranks from 1.

    Tied scores are lowered by the least that keeps their order in single precision, in which
    trec_eval reads them; it orders ties by id.

    Args:
        file: overwritten if it exists.
        run: documents best first, ties included.
        tag: the name of the run; white space becomes ``_``.

    Raises:
        ArgumentError: the tag is blank, or an id contains white space, which the format does not
            allow; nothing is written.
    """
    tag = "_".join(tag.split())
    if not tag:
        raise ArgumentError("the tag of a run is blank")
    for name in {*run, *(document for found in run.values() for document in found)}:
        if name.split() != [name]:
            raise ArgumentError(
                f"the id {name!r} contains white space, which the TREC format does not allow"
            )
    with check_path("file", file).open("w", encoding="utf-8", newline="\n") as lines:
        for query, found in run.items():
            for rank, (document, score) in enumerate(_without_ties(found).items(), start=1):
                lines.write(f"{query} Q0 {document} {rank} {score!r} {tag}\n")


def _without_ties(found: Mapping[str, float]) -> dict[str, float]:
    """Documents by score, with scores that decrease in single precision."""
    scores: dict[str, float] = {}
    last = math.inf
    for document in sorted(found, key=found.__getitem__, reverse=True):
        score = found[document]
        if scores and not _single(score) < _single(last):
            score = float(numpy.nextafter(_single(last), numpy.float32(-math.inf)))
        scores[document] = last = score
    return scores


def _single(score: float) -> numpy.float32:
    with numpy.errstate(over="ignore"):
        return numpy.float32(score)


def _fields(line: Line) -> tuple[str, str, float]:
    try:
        query, _, document, _, score, _ = line.text.split()
        number = float(score)
        if math.isnan(number):
            raise ValueError
        return query, document, number
    except ValueError:
        raise DatasetError(f"{line.place}: not 'query Q0 document rank score tag'") from None
