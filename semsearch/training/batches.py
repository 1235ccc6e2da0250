"""Faster training: batches of texts of like length, and word embeddings that occur.

Random batches of 16 from STS Benchmark are half padding. Half of MiniLM's weights are word
embeddings, of which some thousand texts use a third; AdamW would read and write all rows and both
their moments at every step.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from typing import Any

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
    """All examples once, in batches of similar length and random order; a few have fewer.

    Args:
        lengths: length of each example, shape (n,).
        size: examples in a batch.
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

    The first two arguments are those of `batches_by_length`; the trainer passes the others.
    """

    def __init__(
        self,
        lengths: NDArray[numpy.int64],
        texts: Sequence[Sequence[str]],
        dataset: Any,
        batch_size: int,
        drop_last: bool,
        seed: int,
        **_: object,
    ) -> None:
        del dataset
        rows, generator = range(len(lengths)), torch.Generator()
        super().__init__(rows, batch_size, drop_last, generator=generator, seed=seed)
        self._lengths = lengths
        self._texts = texts
        self._size = batch_size
        self.batch_size = None  # accelerate uses batches without a size unchanged

    def __len__(self) -> int:
        return math.ceil(len(self._lengths) / self._size)

    def __iter__(self) -> Iterator[list[int]]:
        random = numpy.random.default_rng([self.seed, self.epoch])
        yield from batches_by_length(self._lengths, self._size, random, self._texts)


class UsedRows(torch.nn.Module):
    """An embedding of which only some rows are trained.

    Its state is that of the whole embedding, so checkpoints and models have the usual format.
    """

    ids: torch.Tensor
    place: torch.Tensor
    whole: torch.Tensor

    def __init__(self, whole: torch.nn.Embedding, used: Collection[int]) -> None:
        super().__init__()
        weight = whole.weight.detach()
        ids = torch.tensor(sorted(used), device=weight.device)
        place = torch.full((len(weight),), -1, device=weight.device)
        place[ids] = torch.arange(len(ids), device=weight.device)
        self.weight = torch.nn.Parameter(weight[ids])
        self.register_buffer("ids", ids, persistent=False)
        self.register_buffer("place", place, persistent=False)
        self.register_buffer("whole", weight, persistent=False)
        hooks: Any = self  # theirs are untyped
        hooks.register_state_dict_post_hook(_whole_in_state)
        hooks.register_load_state_dict_pre_hook(_rows_of_state)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """The vectors of ids of any shape, shape (..., dimension)."""
        place = self.place[ids]
        trained = torch.nn.functional.embedding(place.clamp(min=0), self.weight)
        return torch.where(place.unsqueeze(-1) < 0, self.whole[ids], trained)


def _whole_in_state(module: Any, state: dict[str, Any], prefix: str, _: Any) -> None:
    state[f"{prefix}weight"] = module.whole.index_copy(0, module.ids, module.weight.detach())


def _rows_of_state(module: Any, state: dict[str, Any], prefix: str, *_: Any) -> None:
    if (name := f"{prefix}weight") in state:
        state[name] = state[name][module.ids.cpu()]


def train_used_rows(model: Any, used: Collection[int]) -> None:
    """Train only the embeddings of these token ids, if the model has a plain embedding layer."""
    transformer = model.transformers_model
    words = None if transformer is None else transformer.get_input_embeddings()
    if type(words) is torch.nn.Embedding:
        transformer.set_input_embeddings(UsedRows(words, used))
