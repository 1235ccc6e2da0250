"""The processes of the crash tests, and the corpora that they write.

They share numbers without locks, as a process killed while it holds a lock never releases it.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from contextlib import suppress
from ctypes import c_long
from functools import cache
from multiprocessing import Queue
from pathlib import Path
from typing import Any

import numpy

from semsearch import Document, Hits, Index
from semsearch.encoders import load_encoder
from semsearch.errors import IndexBusyError

WORDS = ["amber", "birch", "cedar", "delta", "ember", "fjord"]
WORDS += ["grove", "heath", "islet", "jetty", "knoll", "lagoon"]
QUERY = "amber birch cedar"
#: The ids deleted from some states.
DELETED = {"d0", "d7", "d14", "d21", "d28"}


def version(number: int, size: int = 60) -> list[Document]:
    """One version of a corpus; in the next, a third has changed, some are new, some are gone."""
    documents = []
    for item in range(size):
        if (item + number) % 11 == 0:
            continue
        age = number // (1 + item % 3)
        words = [WORDS[(item * 7 + age * step) % len(WORDS)] for step in (1, 3, 5)]
        text = f"{' '.join(words)} {item} {age}."
        if item % 40 == 0:
            text = " ".join(f"{text} part {part}." for part in range(100))
        documents.append(Document(f"d{item}", text, f"T{age}", {"age": age, "words": words}))
    return documents


def whole_state(number: int) -> list[Document]:
    """A corpus written in one transaction; the metadata of each document names the state."""
    return [
        Document(
            f"d{item}",
            f"{WORDS[(item + number) % 12]} {WORDS[(item * number) % 12]} {item}",
            metadata={"state": number},
        )
        for item in range(40)
    ]


def sync_forever(path: Path, begun: c_long, reached: c_long) -> None:
    """Write one version after another, compacting now and then, until killed.

    Start with the version at which the previous writer was killed.
    """
    with Index.open(path) as index, index.writer(wait=60) as writer:
        begun.value += 1
        for number in itertools.count(reached.value):
            reached.value = number
            writer.sync(version(number), allow_removals=True)
            if number % 3 == 0:
                writer.compact()


def hold_the_lock(path: Path, holding: c_long) -> None:
    """Hold the writer lock and do nothing."""
    with Index.open(path) as index, index.writer():
        holding.value = 1
        time.sleep(60)


def write_states(path: Path, first: int, states: int, reached: c_long) -> None:
    """Write states, each in one transaction; delete from some, fold and compact in between."""
    with Index.open(path) as index, index.writer() as writer:
        for number in range(first, first + states):
            reached.value = number
            writer.upsert(whole_state(number))
            if number % 3 == 0:
                writer.delete(where=f"id in {tuple(sorted(DELETED))}")
            if number % 4 == 0:
                with suppress(IndexBusyError):  # a reader still uses the log: harmless
                    writer.compact()


def ask(steady: Index, path: Path) -> Iterator[tuple[str, Hits]]:
    """Yield the hits of several kinds of search, through an old and a new connection."""
    yield "semantic", steady.search(QUERY, 5)
    yield "bm25", steady.search(QUERY, 5, mode="bm25")
    with Index.open(path) as fresh:
        yield "semantic", fresh.search(QUERY, 5)
        yield "filtered", fresh.search(QUERY, 5, where="state >= 0 and id like 'd1%'")


def ask_and_check(path: Path, running: c_long, reports: Queue[Any]) -> None:
    """Search until stopped; report how many results were compared, their states and mistakes."""
    compared, states, mistakes = 0, set(), []
    try:
        with Index.open(path) as steady:
            while running.value:
                for mode, hits in ask(steady, path):
                    compared += 1
                    states |= {hit.metadata["state"] for hit in hits}
                    if not is_answer_of_one_state(mode, hits):
                        mistakes.append(f"{mode}: {list(hits)}")
    except Exception as error:
        mistakes.append(repr(error))
        raise
    finally:
        reports.put((compared, states, mistakes))


def is_answer_of_one_state(mode: str, hits: Hits) -> bool:
    """Whether hits are those of one committed state, by numpy over the texts of that state."""
    states = {hit.metadata["state"] for hit in hits}
    if len(states) != 1:
        return mode == "bm25" and not hits
    number = states.pop()
    documents = whole_state(number)
    texts = {document.id: document.text for document in documents}
    if any(texts[hit.document_id] != hit.text for hit in hits):
        return False
    if mode == "bm25":
        return all(set(hit.text.split()) & set(QUERY.split()) for hit in hits)
    cosines = _cosines(number)
    if mode == "filtered":
        cosines = {name: score for name, score in cosines.items() if name.startswith("d1")}
    if any(abs(cosines.get(hit.document_id, 9) - hit.score) > 1e-6 for hit in hits):
        return False
    # The state as it was written, and after deletions from it.
    left = {name: score for name, score in cosines.items() if name not in DELETED}
    found = [hit.score for hit in hits]
    return any(
        numpy.allclose(sorted(scores.values(), reverse=True)[:5], found, atol=1e-6)
        for scores in (cosines, left)
    )


@cache
def _cosines(number: int) -> dict[str, float]:
    encoder = load_encoder("hashing")
    documents = whole_state(number)
    scores = encoder.encode_documents([document.text for document in documents])
    scores = scores @ encoder.encode_queries([QUERY])[0]
    return {document.id: float(score) for document, score in zip(documents, scores, strict=True)}
