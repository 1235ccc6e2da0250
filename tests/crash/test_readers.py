"""Several processes ask while one writes, folds and compacts: each answer is one state's."""

from __future__ import annotations

import multiprocessing

import numpy
from workers import QUERY, ask_forever, whole_state, write_states

from semsearch import Index
from semsearch.encoders import load_encoder

STATES = 150
READERS = 3
DELETED = {"d0", "d7", "d14", "d21", "d28"}

processes = multiprocessing.get_context("forkserver")
processes.set_forkserver_preload(["workers", "faiss", "semsearch.index.writer"])


def best(number, encoder, kept):
    """The five best documents of a state, by numpy: ids and scores."""
    documents = [document for document in whole_state(number) if kept(document.id)]
    matrix = encoder.encode_documents([document.text for document in documents])
    scores = matrix @ encoder.encode_queries([QUERY])[0]
    order = numpy.lexsort((numpy.arange(len(documents)), -scores))[:5]
    return numpy.sort(scores[order])[::-1], dict(
        zip([d.id for d in documents], scores, strict=True)
    )


def test_each_answer_is_one_committed_state(tmp_path):
    with Index.create(tmp_path, ["hashing"]) as index:
        index.add(whole_state(0))
    running = processes.Value("l", 1)
    answers = processes.Queue()
    readers = [
        processes.Process(target=ask_forever, args=(tmp_path, running, answers))
        for _ in range(READERS)
    ]
    writer = processes.Process(target=write_states, args=(tmp_path, STATES))
    for process in (*readers, writer):
        process.start()
    writer.join()
    running.value = 0
    given = [answers.get(timeout=60) for _ in readers]
    for process in readers:
        process.join()
    assert writer.exitcode == 0
    encoder = load_encoder("hashing")
    seen_states = set()
    for found in given:
        assert not isinstance(found, Exception), found
        for mode, hits in found:
            states = {state for _, state, _, _ in hits}
            assert len(states) <= 1
            for number in states:
                seen_states.add(number)
                check(mode, number, hits, encoder)
    assert sum(map(len, given)) > 100
    assert len(seen_states) > 5


def check(mode, number, hits, encoder):
    texts = {document.id: document.text for document in whole_state(number)}
    assert all(texts[name] == passage for name, _, passage, _ in hits)
    if mode == "bm25":
        assert all(set(passage.split()) & set(QUERY.split()) for _, _, passage, _ in hits)
        return
    wanted = (lambda name: name.startswith("d1")) if mode == "filtered" else (lambda name: True)
    possible = []
    for removed in ((), DELETED):  # the state as it was written, and after its deletion
        scores, by_name = best(
            number, encoder, lambda name, removed=removed: wanted(name) and name not in removed
        )
        possible.append(
            numpy.allclose(scores, [score for *_, score in hits], atol=1e-6)
            and all(abs(by_name.get(name, 9) - score) < 1e-6 for name, _, _, score in hits)
        )
    assert any(possible)
