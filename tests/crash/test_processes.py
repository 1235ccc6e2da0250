"""An index survives kills of its writer at random moments; each result is of one state."""

from __future__ import annotations

import multiprocessing
import random
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from workers import (
    ask_and_check,
    hold_the_lock,
    sync_forever,
    version,
    whole_state,
    write_states,
)

from semsearch import Index
from semsearch.errors import IndexBusyError

if "forkserver" not in multiprocessing.get_all_start_methods():
    pytest.skip("Windows has no fork server", allow_module_level=True)

#: Each child is forked from a small process that has everything imported: a start takes 20 ms.
processes = multiprocessing.get_context("forkserver")
processes.set_forkserver_preload(["workers", "faiss", "semsearch.indexing.writer"])


PASSAGES = """
SELECT external_id, title, metadata, start, "end", passages.text, vector FROM documents
JOIN passages USING (document_id) JOIN vectors USING (passage_id) ORDER BY external_id, start
"""


def passages(index):
    """Documents, passages and vectors, by the ids of the corpus."""
    with index.read() as state:
        return list(map(tuple, state.connection.exec_driver_sql(PASSAGES)))


def everything(index):
    """`passages`, and the BM25 results."""
    words = {
        query: [
            (hit.document_id, hit.passage.start, round(hit.score, 9))
            for hit in index.search(query, k=1000, mode="bm25")
        ]
        for query in ("amber", "fjord 3", "part", "lagoon heath")
    }
    return passages(index), {query: sorted(hits) for query, hits in words.items()}


def expected_of(tmp_path, number):
    """`everything` of an index that was written in one run, without interruption."""
    with Index.create(tmp_path / f"undisturbed-{number}", ["hashing:32"]) as index:
        index.add(version(number))
        return everything(index)


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("kills", [30, pytest.param(200, marks=pytest.mark.nightly)])
def test_killed_at_random_moments(tmp_path, seed, kills):
    chance = random.Random(seed)
    started = time.perf_counter()
    expected_of(tmp_path, 0)
    longest = max(0.3, 3 * (time.perf_counter() - started))  # three versions, here and now
    path = tmp_path / "index"
    Index.create(path, ["hashing:32"]).close()
    begun, reached = processes.RawValue("l", 0), processes.RawValue("l", 1)
    in_between = 0
    for kill in range(kills):
        child = processes.Process(target=sync_forever, args=(path, begun, reached))
        child.start()
        while begun.value == kill:
            time.sleep(0.001)
            assert child.is_alive()
        time.sleep(chance.uniform(0, longest))
        assert child.is_alive()
        child.kill()
        child.join()
        assert child.exitcode == -9
        with Index.open(path) as index:
            with index.writer() as writer:
                assert writer.verify() == []
            found = {row[0]: row[5] for row in passages(index) if row[3] == 0}
            # Documents are of this version or, if not yet written, of the one before.
            new = {document.id: document.text for document in version(reached.value)}
            old = {document.id: document.text for document in version(reached.value - 1)}
            assert all(
                any(state.get(name, "").startswith(passage) for state in (new, old))
                for name, passage in found.items()
            )
            in_between += any(not new.get(name, "").startswith(t) for name, t in found.items())
    assert reached.value > kills / 4  # the writers made progress
    assert in_between > 0  # some kills came before a version was complete
    with Index.open(path) as index:
        with index.writer() as writer:
            writer.sync(version(reached.value), allow_removals=True)
        assert everything(index) == expected_of(tmp_path, reached.value)
        assert sorted(file.suffix for file in path.iterdir() if file.suffix == ".tmp") == []


def test_a_killed_writer_releases_its_lock(tmp_path, caplog):
    Index.create(tmp_path, ["hashing:32"]).close()
    holding = processes.RawValue("l", 0)
    child = processes.Process(target=hold_the_lock, args=(tmp_path, holding))
    child.start()
    while not holding.value:
        time.sleep(0.01)
    with Index.open(tmp_path) as index:
        with pytest.raises(IndexBusyError, match=f"process {child.pid} since 20"):
            index.add(version(1))
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(index.add, version(1), wait=60)
            while f"process {child.pid}" not in caplog.text:
                time.sleep(0.01)
            child.kill()
            child.join()
            assert waiting.result().added == len(version(1))


def test_each_result_is_of_one_committed_state(tmp_path):
    with Index.create(tmp_path, ["hashing"]) as index:
        index.add(whole_state(0))
    running, reached = processes.RawValue("l", 1), processes.RawValue("l", 0)
    reports = processes.Queue()
    readers = [
        processes.Process(target=ask_and_check, args=(tmp_path, running, reports)) for _ in range(2)
    ]
    writer = processes.Process(target=write_states, args=(tmp_path, 1, 60, reached))
    for process in (*readers, writer):
        process.start()
    writer.join()
    running.value = 0
    seen = [reports.get(timeout=60) for _ in readers]
    for process in readers:
        process.join()
    assert writer.exitcode == 0
    compared, states, mistakes = zip(*seen, strict=True)
    assert mistakes == ([], [])
    assert sum(compared) > 40
    assert len(set().union(*states)) > 10
