"""Batches whose passages and vectors are written by the nodes of a cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from semsearch.index.batch import Batch, BatchResult, BatchWriter
from semsearch.index.plan import Planned
from semsearch.index.workers import Nodes, Spans, Written
from semsearch.stores.protocol import SharingWriter


class SharingBatchWriter(BatchWriter):
    """Lets nodes encode and write; this process assigns the numbers of rows and commits them.

    A text that occurs in several batches is encoded for each, as its vector is not in this process.

    Args:
        writer: the writer of the store.
        nodes: the nodes of the workers.
        others: the other arguments of `BatchWriter`.
    """

    def __init__(self, writer: SharingWriter, nodes: Nodes, *others: Any) -> None:
        super().__init__(writer, *others)
        self._sharing = writer
        self._nodes = nodes

    def _compared(self, plans: list[Planned], spans: Sequence[Spans]) -> Batch:
        return self._fitting(plans, spans)

    def _begin_encoding(self, batch: Batch) -> Callable[[], tuple[Any, Written] | None]:
        new = batch.new_documents()
        if not new:
            return lambda: None
        share = self._sharing.share(new)
        result = self._nodes.write(share)
        return lambda: (share, result())

    def _apply(self, batch: Batch, found: Any) -> BatchResult:
        if found is None:
            self._grow(batch, 0.0)
            return batch.result(0, Counter())
        share, written = found
        self._grow(batch, written.seconds)
        batch.refused = written.refused
        names = [plan.external_id for plan in batch.plans]
        if batch.refused:
            self._leave_out_refused(batch)
        kept = {plan.external_id for plan in batch.plans}
        result = written.result
        if result is None:
            result = self._sharing.write_share(share, written.vectors)
        self._sharing.put_share(result, [name for name in names if name not in kept])
        return batch.result(max(written.encoded), Counter({written.node: sum(written.encoded)}))
