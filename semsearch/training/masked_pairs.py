"""Pairs of spans for BERT's pre-training, their masking, and both losses.

A document is cut into runs of sentences that fit, and each run is split at a random sentence end
into two spans (Devlin et al. 2019, section 3.1 and appendix A.2). Half of the pairs then
exchange their second spans, so that each of these follows a span of another document. True and
false second spans thus differ in nothing else, and spans of similar length are exchanged: a model
cannot distinguish them by their length or their place in the document.

Imported only when training begins, for it imports torch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count
from operator import itemgetter
from typing import Any, NamedTuple

import numpy
import torch
from numpy.typing import NDArray
from torch.nn.functional import cross_entropy, pad
from torch.utils.data import DataLoader, Dataset
from transformers import (
    BertForPreTraining,
    BertTokenizerFast,
    DataCollatorForLanguageModeling,
    Trainer,
)

from semsearch.errors import TrainingError
from semsearch.training.batches import batches_by_length
from semsearch.training.stages import is_main
from semsearch.training.trainer import broadcast

Places = NDArray[numpy.int64]

#: Fraction of runs that are shorter than they could be, as in BERT's published code.
SHORT_RUNS = 0.1
#: [CLS], and [SEP] after each span.
SPECIAL_TOKENS = 3
#: Batches are padded to a multiple of the first; masked tokens are predicted in multiples of the
#: second. On a CPU, each new matrix shape costs time and memory.
LENGTH_MULTIPLE, MASKED_MULTIPLE = 8, 64
#: What is measured on held-out documents.
MASKED_LOSS, NEXT_LOSS = "masked words, loss", "next sentence, loss"
MEASURES = (MASKED_LOSS, "masked words found, %", NEXT_LOSS, "next sentence found, %")


class Tokens(NamedTuple):
    """The word pieces of a corpus as one array.

    ``sentences`` has the start of each sentence and, last, the end: sentence i is
    ``ids[sentences[i]:sentences[i + 1]]``; ``documents`` divides ``sentences`` in the same way.
    """

    ids: NDArray[numpy.int32]
    sentences: Places
    documents: Places


class Pairs(NamedTuple):
    """Pairs of spans as token ranges [start, end), shape (n, 2), and whether the second is next."""

    first: Places
    second: Places
    is_next: NDArray[numpy.bool_]

    def lengths(self) -> Places:
        """The number of tokens of each pair, without special tokens, shape (n,)."""
        lengths: Places = (self.first[:, 1] - self.first[:, 0]) + (
            self.second[:, 1] - self.second[:, 0]
        )
        return lengths


def tokens_of(documents: Iterable[Sequence[Sequence[int]]]) -> Tokens:
    """The tokens of documents, given as sentences of word pieces; empty sentences are skipped."""
    ids: list[NDArray[numpy.int32]] = []
    sentence_lengths, document_lengths = [0], [0]
    for document in documents:
        kept = [sentence for sentence in document if len(sentence)]
        ids += [numpy.array(sentence, numpy.int32) for sentence in kept]
        sentence_lengths += [len(sentence) for sentence in kept]
        document_lengths.append(len(kept))
    return Tokens(
        numpy.concatenate([numpy.zeros(0, numpy.int32), *ids]),
        numpy.cumsum(sentence_lengths, dtype=numpy.int64),
        numpy.cumsum(document_lengths, dtype=numpy.int64),
    )


def next_sentence_pairs(tokens: Tokens, room: int, generator: numpy.random.Generator) -> Pairs:
    """Pairs from all documents of two or more sentences, about half of them true.

    Pairs whose spans would be exchanged within one document are left out.

    Args:
        tokens: the corpus; at least four of its documents have two sentences.
        room: maximum tokens per pair, without special tokens; the longer span is cut.
        generator: draws where runs end, where they are split, and which spans are exchanged.
    """
    runs = numpy.array(list(_runs(tokens, room, generator)), numpy.int64).reshape(-1, 4)
    owners, starts, cuts, ends = runs.T
    boundaries = tokens.sentences
    first = numpy.stack([boundaries[starts], boundaries[cuts]], axis=1)
    second = numpy.stack([boundaries[cuts], boundaries[ends]], axis=1)
    exchanged = generator.permutation(len(runs))[: len(runs) // 2]
    lengths = second[exchanged, 1] - second[exchanged, 0]
    exchanged = exchanged[numpy.argsort(lengths, kind="stable")]  # ties stay in random order
    givers = numpy.roll(exchanged, -1)
    second[exchanged] = second[givers]
    is_next = numpy.ones(len(runs), bool)
    is_next[exchanged] = False
    first, second = _fitted(first, second, room)
    foreign = numpy.ones(len(runs), bool)
    foreign[exchanged] = owners[givers] != owners[exchanged]
    return Pairs(first[foreign], second[foreign], is_next[foreign])


def _runs(
    tokens: Tokens, room: int, generator: numpy.random.Generator
) -> Iterable[tuple[int, int, int, int]]:
    """Runs as (document, start, cut, end) in sentences, at least one on each side of the cut."""
    boundaries = tokens.sentences
    for document in range(len(tokens.documents) - 1):
        start, last = tokens.documents[document : document + 2].tolist()
        while last - start >= 2:
            is_short = generator.random() < SHORT_RUNS
            wanted = int(generator.integers(2, room + 1)) if is_short else room
            fits = int(numpy.searchsorted(boundaries, boundaries[start] + wanted, "right")) - 1
            end = min(max(fits, start + 2), last)
            yield document, start, int(generator.integers(start + 1, end)), end
            start = end


def _fitted(first: Places, second: Places, room: int) -> tuple[Places, Places]:
    """Both spans cut to fit, the longer one first; tokens are cut only at their outer ends."""
    one, other = first[:, 1] - first[:, 0], second[:, 1] - second[:, 0]
    kept = numpy.minimum(one, numpy.maximum(room - other, room // 2))
    first[:, 0] = first[:, 1] - kept
    second[:, 1] = second[:, 0] + numpy.minimum(other, room - kept)
    return first, second


class Batch(NamedTuple):
    """Pairs that are seen together."""

    number: int  #: seeds the masking
    pairs: Pairs  #: of the whole epoch
    rows: list[int]


class MaskedPairs(Dataset[dict[str, torch.Tensor]]):
    """Batches of masked pairs of spans, redrawn in each epoch.

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

    def epochs(self, numbers: Iterable[int]) -> Iterator[Batch]:
        """The batches of these epochs, each with all of its pairs."""
        number = 0
        for epoch in numbers:
            random = numpy.random.default_rng([self._seed, epoch])
            pairs = next_sentence_pairs(self.tokens, self._room, random)
            for rows in batches_by_length(pairs.lengths(), self._batch_size, random):
                yield Batch(number, pairs, rows)
                number += 1

    def evaluated(self) -> Iterator[dict[str, torch.Tensor]]:
        """Evaluation batches, with the same pairs and masks in every call."""
        return (self[batch] for batch in self.epochs([0]))

    def __len__(self) -> int:
        return len(self.tokens.documents)

    def __getitem__(self, batch: Batch) -> dict[str, torch.Tensor]:
        """A batch; 15 % of the tokens are masked (Devlin et al. 2019, section 3.1)."""
        state = numpy.random.SeedSequence([self._seed, batch.number])
        seed = int(state.generate_state(1, numpy.uint64)[0] >> 1)
        self._collator.generator = torch.Generator().manual_seed(seed)
        found: dict[str, torch.Tensor] = self._collator(
            [self._input(batch.pairs, row) for row in batch.rows]
        )
        return found

    def _input(self, pairs: Pairs, row: int) -> dict[str, Any]:
        """The unmasked input: [CLS] first span [SEP] second span [SEP]."""
        known = self._tokenizer
        first, second = (
            self.tokens.ids[slice(*spans[row])].tolist() for spans in (pairs.first, pairs.second)
        )
        ids = [known.cls_token_id, *first, known.sep_token_id, *second, known.sep_token_id]
        return {
            "input_ids": ids,
            "token_type_ids": [0] * (len(first) + 2) + [1] * (len(second) + 1),
            "special_tokens_mask": [1, *[0] * len(first), 1, *[0] * len(second), 1],
            "next_sentence_label": int(not pairs.is_next[row]),
        }


