"""Processes search while another writes, folds and compacts: each result is of one state."""

from __future__ import annotations

import multiprocessing

import pytest
from workers import ask_and_check, whole_state, write_states

from semsearch import Index

if "forkserver" not in multiprocessing.get_all_start_methods():
    pytest.skip("Windows has no fork server", allow_module_level=True)

STATES = 60
READERS = 2

processes = multiprocessing.get_context("forkserver")
processes.set_forkserver_preload(["workers", "faiss", "semsearch.indexing.writer"])


def test_each_result_is_of_one_committed_state(tmp_path):
    with Index.create(tmp_path, ["hashing"]) as index:
        index.add(whole_state(0))
    running, reached = processes.RawValue("l", 1), processes.RawValue("l", 0)
    reports = processes.Queue()
    readers = [
        processes.Process(target=ask_and_check, args=(tmp_path, running, reports))
        for _ in range(READERS)
    ]
    writer = processes.Process(target=write_states, args=(tmp_path, 1, STATES, reached))
    for process in (*readers, writer):
        process.start()
    writer.join()
    running.value = 0
    seen = [reports.get(timeout=60) for _ in readers]
    for process in readers:
        process.join()
    assert writer.exitcode == 0
    assert [mistake for one in seen for mistake in one.mistakes] == []
    assert sum(one.compared for one in seen) > 40
    assert len(set().union(*(one.states for one in seen))) > 10
