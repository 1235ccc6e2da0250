"""Pairs of spans for BERT's pre-training, their masking, and both losses.

A document is cut into runs of sentences that fit, and each run is split at a random sentence end
into two spans (Devlin et al. 2019, section 3.1 and appendix A.2). Half of the pairs then
exchange their second spans, so that each of these follows a span of another document. True and
false second spans thus differ in nothing else, and spans of similar length are exchanged: a model
cannot distinguish them by their length or their place in the document.

Imported only when training begins, for it imports torch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
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
#: What is measured on held-out documents.
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

    Pairs whose spans would be exchanged within one document are left out.

    Args:
        documents: the token ids of their sentences; at least four have two sentences.
        room: maximum tokens per pair, without special tokens; the longer span is cut.
        generator: draws where runs end, where they are split, and which spans are exchanged.
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

    They depend only on the seed, so a resumed run sees the same batches.

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
        read = (
            backend.encode_batch_fast(list(text), add_special_tokens=False) for text in documents
        )
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
        known, (first, second, is_next) = self._tokenizer, pair
        return {
            "input_ids": [
                *[known.cls_token_id, *first, known.sep_token_id],
                *[*second, known.sep_token_id],
            ],
            "token_type_ids": [0] * (len(first) + 2) + [1] * (len(second) + 1),
            "special_tokens_mask": [1, *[0] * len(first), 1, *[0] * len(second), 1],
            "next_sentence_label": int(not is_next),
        }


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


def held_out_losses(model: BertForPreTraining, batches: Iterable[Batch]) -> dict[str, float]:
    """Both losses (mean cross-entropies in nats) and accuracies, with the model in evaluation mode.

    Returns:
        The values of `MEASURES` by name.
    """
    sums, counts = numpy.zeros(4), numpy.zeros(4)
    with torch.inference_mode():
        for batch in batches:
            batch = {name: tensor.to(model.device) for name, tensor in batch.items()}
            is_not_next = batch.pop("next_sentence_label")
            words, answers, following = predictions(model.eval(), **batch)
            sums += [
                float(value)
                for logits, wanted in ((words, answers), (following, is_not_next))
                for value in (
                    cross_entropy(logits, wanted, reduction="sum"),
                    100 * (logits.argmax(-1) == wanted).sum(),
                )
            ]
            counts += numpy.repeat([len(answers), len(is_not_next)], 2)
    means = (sums / numpy.maximum(1, counts)).tolist()
    return dict(zip(MEASURES, means, strict=True))
