"""BERT's pre-training: masked words and next sentences, the sum of both losses."""

from __future__ import annotations

import hashlib
import math
import zlib
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.random import Generator, default_rng

from semsearch.encoders.torch_models import quiet_transformers
from semsearch.errors import ArgumentError
from semsearch.records import Document
from semsearch.runs import Workspace
from semsearch.training.sentences import distinct_documents, held_out, sentences
from semsearch.unsupervised.bert import (
    MOST_TOKENS,
    BertSize,
    LoadedBert,
    load_bert,
    new_bert,
    predict_frequencies,
)
from semsearch.unsupervised.card import model_card
from semsearch.unsupervised.checkpoints import Checkpoints, Position
from semsearch.unsupervised.loop import Length, Optimization, best_device, fit
from semsearch.unsupervised.next_sentence import Pairs, Tokens
from semsearch.unsupervised.pretraining_batches import PairBatches
from semsearch.unsupervised.pretraining_losses import (
    HeldOutLosses,
    measured_losses,
    pretraining_loss,
)
from semsearch.unsupervised.wordpieces import learn_word_pieces, save_tokenizer

if TYPE_CHECKING:
    import torch
    from transformers import BertForPreTraining, BertTokenizerFast

#: How often the held-out losses are told on the way.
TELLINGS = 10
#: The learning rates for a model from scratch; wider ones want less.
LEARNING_RATES = {
    BertSize.TINY: 1e-3,
    BertSize.MINI: 1e-3,
    BertSize.SMALL: 5e-4,
    BertSize.BASE: 1e-4,  # the paper's
}
#: For one that has learnt already.
GENTLE_LEARNING_RATE = 5e-5

#: What the cards say.
PRETRAINED_STORY = (
    "A BERT, pre-trained by masked language modelling and next-sentence prediction (Devlin et "
    "al. 2019). It is no sentence encoder yet: its vectors are pooled word vectors, to be "
    "fine-tuned."
)
UNTRAINED_STORY = (
    "A BERT of random weights with a vocabulary of its own: the beginning of `semsearch train "
    "contrast`."
)


@dataclass(frozen=True)
class PretrainingSettings:
    """What to pre-train, and how.

    Args:
        length: of the training; of 0 steps, random weights are written.
        size: of a BERT from scratch.
        base: a BERT to go on with, by its folder or name; None begins from scratch.
        vocabulary: how many word pieces at most, from scratch.
        cased: keep capitals and accents, from scratch.
        max_tokens: the most tokens of a pair, special ones included.
        batch: pairs in a step.
        learning_rate: at its highest; None takes one that suits the size.
        seed: of all that is drawn.

    Raises:
        ArgumentError: one of them cannot be.
    """

    length: Length
    size: BertSize = BertSize.SMALL
    base: str | None = None
    vocabulary: int = 30_522
    cased: bool = False
    max_tokens: int = 128
    batch: int = 64
    learning_rate: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if not 16 <= self.max_tokens <= MOST_TOKENS:
            raise ArgumentError(
                f"max_tokens must be from 16 to {MOST_TOKENS}, not {self.max_tokens}"
            )
        if self.batch < 2:
            raise ArgumentError(f"a batch must have 2 pairs or more, not {self.batch}")
        if self.seed < 0:
            raise ArgumentError(f"the seed must not be negative, and it is {self.seed}")

    def optimization(self) -> Optimization:
        """How to descend."""
        suiting = GENTLE_LEARNING_RATE if self.base else LEARNING_RATES[self.size]
        rate = self.learning_rate if self.learning_rate is not None else suiting
        return Optimization(rate, self.length, seed=self.seed)

    def facts(self) -> dict[str, Any]:
        """As JSON values, for checkpoints and people."""
        start = (
            {"going on from": self.base}
            if self.base
            else {
                "size": self.size.name.lower(),
                "vocabulary": self.vocabulary,
                "cased": self.cased,
            }
        )
        return {
            **start,
            **{name: value for name, value in asdict(self.length).items() if value is not None},
            "max tokens": self.max_tokens,
            "batch": self.batch,
            "learning rate": self.optimization().learning_rate,
            "seed": self.seed,
        }


