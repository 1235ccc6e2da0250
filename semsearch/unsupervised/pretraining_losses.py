"""The two losses of BERT's pre-training, and what they are on held-out documents."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

import numpy

from semsearch.unsupervised.loop import autocast
from semsearch.unsupervised.pretraining_batches import Batch

if TYPE_CHECKING:
    import torch
    from transformers import BertForPreTraining

#: Tokens are asked in multiples of it: on a CPU, each new shape of a product costs memory.
ASKED_MULTIPLE = 64


class HeldOutLosses(NamedTuple):
    """What a model does on documents that it was not trained on."""

    masked_loss: float  #: mean cross-entropy of the masked tokens, nats
    masked_accuracy: float
    next_loss: float  #: mean cross-entropy of next-sentence prediction, nats
    next_accuracy: float

    def __str__(self) -> str:
        return (
            f"masked words: loss {self.masked_loss:.3f}, {self.masked_accuracy:.1%} right; "
            f"next sentence: loss {self.next_loss:.3f}, {self.next_accuracy:.1%} right"
        )


def pretraining_loss(model: BertForPreTraining, batch: Batch) -> torch.Tensor:
    """The mean loss of the masked words plus the mean loss of next-sentence prediction."""
    from torch.nn.functional import cross_entropy

    words, following = _predictions(model, batch)
    return cross_entropy(words, batch.answers) + cross_entropy(following, batch.not_next)


def measured_losses(model: BertForPreTraining, batches: Iterable[Batch]) -> HeldOutLosses:
    """Both losses and accuracies over some batches; the model is in training again after it."""
    import torch
    from torch.nn.functional import cross_entropy

    sums = numpy.zeros(4)
    counts = numpy.zeros(4)
    model.eval()
    with torch.inference_mode():
        for batch in batches:
            words, following = _predictions(model, batch)
            sums += [
                float(cross_entropy(words, batch.answers, reduction="sum")),
                float((words.argmax(-1) == batch.answers).sum()),
                float(cross_entropy(following, batch.not_next, reduction="sum")),
                float((following.argmax(-1) == batch.not_next).sum()),
            ]
            counts += numpy.repeat([len(batch.answers), len(batch.not_next)], 2)
    model.train()
    return HeldOutLosses(*(sums / counts).tolist())


def _predictions(model: BertForPreTraining, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits over the vocabulary, for the asked tokens alone, and over next or not; fp32.

    `BertForPreTraining.forward` computes the former for all tokens, which costs a small model
    more than all its layers do.
    """
    asked = len(batch.places)
    places = batch.places.new_zeros(-(-asked // ASKED_MULTIPLE) * ASKED_MULTIPLE)
    places[:asked] = batch.places
    with autocast(model.device.type):
        hidden, pooled = model.bert(**batch.features, return_dict=False)
        words = model.cls.predictions(hidden.flatten(0, 1)[places])
        following = model.cls.seq_relationship(pooled)
    return words[:asked].float(), following.float()
