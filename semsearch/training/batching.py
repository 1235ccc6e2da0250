"""Batches of texts of like length, in another order every epoch.

What is computed for padding is lost: random batches of 16 of STS Benchmark are half padding. Only
the examples within a window are sorted, so batches stay random in all but length.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy
import torch
from numpy.typing import NDArray
from sentence_transformers.base.sampler import DefaultBatchSampler

#: How many batches' worth of examples are sorted by length together.
WINDOW_BATCHES = 64


def batches_by_length(
    lengths: NDArray[numpy.int64],
    size: int,
    random: numpy.random.Generator,
    texts: Sequence[Sequence[str]] = (),
) -> list[list[int]]:
    """All examples once, in batches of like length and random order.

    Args:
        lengths: how long each example is, shape (n,).
        size: examples in a batch; a few batches may have fewer.
        random: draws the order.
        texts: columns; with them, no batch holds a text twice, for what belongs to one example
            would count as wrong for the other.
    """
    order = random.permutation(len(lengths))
    made: list[list[int]] = []
    for start in range(0, len(order), WINDOW_BATCHES * size):
        rows = order[start : start + WINDOW_BATCHES * size]
        rows = rows[numpy.argsort(lengths[rows], kind="stable")]
        made += _cut(rows.tolist(), size, texts)
    return [made[place] for place in random.permutation(len(made))]


def _cut(rows: list[int], size: int, texts: Sequence[Sequence[str]]) -> list[list[int]]:
    if not texts:
        return [rows[start : start + size] for start in range(0, len(rows), size)]
    count = -(-len(rows) // size)
    batches: list[list[int]] = [[] for _ in range(count)]
    held: list[set[str]] = [set() for _ in range(count)]
    first = 0
    for row in rows:
        own = {column[row] for column in texts}
        while len(batches[first]) == size:
            first += 1
        free = [n for n in range(first, count) if len(batches[n]) < size]
        # Where every batch has the text already, the batch with room takes it all the same.
        chosen = next((n for n in free if not own & held[n]), free[0])
        batches[chosen].append(row)
        held[chosen] |= own
    return batches


class LikeLengthBatches(DefaultBatchSampler):  # type: ignore[misc]  # theirs is untyped
    """A batch sampler for sentence-transformers' trainers; the seed and the epoch decide.

    Args:
        lengths: as in `batches_by_length`.
        texts: the same.
        dataset: not used; like the following ones, it is passed by the trainer.
        batch_size: examples in a batch; the last one of an epoch may have fewer.
        seed: of the order.
        processes: how many share the batches; each gets `batch_size` examples of like length, and
            all get as many batches. In turn, each of them has one share, as accelerate wants it.
    """

    def __init__(
        self,
        lengths: NDArray[numpy.int64],
        texts: Sequence[Sequence[str]],
        dataset: object,
        batch_size: int,
        seed: int,
        processes: int = 1,
        **_: object,
    ) -> None:
        del dataset
        super().__init__(
            range(len(lengths)),
            batch_size=batch_size,
            drop_last=False,
            generator=torch.Generator(),
            seed=seed,
        )
        self._lengths = lengths
        self._texts = texts
        self._processes = processes
        self._size = batch_size * processes
        self.batch_size = None  # accelerate takes batches without a size as they are

    def __len__(self) -> int:
        return math.ceil(len(self._lengths) / self._size) * self._processes

    def __iter__(self) -> Iterator[list[int]]:
        random = numpy.random.default_rng([self.seed, self.epoch])
        for batch in batches_by_length(self._lengths, self._size, random, self._texts):
            for share in range(self._processes):
                # Of fewer examples than processes, some stand in two shares.
                yield batch[share % len(batch) :: self._processes]