def pretrain(
    documents: Iterable[Document],
    workspace: Workspace,
    settings: PretrainingSettings,
    *,
    notify: Callable[[str], None] = lambda message: None,
    on_progress: Callable[[int, float], None] = lambda steps, fraction: None,
) -> HeldOutLosses | None:
    """Pre-train a BERT on the text of documents, and write it as a plain BERT.

    Args:
        documents: the corpus; 5 % of its documents are held out.
        workspace: where the model is made, and where it goes.
        settings: what to train, and how.
        notify: is called with a line of news now and then.
        on_progress: is called after each step with how many are done and which part that is.

    Returns:
        The held-out losses of the finished model; None of one with random weights.

    Raises:
        TrainingError: there is too little to learn from, the loss is not finite, or files cannot
            be written or read.
        EncoderError: the model to go on with cannot be used.
        ArgumentError: what is to be resumed began with other settings or another corpus.
        TrainingStoppedError: after Ctrl-C, when a checkpoint has been written.
    """
    distinct = distinct_documents(documents)
    split = [sentences(document.text) for document in distinct]
    titles = [document.title for document in distinct if document.title]
    if settings.length.steps == 0:
        model, tokenizer, _ = _start([titles, *split], settings, notify)
        facts = {**settings.facts(), "documents": len(distinct)}
        with workspace.opened(facts):
            draft = workspace.draft()
            _write(draft, workspace.output.name, UNTRAINED_STORY, model, tokenizer, facts)
            workspace.publish(draft)
        return None
    texts = [found for found in split if len(found) > 1]
    parts = held_out(len(texts), settings.seed, "of two sentences or more")
    trained = [texts[place] for place in parts.trained]
    measured = [texts[place] for place in parts.held_out]
    notify(
        f"{len(trained):,} documents of two sentences or more to train on, "
        f"{len(measured):,} held out"
    )
    model, tokenizer, has_new_heads = _start([titles, *split], settings, notify)
    training, measuring = (
        PairBatches(some, tokenizer, settings.max_tokens, settings.batch)
        for some in (trained, measured)
    )
    if has_new_heads:
        predict_frequencies(model, training.tokens.ids)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    notify(
        f"{len(tokenizer):,} word pieces, {len(training.tokens.ids):,} tokens, "
        f"{parameters:,} parameters"
    )
    device = best_device()
    model.to(device)
    course: dict[str, HeldOutLosses] = {}
    due = 0.0

    def batches(epoch: int) -> list[Pairs]:
        return training.epoch(_generator(settings, "pairs", epoch))

    def loss_of(pairs: Pairs, generator: Generator) -> torch.Tensor:
        return pretraining_loss(model, training.batch(pairs, generator, device))

    def held_out_losses() -> HeldOutLosses:
        """Over the same pairs and masks each time."""
        pairs = measuring.epoch(_generator(settings, "held-out pairs"))
        generator = _generator(settings, "held-out masks")
        return measured_losses(model, (measuring.batch(some, generator, device) for some in pairs))

    def on_step(position: Position, fraction: float, loss: float) -> None:
        nonlocal due
        on_progress(position.step, fraction)
        if due <= fraction < 1:
            due = (math.floor(fraction * TELLINGS) + 1) / TELLINGS
            losses = course[f"held out after step {position.step:,}"] = held_out_losses()
            notify(f"step {position.step:,}: loss {loss:.3f}; held out: {losses}")

    digest = _digest(tokenizer, training.tokens, measuring.tokens)
    with workspace.opened({**settings.facts(), "corpus": digest}):
        position = fit(
            model,
            batches,
            loss_of,
            settings.optimization(),
            Checkpoints(workspace.folder),
            resume=workspace.resumes,
            on_step=on_step,
        )
        losses = held_out_losses()
        facts = {
            **settings.facts(),
            "documents trained on": len(trained),
            "documents held out": len(measured),
            "tokens trained on": len(training.tokens.ids),
            "steps": position.step,
            "seconds": round(position.seconds),
            **course,
            "held out at the end": losses,
        }
        draft = workspace.draft()
        _write(draft, workspace.output.name, PRETRAINED_STORY, model, tokenizer, facts)
        workspace.publish(draft)
    return losses


def _start(
    texts: list[list[str]], settings: PretrainingSettings, notify: Callable[[str], None]
) -> LoadedBert:
    """The model before its first step."""
    import torch

    torch.manual_seed(settings.seed)
    if settings.base is None:
        tokenizer = learn_word_pieces(
            lambda: chain.from_iterable(texts),
            settings.vocabulary,
            settings.max_tokens,
            cased=settings.cased,
        )
        return LoadedBert(new_bert(settings.size, tokenizer), tokenizer, new_heads=True)
    found = load_bert(settings.base)
    if found.new_heads:
        notify(f"'{settings.base}' comes without the heads of pre-training; they start over")
    most = found.model.config.max_position_embeddings
    if settings.max_tokens > most:
        raise ArgumentError(f"'{settings.base}' reads {most} tokens, not {settings.max_tokens}")
    return found


def _generator(settings: PretrainingSettings, purpose: str, epoch: int = 0) -> Generator:
    """Random numbers for one purpose alone."""
    return default_rng([settings.seed, zlib.crc32(purpose.encode()), epoch])


def _digest(tokenizer: BertTokenizerFast, *parts: Tokens) -> str:
    """What tells a corpus, as it is seen here, from another one."""
    digest = hashlib.sha256(str(sorted(tokenizer.get_vocab().items())).encode())
    for tokens in parts:
        for array in (tokens.ids, tokens.sentences, tokens.documents):
            digest.update(array.tobytes())
    return digest.hexdigest()[:16]


def _write(
    folder: Path,
    name: str,
    story: str,
    model: BertForPreTraining,
    tokenizer: BertTokenizerFast,
    facts: dict[str, Any],
) -> None:
    with quiet_transformers():
        model.save_pretrained(folder)
    save_tokenizer(tokenizer, folder)
    (folder / "README.md").write_text(model_card(name, story, facts), "utf-8")
