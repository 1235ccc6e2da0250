"""From pairs of spans to what BERT reads: ids, segments, masks; pairs of like length together."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy

from semsearch.errors import TrainingError
from semsearch.unsupervised.batches import batches_by_length
from semsearch.unsupervised.masking import mask_tokens
from semsearch.unsupervised.next_sentence import Pairs, Tokens, next_sentence_pairs, tokens_of

if TYPE_CHECKING:
    import torch
    from transformers import BertTokenizerFast

#: [CLS], and [SEP] behind each span.
SPECIAL_TOKENS = 3
#: Batches are padded to a multiple of it: for few different shapes.
LENGTH_MULTIPLE = 8


class Batch(NamedTuple):
    """Tensors of n pairs: features of shape (n, length); what is asked, and the answers."""

    features: dict[str, torch.Tensor]
    places: torch.Tensor  #: of the asked tokens, counted through the flattened ids
    answers: torch.Tensor
    not_next: torch.Tensor  #: 0 or 1, shape (n,)


class PairBatches:
    """The batches of some documents.

    Args:
        texts: documents as sentences.
        tokenizer: cuts them into word pieces.
        max_tokens: the most tokens of a pair, special ones included.
        size: about how many pairs a batch has.

    Raises:
        TrainingError: they do not hold words enough.
    """

    def __init__(
        self, texts: list[list[str]], tokenizer: BertTokenizerFast, max_tokens: int, size: int
    ) -> None:
        backend = tokenizer.backend_tokenizer
        backend.no_truncation()
        self.tokens: Tokens = tokens_of(
            [encoding.ids for encoding in backend.encode_batch_fast(text, add_special_tokens=False)]
            for text in texts
        )
        if numpy.count_nonzero(numpy.diff(self.tokens.documents) > 1) < 4:  # two are exchanged
            raise TrainingError("fewer than four documents have two sentences with words in them")
        self._tokenizer = tokenizer
        self._room = max_tokens - SPECIAL_TOKENS
        self._size = size
        special = numpy.array(sorted(tokenizer.all_special_ids))
        self._words = numpy.setdiff1d(numpy.arange(len(tokenizer)), special)

    def epoch(self, generator: numpy.random.Generator) -> list[Pairs]:
        """All documents once, as batches in random order."""
        pairs = next_sentence_pairs(self.tokens, self._room, generator)
        batches = batches_by_length(pairs.lengths(), self._size, generator)
        return [pairs.take(rows) for rows in batches]

    def batch(self, pairs: Pairs, generator: numpy.random.Generator, device: str) -> Batch:
        """[CLS] first span [SEP] second span [SEP], some of it masked."""
        import torch

        known = self._tokenizer
        longest = int(pairs.lengths().max()) + SPECIAL_TOKENS
        shape = (len(pairs.is_next), -(-longest // LENGTH_MULTIPLE) * LENGTH_MULTIPLE)
        ids = numpy.full(shape, known.pad_token_id, numpy.int64)
        types, mask = numpy.zeros_like(ids), numpy.zeros_like(ids)
        maskable = numpy.zeros(shape, bool)
        for row, (first, second) in enumerate(zip(pairs.first, pairs.second, strict=True)):
            middle = 1 + int(first[1] - first[0])
            end = middle + 1 + int(second[1] - second[0])
            ids[row, [0, middle, end]] = known.cls_token_id, known.sep_token_id, known.sep_token_id
            ids[row, 1:middle] = self.tokens.ids[slice(*first)]
            ids[row, middle + 1 : end] = self.tokens.ids[slice(*second)]
            types[row, middle + 1 : end + 1] = 1
            mask[row, : end + 1] = 1
            maskable[row, 1:middle] = maskable[row, middle + 1 : end] = True
        masked = mask_tokens(ids, maskable, known.mask_token_id, self._words, generator)
        features = {"input_ids": masked.ids, "token_type_ids": types, "attention_mask": mask}
        return Batch(
            {name: torch.from_numpy(array).to(device) for name, array in features.items()},
            torch.from_numpy(masked.places).to(device),
            torch.from_numpy(masked.answers).to(device),
            torch.from_numpy((~pairs.is_next).astype(numpy.int64)).to(device),
        )
