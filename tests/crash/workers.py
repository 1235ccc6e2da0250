"""What the processes of the crash tests do, and the corpora that they write."""

from __future__ import annotations

import itertools
from contextlib import suppress
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path

from semsearch import Document, Index, Retriever
from semsearch.errors import IndexBusyError

WORDS = (
    "amber",
    "birch",
    "cedar",
    "delta",
    "ember",
    "fjord",
    "grove",
    "heath",
    "islet",
    "jetty",
    "knoll",
    "lagoon",
)
QUERY = "amber birch cedar"


def version(number: int, size: int = 120) -> list[Document]:
    """One state of a corpus: a third of it changes from one to the next, some come, some go."""
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
    """A corpus that is written in one transaction and tells by each document which one it is."""
    return [
        Document(
            f"d{item}",
            f"{WORDS[(item + number) % 12]} {WORDS[(item * number) % 12]} {item}",
            metadata={"state": number},
        )
        for item in range(40)
    ]


def sync_forever(path: Path, begun: Synchronized[int], reached: Synchronized[int]) -> None:
    """Write one version after another, compacting now and then, until killed.

    It begins with the version where the one before it was killed.
    """
    with Index.open(path) as index, index.writer(wait=True) as writer:
        begun.value += 1
        for number in itertools.count(reached.value):
            reached.value = number
            writer.sync(version(number))
            if number % 3 == 0:
                writer.compact()


def hold_the_lock(path: Path, holding: Synchronized[int]) -> None:
    """Be the writer, and do nothing."""
    import time

    with Index.open(path) as index, index.writer():
        holding.value = 1
        time.sleep(60)


def write_states(path: Path, states: int) -> None:
    """Write states, each in one transaction; delete from some, fold and compact between."""
    with Index.open(path) as index, index.writer() as writer:
        for number in range(1, states + 1):
            writer.upsert(whole_state(number))
            if number % 3 == 0:
                writer.delete(where="id in ('d0', 'd7', 'd14', 'd21', 'd28')")
            if number % 4 == 0:
                compact_past_readers(writer)


def compact_past_readers(writer) -> None:
    """Readers may hold the log back; that is told, and does no harm."""
    with suppress(IndexBusyError):
        writer.compact()


def ask_forever(path: Path, running: Synchronized[int], answers) -> None:
    """Ask until told to stop; hand over what was answered, or the error."""
    found = []
    try:
        with Retriever.open(path) as steady:
            while running.value:
                found.append(("semantic", summary(steady.search(QUERY, 5))))
                found.append(("bm25", summary(steady.search(QUERY, 5, mode="bm25"))))
                with Retriever.open(path) as fresh:
                    found.append(("semantic", summary(fresh.search(QUERY, 5))))
                    where = "state >= 0 and id like 'd1%'"
                    found.append(("filtered", summary(fresh.search(QUERY, 5, where=where))))
    except Exception as error:
        answers.put(error)
        raise
    else:
        answers.put(found)


def summary(hits) -> tuple[tuple[str, int, str, float], ...]:
    return tuple((hit.document_id, hit.metadata["state"], hit.text, hit.score) for hit in hits)
