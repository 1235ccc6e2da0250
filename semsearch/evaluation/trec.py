"""Runs in TREC's format: ``query Q0 document rank score tag``, a line each."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

from semsearch.arguments import check_path
from semsearch.encodings import undecodable
from semsearch.errors import ArgumentError

__all__ = ["Run", "read_run", "write_run"]

#: By query id, the documents' scores by id, best first.
Run: TypeAlias = dict[str, dict[str, float]]


def read_run(file: str | Path) -> Run:
    """The run in a file, ordered by score and then, as trec_eval does, by falling id.

    Raises:
        ArgumentError: it cannot be read, or a line is not of that format.
    """
    run: Run = {}
    file = check_path("file", file)
    try:
        with file.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    query, document, score = _fields(line, f"{file}:{number}")
                    found = run.setdefault(query, {})
                    if document in found:
                        raise ArgumentError(f"{file}:{number}: {document} is there already")
                    found[document] = score
    except OSError as error:
        raise ArgumentError(f"{file}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        sample = error.object[error.start :].decode(errors="surrogateescape")
        raise ArgumentError(f"{file}: {undecodable(sample, option=None)}") from None
    return {
        query: {name: found[name] for name in sorted(found, key=lambda n: (found[n], n))[::-1]}
        for query, found in run.items()
    }


def write_run(file: str | Path, run: Mapping[str, Mapping[str, float]], tag: str) -> None:
    """Write a run, with ranks from 1.

    Args:
        file: is replaced.
        run: documents best first.
        tag: the name of the run; white space becomes ``_``.

    Raises:
        ArgumentError: an id holds white space, which the format cannot keep.
    """
    tag = "_".join(tag.split())
    with check_path("file", file).open("w", encoding="utf-8", newline="\n") as lines:
        for query, found in run.items():
            for rank, (document, score) in enumerate(found.items(), start=1):
                for name in (query, document):
                    if name.split() != [name]:
                        raise ArgumentError(f"TREC's format cannot keep the id {name!r}")
                lines.write(f"{query} Q0 {document} {rank} {score!r} {tag}\n")


def _fields(line: str, place: str) -> tuple[str, str, float]:
    try:
        query, _, document, _, score, _ = line.split()
        return query, document, float(score)
    except ValueError:
        raise ArgumentError(f"{place}: not 'query Q0 document rank score tag'") from None