class _EndlessBatches:
    """A batch sampler without a length, so that the trainer counts all steps as one epoch."""

    def __init__(self, data: MaskedPairs) -> None:
        self._data = data

    def __iter__(self) -> Iterator[list[Batch]]:
        return ([batch] for batch in self._data.epochs(count()))


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


def held_out_losses(model: BertForPreTraining, data: MaskedPairs) -> dict[str, float]:
    """Both losses (mean cross-entropies in nats) and accuracies, with the model in evaluation mode.

    Returns:
        The values of `MEASURES` by name.
    """
    sums, counts = numpy.zeros(4), numpy.zeros(4)
    with torch.inference_mode():
        for batch in data.evaluated():
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


class MaskedTrainer(Trainer):  # type: ignore[misc]  # theirs is untyped
    """Trains a BERT on the batches of its data set.

    Args:
        score: returns the model's current score; None without a development set.
        options: of transformers' trainer.
    """

    control: Any

    def __init__(self, score: Callable[[], float] | None = None, **options: Any) -> None:
        super().__init__(**options)
        self._score = score

    def get_train_dataloader(self) -> Any:
        """A loader of the endless batches of `train_dataset`, a `MaskedPairs`."""
        loader = DataLoader(
            self.train_dataset,
            batch_sampler=_EndlessBatches(self.train_dataset),
            collate_fn=itemgetter(0),
            pin_memory=self.args.dataloader_pin_memory,
        )
        return self.accelerator.prepare(loader)

    def evaluate(self, *_: Any, **__: Any) -> dict[str, float]:
        """The score, under the name that the trainer expects."""
        is_training = self.model.training
        with self.accelerator.autocast():
            score = self._score() if self._score and is_main() else 0.0
        metrics = {"eval_score": broadcast(score)}
        self.model.train(is_training)
        self.log(metrics)
        handle = self.callback_handler.on_evaluate
        self.control = handle(self.args, self.state, self.control, metrics)
        return metrics
