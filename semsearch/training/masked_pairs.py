"""Pairs of spans for BERT's pre-training, their masking, and both losses.

A document is cut into runs of sentences that fit, and each run is split at a random sentence end
into two spans (Devlin et al. 2019, section 3.1 and appendix A.2). Half of the pairs then exchange
their second spans with those of similar length from other documents, so that a model cannot
distinguish true and false ones by their length or place. Imports torch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, count
from typing import Any, NamedTuple

import numpy
import torch
from torch.nn.functional import cross_entropy, pad
from torch.utils.data import IterableDataset
from transformers import BertForPreTraining, BertTokenizerFast, DataCollatorForLanguageModeling

from semsearch.errors import TrainingError
from semsearch.training.batches import batches_by_length

Ids = list[int]
Batch = dict[str, torch.Tensor]

#: Fraction of runs that are shorter than they could be, as in BERT's published code.
SHORT_RUNS = 0.1
#: [CLS], and [SEP] after each span.
SPECIAL_TOKENS = 3
#: Batches are padded to a multiple of the first; masked tokens are predicted in multiples of the
#: second. On a CPU, each new matrix shape costs time and memory.
LENGTH_MULTIPLE, MASKED_MULTIPLE = 8, 64
#: What is measured on held-out documents; losses are mean cross-entropies in nats.
MEASURES = (
    *("masked words, loss", "masked words found, %"),
    *("next sentence, loss", "next sentence found, %"),
)


class Pair(NamedTuple):
    """The token ids of two spans, and whether the second follows the first."""

    first: Ids
    second: Ids
    is_next: bool


def next_sentence_pairs(
    documents: Iterable[Sequence[Ids]], room: int, generator: numpy.random.Generator
) -> list[Pair]:
    """Pairs from all documents of two or more sentences, about half of them true.

    Pairs whose spans would be exchanged within one document are left out. Documents are given as
    the token ids of their sentences; `room` is the maximum number of tokens per pair.
    """
    runs = [
        (number, *spans)
        for number, sentences in enumerate(documents)
        for spans in _runs(sentences, room, generator)
    ]
    exchanged = generator.permutation(len(runs))[: len(runs) // 2].tolist()
    exchanged.sort(key=lambda place: len(runs[place][2]))  # ties stay in random order
    givers = dict(zip(exchanged, [*exchanged[1:], *exchanged[:1]], strict=True))
    pairs = []
    for place, (owner, first, second) in enumerate(runs):
        is_next = place not in givers
        if not is_next:
            giver, _, second = runs[givers[place]]
            if giver == owner:
                continue
        # The longer span is cut first, at its outer end.
        kept = min(len(first), max(room - len(second), room // 2))
        pairs.append(Pair(first[len(first) - kept :], second[: room - kept], is_next))
    return pairs


def _runs(
    sentences: Sequence[Ids], room: int, generator: numpy.random.Generator
) -> Iterator[tuple[Ids, Ids]]:
    """Both spans of the runs of a document, each of one sentence or more."""
    start = 0
    while len(sentences) - start >= 2:
        is_short = generator.random() < SHORT_RUNS
        wanted = int(generator.integers(2, room + 1)) if is_short else room
        lengths = numpy.cumsum([len(one) for one in sentences[start : start + wanted]])
        end = start + max(2, int(numpy.searchsorted(lengths, wanted, "right")))
        cut = int(generator.integers(start + 1, end))
        first, second = sentences[start:cut], sentences[cut:end]
        yield list(chain.from_iterable(first)), list(chain.from_iterable(second))
        start = end


class MaskedPairs(IterableDataset[Batch]):
    """Batches of masked pairs of spans, in endless epochs with new pairs and masks.

    They depend only on the seed, so a resumed run sees the same batches. The documents are given
    as sentences; `max_tokens` per pair include special tokens.
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
        encode = partial(backend.encode_batch_fast, add_special_tokens=False)
        read = (encode(list(sentences)) for sentences in documents)
        self.documents = [[one.ids for one in sentences if one.ids] for sentences in read]
        if sum(len(sentences) > 1 for sentences in self.documents) < 4:  # two must be exchanged
            raise TrainingError("fewer than four documents have two sentences with words in them")
        self._tokenizer = tokenizer
        self._room = max_tokens - SPECIAL_TOKENS
        self._batch_size = batch_size
        self._seed = seed

    def pairs(self, epoch: int) -> list[list[Pair]]:
        """The pairs of an epoch, in batches of similar length."""
        random = numpy.random.default_rng([self._seed, epoch])
        pairs = next_sentence_pairs(self.documents, self._room, random)
        lengths = numpy.array([len(pair.first) + len(pair.second) for pair in pairs])
        batches = batches_by_length(lengths, self._batch_size, random)
        return [[pairs[row] for row in rows] for rows in batches]

    def batches(self, epochs: Iterable[int]) -> Iterator[Batch]:
        """The batches; 15 % of the tokens are masked (Devlin et al. 2019, section 3.1)."""
        collator = DataCollatorForLanguageModeling(
            self._tokenizer, pad_to_multiple_of=LENGTH_MULTIPLE
        )
        collator.generator = torch.Generator().manual_seed(self._seed)
        for epoch in epochs:
            for pairs in self.pairs(epoch):
                yield collator([self._input(pair) for pair in pairs])

    def __iter__(self) -> Iterator[Batch]:
        return self.batches(count())

    def _input(self, pair: Pair) -> dict[str, Any]:
        """The unmasked input: [CLS] first span [SEP] second span [SEP]."""
        first, second, is_next = pair
        cls, sep = self._tokenizer.cls_token_id, self._tokenizer.sep_token_id
        return {
            "input_ids": [cls, *first, sep, *second, sep],
            "token_type_ids": [0] * (len(first) + 2) + [1] * (len(second) + 1),
            "special_tokens_mask": [1, *[0] * len(first), 1, *[0] * len(second), 1],
            "next_sentence_label": int(not is_next),
        }


def loss_of(model: BertForPreTraining, **batch: torch.Tensor) -> dict[str, torch.Tensor]:
    """The mean loss of the masked words plus the mean loss of next-sentence prediction."""
    masked, _, following, _ = outcomes(model, **batch)
    return {"loss": masked + following}


def outcomes(
    model: BertForPreTraining,
    labels: torch.Tensor,
    next_sentence_label: torch.Tensor,
    **features: torch.Tensor,
) -> list[torch.Tensor]:
    """The values of `MEASURES` for a batch.

    `BertForPreTraining.forward` predicts all tokens, not only the masked ones, which costs a small
    model more than all its layers.
    """
    places = (labels.flatten() >= 0).nonzero().flatten()
    padded = pad(places, (0, -len(places) % MASKED_MULTIPLE))
    hidden, pooled = model.bert(**features, return_dict=False)
    words = model.cls.predictions(hidden.flatten(0, 1)[padded])[: len(places)]
    following = model.cls.seq_relationship(pooled)
    found = []
    for logits, wanted in ((words, labels.flatten()[places]), (following, next_sentence_label)):
        count = max(1, len(wanted))
        found.append(cross_entropy(logits.float(), wanted, reduction="sum") / count)
        found.append(100 * (logits.argmax(-1) == wanted).sum() / count)
    return found


def measured(model: BertForPreTraining, batches: Iterable[Batch]) -> dict[str, float]:
    """The values of `MEASURES` by name, averaged over batches."""
    with torch.inference_mode():
        values = [torch.stack(outcomes(model.eval(), **batch)) for batch in batches]
    return dict(zip(MEASURES, torch.stack(values).mean(0).tolist(), strict=True))
