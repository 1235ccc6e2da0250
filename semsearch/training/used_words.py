"""Training only those rows of the word embeddings that the texts use.

Half of MiniLM's weights are word embeddings; some thousand texts use a third of their rows. AdamW
would read and write all rows and both their moments at every step, although rows without gradients
change by weight decay alone.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import torch


class UsedRows(torch.nn.Module):
    """An embedding with some rows as trainable weights; the others are read-only.

    Its state is that of the whole embedding, so checkpoints and models have the usual format.

    Args:
        whole: the embedding that it replaces.
        used: the ids of the rows to train.
    """

    _ids: torch.Tensor
    _place: torch.Tensor
    _whole: torch.Tensor

    def __init__(self, whole: torch.nn.Embedding, used: Collection[int]) -> None:
        super().__init__()
        weight = whole.weight.detach()
        ids = torch.tensor(sorted(used), device=weight.device)
        place = torch.full((len(weight),), -1, device=weight.device)
        place[ids] = torch.arange(len(ids), device=weight.device)
        self.weight = torch.nn.Parameter(weight[ids])
        self.register_buffer("_ids", ids, persistent=False)
        self.register_buffer("_place", place, persistent=False)
        self.register_buffer("_whole", weight, persistent=False)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """The vectors of ids of any shape, shape (..., dimension)."""
        place = self._place[ids]
        trained = torch.nn.functional.embedding(place.clamp(min=0), self.weight)
        return torch.where(place.unsqueeze(-1) < 0, self._whole[ids], trained)

    def _save_to_state_dict(
        self, destination: dict[str, Any], prefix: str, keep_vars: bool
    ) -> None:
        del keep_vars
        rows = self.weight.detach()
        destination[f"{prefix}weight"] = self._whole.index_copy(0, self._ids, rows)

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, *arguments: Any
    ) -> None:
        name = f"{prefix}weight"
        if name in state_dict:
            state_dict = state_dict | {name: state_dict[name][self._ids.cpu()]}
        super()._load_from_state_dict(state_dict, prefix, *arguments)


def train_used_rows(model: Any, used: Collection[int]) -> None:
    """Train only the word embeddings that texts use.

    Args:
        model: a sentence-transformers model; unchanged if it has no plain embedding layer.
        used: the ids of all tokens in the training texts.
    """
    transformer = model.transformers_model
    words = None if transformer is None else transformer.get_input_embeddings()
    if type(words) is torch.nn.Embedding:
        transformer.set_input_embeddings(UsedRows(words, used))
