"""Batches of pairs of spans for BERT's pre-training, and its two losses.

Imported only when training begins, for it imports torch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from typing import Any, NamedTuple

import numpy
import torch
from torch.nn.functional import cross_entropy, pad
from torch.utils.data import Dataset
from transformers import BertForPreTraining, BertTokenizerFast, DataCollatorForLanguageModeling

from semsearch.errors import TrainingError
from semsearch.training.batching import batches_by_length
from semsearch.training.next_sentence import Pairs, next_sentence_pairs, tokens_of

#: [CLS], and [SEP] after each span.
SPECIAL_TOKENS = 3
#: Batches are padded to a multiple of the first; masked tokens are predicted in multiples of the
#: second. On a CPU, each new matrix shape costs time and memory.
LENGTH_MULTIPLE, MASKED_MULTIPLE = 8, 64


class Row(NamedTuple):
    """A row of a batch."""

    batch: int  #: number of the batch, which seeds the masking
    pairs: Pairs
    place: int


class MaskedPairs(Dataset[dict[str, Any]]):
    """Masked pairs of spans, redrawn in each epoch.

    Pairs and masks depend only on the seed and the batch number, so a resumed run sees the same
    batches.

    Args:
        documents: the sentences of each document.
        tokenizer: splits sentences into word pieces.
        max_tokens: maximum tokens per pair, including special tokens.
        batch_size: pairs per batch.
        seed: of the pairs and masks.

    Raises:
        TrainingError: fewer than four documents have two sentences.
    """

    def __init__(
        self,
        documents: Iterable[Sequence[str]],
        tokenizer: BertTokenizerFast,
        max_tokens: int,
        batch_size: int,
        seed: int,
    ) -> None:
        backend = tokenizer.backend_tokenizer
        backend.no_truncation()
        self.tokens = tokens_of(
            [one.ids for one in backend.encode_batch_fast(list(text), add_special_tokens=False)]
            for text in documents
        )
        if numpy.count_nonzero(numpy.diff(self.tokens.documents) > 1) < 4:  # two must be exchanged
            raise TrainingError("fewer than four documents have two sentences with words in them")
        self._tokenizer = tokenizer
        self._room = max_tokens - SPECIAL_TOKENS
        self._batch_size = batch_size
        self._seed = seed
        self._collator = DataCollatorForLanguageModeling(
            tokenizer, pad_to_multiple_of=LENGTH_MULTIPLE
        )

    def epoch(self, number: int) -> Iterator[tuple[Pairs, list[int]]]:
        """One epoch in batches: all of its pairs, and the rows of the batch."""
        random = numpy.random.default_rng([self._seed, number])
        pairs = next_sentence_pairs(self.tokens, self._room, random)
        for rows in batches_by_length(pairs.lengths(), self._batch_size, random):
            yield pairs, rows

    @property
    def batches(self) -> Iterable[list[Row]]:
        """An endless sequence of batches."""
        return _Batches(self)

    def __len__(self) -> int:
        return len(self.tokens.documents)

    def __getitem__(self, row: Row) -> dict[str, Any]:
        """The unmasked input: [CLS] first span [SEP] second span [SEP]."""
        known, (_, pairs, place) = self._tokenizer, row
        first, second = (
            self.tokens.ids[slice(*spans[place])].tolist() for spans in (pairs.first, pairs.second)
        )
        ids = [known.cls_token_id, *first, known.sep_token_id, *second, known.sep_token_id]
        return {
            "input_ids": ids,
            "token_type_ids": [0] * (len(first) + 2) + [1] * (len(second) + 1),
            "special_tokens_mask": [1, *[0] * len(first), 1, *[0] * len(second), 1],
            "next_sentence_label": int(not pairs.is_next[place]),
            "batch": row.batch,
        }

    def collated(self, rows: list[dict[str, Any]]) -> dict[str, torch.Tensor]:
        """Rows as tensors; 15 % of the tokens are masked (Devlin et al. 2019, section 3.1)."""
        (number,) = {row.pop("batch") for row in rows}
        state = numpy.random.SeedSequence([self._seed, number]).generate_state(1, numpy.uint64)
        self._collator.generator = torch.Generator().manual_seed(int(state[0] >> 1))
        found: dict[str, torch.Tensor] = self._collator(rows)
        return found

    def evaluated(self) -> Iterator[dict[str, torch.Tensor]]:
        """Evaluation batches, with the same pairs and masks in every call."""
        for number, (pairs, rows) in enumerate(self.epoch(0)):
            yield self.collated([self[Row(number, pairs, place)] for place in rows])


class _Batches:
    """A batch sampler without a length, so that the trainer counts all steps as one epoch."""

    def __init__(self, data: MaskedPairs) -> None:
        self._data = data

    def __iter__(self) -> Iterator[list[Row]]:
        epochs = (batch for epoch in count() for batch in self._data.epoch(epoch))
        for number, (pairs, rows) in enumerate(epochs):
            yield [Row(number, pairs, place) for place in rows]


class HeldOutLosses(NamedTuple):
    """Losses and accuracies on held-out documents."""

    masked_loss: float  #: mean cross-entropy of the masked tokens, nats
    masked_accuracy: float
    next_loss: float  #: mean cross-entropy of next-sentence prediction, nats
    next_accuracy: float

    def __str__(self) -> str:
        return (
            f"masked words: loss {self.masked_loss:.3f}, accuracy {self.masked_accuracy:.1%}; "
            f"next sentence: loss {self.next_loss:.3f}, accuracy {self.next_accuracy:.1%}"
        )


def loss_of(
    model: BertForPreTraining,
    input_ids: torch.Tensor,
    token_type_ids: torch.Tensor,
    attention_mask: torch.Tensor,
    labels: torch.Tensor,
    next_sentence_label: torch.Tensor,
) -> dict[str, torch.Tensor]:
    """The mean loss of the masked words plus the mean loss of next-sentence prediction.

    `BertForPreTraining.forward` predicts all tokens, not only the masked ones, which costs a small
    model more than all its layers.
    """
    features = input_ids, attention_mask, token_type_ids
    words, answers, following = predictions(model, *features, labels)
    return {
        "loss": cross_entropy(words, answers, reduction="sum") / max(1, len(answers))
        + cross_entropy(following, next_sentence_label)
    }


def predictions(
    model: BertForPreTraining,
    input_ids: torch.Tensor,
    attention_mask: torch.Tensor,
    token_type_ids: torch.Tensor,
    labels: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Predictions for the masked tokens and the next sentence.

    Returns:
        Logits of the masked tokens, shape (masked, vocabulary); their true ids; logits of next and
        not next, shape (n, 2).
    """
    places = (labels.flatten() >= 0).nonzero().flatten()
    padded = pad(places, (0, -len(places) % MASKED_MULTIPLE))
    hidden, pooled = model.bert(
        input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids, return_dict=False
    )
    words = model.cls.predictions(hidden.flatten(0, 1)[padded])[: len(places)]
    following = model.cls.seq_relationship(pooled)
    return words.float(), labels.flatten()[places], following.float()


def held_out_losses(model: BertForPreTraining, data: MaskedPairs) -> HeldOutLosses:
    """Both losses and accuracies, with the model in evaluation mode."""
    sums, counts = numpy.zeros(4), numpy.zeros(4)
    with torch.inference_mode():
        for batch in data.evaluated():
            batch = {name: tensor.to(model.device) for name, tensor in batch.items()}
            is_not_next = batch.pop("next_sentence_label")
            words, answers, following = predictions(model.eval(), **batch)
            sums += [
                float(measure(logits, wanted))
                for logits, wanted in ((words, answers), (following, is_not_next))
                for measure in (_summed_loss, _right)
            ]
            counts += numpy.repeat([len(answers), len(is_not_next)], 2)
    return HeldOutLosses(*(sums / numpy.maximum(1, counts)).tolist())


def _summed_loss(logits: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    return cross_entropy(logits, wanted, reduction="sum")


def _right(logits: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    return (logits.argmax(-1) == wanted).sum()
