"""Reads and writes runs in TREC format: lines of ``query Q0 document rank score tag``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

import numpy

from semsearch.errors import ArgumentError, DatasetError, check_path
from semsearch.evaluation.datasets.textlines import numbered_lines

#: The scores of documents by query id and document id, best first.
Run: TypeAlias = dict[str, dict[str, float]]


def read_run(file: str | Path) -> Run:
    """Read a run, ordered by score and then by descending id, as in trec_eval.

    Raises:
        CorpusError: the file cannot be read.
        DatasetError: a line is invalid.
    """
    run: Run = {}
    for line in numbered_lines(check_path("file", file)):
        if not line.text.strip():
            continue
        try:
            query, _, document, _, score, _ = line.text.split()
            number = float(score)
        except ValueError:
            raise DatasetError(f"{line.place}: not 'query Q0 document rank score tag'") from None
        found = run.setdefault(query, {})
        if document in found:
            raise DatasetError(f"{line.place}: duplicate document {document}")
        found[document] = number
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
        ArgumentError: an id contains white space, which the format does not allow; nothing is
            written.
    """
    tag = "_".join(tag.split()) or "semsearch"
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
    last = numpy.float32(numpy.inf)
    for document in sorted(found, key=found.__getitem__, reverse=True):
        score = found[document]
        if not numpy.float32(score) < last:
            score = float(numpy.nextafter(last, numpy.float32(-numpy.inf)))
        scores[document] = score
        last = numpy.float32(score)
    return scores
