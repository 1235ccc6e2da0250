"""Batches of texts of similar length, in a different order every epoch.

Computation on padding is wasted: random batches of 16 from STS Benchmark are half padding. Only the
examples within a window are sorted, so batches stay random in all but length.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy
import torch
from numpy.typing import NDArray
from sentence_transformers.base.sampler import DefaultBatchSampler

#: Size of a window, in batches; the examples within it are sorted by length.
WINDOW_BATCHES = 64


def batches_by_length(
    lengths: NDArray[numpy.int64],
    size: int,
    random: numpy.random.Generator,
    texts: Sequence[Sequence[str]] = (),
) -> list[list[int]]:
    """All examples once, in batches of similar length and random order.

    Args:
        lengths: length of each example, shape (n,).
        size: examples in a batch; a few batches may have fewer.
        random: draws the order.
        texts: columns of texts; if given, a batch contains a text twice only if unavoidable, as
            the positive of one example would be a false negative of the other.
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
        # If every batch with room already has the text, the first of them takes it anyway.
        chosen = next((n for n in free if not own & held[n]), free[0])
        batches[chosen].append(row)
        held[chosen] |= own
    return batches


class LikeLengthBatches(DefaultBatchSampler):  # type: ignore[misc]  # theirs is untyped
    """A batch sampler for sentence-transformers' trainers; seed and epoch determine the order.

    Args:
        lengths: as in `batches_by_length`.
        texts: as in `batches_by_length`.
        dataset: not used; like the following ones, it is passed by the trainer.
        batch_size: examples in a batch; a few batches may have fewer.
        seed: of the order.
        processes: number of processes that share the batches. Each gets the same number of batches,
            of `batch_size` examples of similar length; the shares alternate, as accelerate expects.
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
        self.batch_size = None  # accelerate uses batches without a size unchanged

    def __len__(self) -> int:
        return math.ceil(len(self._lengths) / self._size) * self._processes

    def __iter__(self) -> Iterator[list[int]]:
        random = numpy.random.default_rng([self.seed, self.epoch])
        for batch in batches_by_length(self._lengths, self._size, random, self._texts):
            for share in range(self._processes):
                # With fewer examples than processes, some examples are in two shares.
                yield batch[share % len(batch) :: self._processes]
