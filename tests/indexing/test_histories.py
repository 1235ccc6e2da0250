"""Random histories of an index, compared with a dictionary as its model.

Documents are added, changed, deleted and synced, in this process and in others, some of which are
killed; snapshots are damaged, spaces are added and dropped. After each step, readers that were
opened at any earlier time return the results of the model.

``SEMSEARCH_HISTORIES=10000 scripts/test tests/indexing/test_histories.py`` runs 10,000.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from contextlib import nullcontext
from multiprocessing import get_context
from pathlib import Path

import histories
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from semsearch import Document, Index
from semsearch.errors import ArgumentError, BadRowError, FilterError, RemovalError, SpaceError

pytestmark = pytest.mark.skipif(os.name != "posix", reason="processes are forked and killed")

HISTORIES = int(os.environ.get("SEMSEARCH_HISTORIES", "10"))

#: Words with different stems, none of which contains another.
WORDS = ["amber", "birch", "cedar", "delta", "fjord", "grove", "heath", "knoll"]
IDS = [f"d{number}" for number in range(14)]

#: Documents by id or, without one, by text and the number of earlier ones with that text.
Model = dict[str | tuple[str, int], Document]

texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)
metadata = st.fixed_dictionaries(
    {},
    optional={
        "n": st.integers(-2, 3) | st.none(),
        "tag": st.sampled_from(["x", "y"]) | st.lists(st.sampled_from(["x", "y", "z"]), max_size=2),
        "flag": st.booleans(),
        "id": st.sampled_from(IDS),  # not the document's own
    },
)
documents = st.builds(
    Document,
    st.sampled_from(IDS) | st.none(),
    texts,
    st.none() | st.sampled_from(["T1", "T2"]),
    metadata,
)
corpora = st.lists(documents, max_size=20)


def elements(value) -> list:
    return value if isinstance(value, list) else [] if value is None else [value]


#: Filters, each with an equivalent predicate.
FILTERS = {
    "n >= 1": lambda one: any(n >= 1 for n in elements(one.metadata.get("n"))),
    "n is null": lambda one: one.metadata.get("n") is None,
    "not flag = true and tag in ('x', 'y')": lambda one: (
        one.metadata.get("flag") is not True
        and not {"x", "y"}.isdisjoint(elements(one.metadata.get("tag")))
    ),
    # Not 'd1%': ids derived from content are hexadecimal and may start like that.
    "id like 'd1_'": lambda one: one.id in IDS[10:],
    "metadata.id = 'd3'": lambda one: one.metadata.get("id") == "d3",
}


def upserted(model: Model, corpus: list[Document], skip: bool) -> Model | None:
    """The model after an upsert; None if a duplicate id makes it fail."""
    after, seen = dict(model), Counter()
    for document in corpus:
        key = document.id or (document.text, seen[document.text])
        if document.id is None:
            seen[document.text] += 1
        elif seen[key]:
            if not skip:
                return None
            continue
        else:
            seen[key] += 1
        after[key] = document
    return after


def synced(model: Model, corpus: list[Document], skip: bool) -> Model | None:
    after = upserted({}, corpus, skip)
    if after is None:
        return None
    order = upserted(model, corpus, skip) or {}
    return {key: order[key] for key in order if key in after}


def content(found: Mapping | list) -> Counter:
    """The documents of an index or a model, without ids derived from content."""
    entries = found.values() if isinstance(found, dict) else found
    return Counter(
        (one.id, one.text, one.title, repr(sorted(one.metadata.items()))) for one in entries
    )


class Histories(RuleBasedStateMachine):
    @initialize(corpus=corpora)
    def create(self, corpus):
        shm = Path("/dev/shm")
        self.folder = Path(tempfile.mkdtemp(dir=shm if shm.is_dir() else None))
        self.path = self.folder / "x"
        self.model: Model = {}
        self.spaces = 1
        self.steps = 0
        self.index = Index.create(self.path, [histories.encoder()])
        self.readers: list[Index] = []
        self.open_reader()
        self.upsert(corpus, True)

    def teardown(self):
        if not hasattr(self, "folder"):
            return
        try:
            with self.index.writer() as writer:
                faults = writer.verify()
                # Only snapshots have faults: some were damaged, and killed runs leave some behind.
                assert all(".faiss" in fault.what and fault.repairable for fault in faults), faults
                if faults:
                    writer.repair()
                    assert writer.verify() == []
            self.agrees()
        finally:
            for opened in [*self.readers, self.index]:
                opened.close()
            shutil.rmtree(self.folder)

    # Writers.

    @rule(corpus=corpora, skip=st.booleans())
    def upsert(self, corpus, skip):
        after = upserted(self.model, corpus, skip)
        with nullcontext() if after is not None else pytest.raises(BadRowError):
            histories.write(self.index, corpus, skip, None)
        self.model = self.model if after is None else after

    @rule(corpus=corpora, skip=st.booleans(), allow=st.booleans())
    def sync(self, corpus, skip, allow):
        after = synced(self.model, corpus, skip)
        error = nullcontext()
        if after is None:
            after, error = self.model, pytest.raises(BadRowError)
        removed = len(self.model.keys() - after.keys())
        many = removed > 10 and removed > len(self.model) / 10
        if removed and not allow and (many or not after):
            after, error = upserted(self.model, corpus, skip), pytest.raises(RemovalError)
        with error:
            histories.write(self.index, corpus, skip, allow)
        self.model = after

    @rule(corpus=corpora, after=st.integers(0, 20))
    def sync_with_a_corpus_that_fails(self, corpus, after):
        def failing():
            yield from corpus[:after]
            raise OSError("the disk is gone")

        with pytest.raises((OSError, BadRowError)):
            histories.write(self.index, failing(), False, True)

    @rule(ids=st.lists(st.sampled_from(IDS), max_size=6, unique=True))
    def delete_by_id(self, ids):
        if set(ids) <= self.model.keys():
            histories.delete(self.index, ids, None)
            self.model = {key: self.model[key] for key in self.model if key not in ids}
        else:
            with pytest.raises(ArgumentError):
                histories.delete(self.index, ids, None)

    @rule(where=st.sampled_from(sorted(FILTERS)))
    def delete_by_filter(self, where):
        try:
            histories.delete(self.index, None, where)
        except FilterError:
            assert not self.knows(where)
            return
        self.model = {key: one for key, one in self.model.items() if not FILTERS[where](one)}

    @rule(method=st.sampled_from(["compact", "repair"]))
    def maintain(self, method):
        for reader in self.readers:  # an active reader keeps the log
            reader._store.database._engine.dispose()
        histories.maintain(self.index, method)

    @rule()
    def add_space(self):
        histories.maintain(self.index, "add_space", histories.encoder(histories.OTHER_SPEC))
        self.spaces = 2

    @precondition(lambda self: self.spaces == 2)
    @rule()
    def drop_space(self):
        histories.maintain(self.index, "drop_space", "hashing-24")
        self.spaces = 1
        with pytest.raises(SpaceError):
            self.index.search("amber", space="hashing-24")

    # Other processes.

    def in_a_process(self, operation, *arguments, killed_at=0):
        process = get_context("forkserver").Process(
            target=histories.in_a_process, args=(self.path, operation, arguments, killed_at)
        )
        process.start()
        process.join()
        assert process.exitcode in (0, 3, -9)
        return process.exitcode

    @rule(
        corpus=corpora,
        killed_at=st.just(0) | st.integers(1, 60),
        removing=st.booleans(),
        skip=st.booleans(),
    )
    def another_process_writes(self, corpus, killed_at, removing, skip):
        added = upserted(self.model, corpus, skip)
        wanted = synced(self.model, corpus, skip) if removing else added
        allow = True if removing else None
        code = self.in_a_process(histories.write, corpus, skip, allow, killed_at=killed_at)
        if wanted is None:
            assert code in (3, -9)
        elif code == 0:
            self.model = wanted
        else:
            assert code == -9
            self.settle(added, wanted)

    @rule(where=st.sampled_from(sorted(FILTERS)), killed_at=st.integers(1, 40))
    def another_process_is_killed_deleting(self, where, killed_at):
        code = self.in_a_process(histories.delete, None, where, killed_at=killed_at)
        if code == 3:
            assert not self.knows(where)
        else:
            self.settle({key: one for key, one in self.model.items() if not FILTERS[where](one)})

    @rule(method=st.sampled_from(["compact", "repair"]), killed_at=st.just(0) | st.integers(1, 80))
    def another_process_maintains_it(self, method, killed_at):
        self.in_a_process(histories.maintain, method, killed_at=killed_at)
        if killed_at:  # readers refuse a space that is being repaired
            histories.maintain(self.index, "repair")

    def settle(self, *afterwards):
        """After a kill, the index is as before or as after one of the commits."""
        found = content(self.stored())
        for state in (self.model, *afterwards):
            if content(state) == found:
                self.model = state
                return
        raise AssertionError(f"after a kill: {found}")

    # Files and readers.

    @rule(how=st.sampled_from(["cut", "gone", "foreign"]))
    def damage_snapshots(self, how):
        for file in self.path.glob("*.faiss"):
            if how == "gone":
                file.unlink()
            else:
                content = file.read_bytes()
                file.unlink()  # readers have the old one mapped
                file.write_bytes(content[:-1] if how == "cut" else b"x" * len(content))

    @rule()
    def open_reader(self):
        self.readers.append(Index.open(self.path, encoders=[histories.encoder()]))

    @rule()
    def reopen(self):
        self.index.close()
        self.index = histories.open_index(self.path)

    # Invariants.

    @invariant()
    def agrees(self):
        if not hasattr(self, "folder"):
            return
        assert len(self.index) == len(self.model)
        assert content(self.stored()) == content(self.model)
        query = WORDS[len(self.model) % len(WORDS)] + " fjord"
        where = sorted(FILTERS)[len(self.model) % len(FILTERS)]
        self.steps += 1
        reader = self.readers[self.steps % len(self.readers)]
        try:
            self.answers(reader, query, where if self.steps % 2 else None)
        except FilterError:
            assert not self.knows(where)

    def knows(self, where):
        """Whether the documents have all fields of a filter."""
        names = re.findall(r"\b(n|tag|flag|metadata\.id)\b", where)
        known = {name for one in self.model.values() for name in one.metadata}
        return {name.removeprefix("metadata.") for name in names} <= known

    def stored(self) -> list[Document]:
        """All documents, through a reader that has just been opened."""
        with Index.open(self.path, encoders=[histories.encoder()]) as reader:
            hits = reader.search("amber", 1000)
        own = {hit.document_id: hit.document_id for hit in hits if hit.document_id in IDS}
        return [
            Document(own.get(hit.document_id), hit.text, hit.title, hit.metadata) for hit in hits
        ]

    def answers(self, reader, query, where):
        chosen = [one for one in self.model.values() if where is None or FILTERS[where](one)]
        vector = histories.encoder().encode_queries([query])[0]
        matrix = histories.encoder().encode_documents([one.text for one in chosen] or ["-"])
        cosines = (matrix @ vector)[: len(chosen)]
        hits = reader.search(query, 1000, where=where)
        found = sorted((hit.text, round(hit.score, 4)) for hit in hits)
        scores = [round(float(score), 4) for score in cosines]
        wanted = sorted(zip((one.text for one in chosen), scores, strict=True))
        assert found == [(text, pytest.approx(score, abs=2e-4)) for text, score in wanted]
        order = [(-hit.score, hit.passage.id) for hit in hits]
        assert order == sorted(order)
        best = reader.search(query, 3, where=where)
        assert [hit.document_id for hit in best] == [hit.document_id for hit in hits[:3]]
        words = set(query.split())
        sharing = sorted(one.text for one in chosen if words & set(one.text.split()))
        lexical = reader.search(query, 1000, where=where, mode="bm25")
        assert sorted(hit.text for hit in lexical) == sharing
        hybrid = reader.search(query, 1000, where=where, mode="hybrid")
        assert sorted(hit.text for hit in hybrid) == [text for text, _ in wanted]


def test_histories(seed, tmp_path):
    with Index.create(tmp_path / "x", [histories.encoder()]) as index:  # imports what they need
        histories.write(index, [Document("d1", "amber")], True, True)
        histories.delete(index, None, "id = 'd1'")
        histories.maintain(index, "compact")
    packages = ("faiss", "numpy", "semsearch", "sqlalchemy")
    imported = [name for name in sys.modules if name.startswith(packages)]
    get_context("forkserver").set_forkserver_preload(imported)
    run_state_machine_as_test(
        Histories,
        settings=settings(
            max_examples=HISTORIES,
            stateful_step_count=12,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
