"""Fit an encoder to a corpus without labels, and keep the result only where it helps.

The corpus asks itself: titles, or sentences taken out of their context, are questions; in-batch
and mined hard negatives are the wrong answers (multiple negatives ranking, Henderson et al. 2017).
Questions of documents that were held out tell whether it helped.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from numpy.random import Generator, default_rng

from semsearch.errors import ArgumentError
from semsearch.records import Document
from semsearch.runs import Workspace
from semsearch.training.sentences import distinct_documents, held_out
from semsearch.unsupervised.card import model_card
from semsearch.unsupervised.checkpoints import Checkpoints
from semsearch.unsupervised.hard_negatives import hard_negatives
from semsearch.unsupervised.known_item import Gain, gain, reciprocal_ranks
from semsearch.unsupervised.loop import Length, Optimization, fit
from semsearch.unsupervised.questions import Question, questions
from semsearch.unsupervised.sentence_model import embedded, trainable_encoder, write_model
from semsearch.unsupervised.sts import sts_spearman

if TYPE_CHECKING:
    import torch

HELD_OUT_PART = 0.1
#: How many documents are trained on; beyond, some are drawn.
MOST_TRAINED = 50_000
#: How many passages of trained documents stand beside the held-out ones when it is measured.
MOST_OTHERS = 5_000

#: What the card says.
STORY = (
    "An encoder fitted to a corpus without labels: titles, or sentences taken out of their "
    "context, find their documents among in-batch and mined hard negatives. What is measured are "
    "such questions of documents that were held out; other tasks can have lost by it."
)


@dataclass(frozen=True)
class AdaptationSettings:
    """What to adapt, and how.

    Args:
        encoder: by its spec; a Sentence-Transformers model.
        length: of the training; None is once through the corpus.
        batch: questions in a step; each has the others' passages as negatives.
        learning_rate: at its highest.
        seed: of all that is drawn.
    """

    encoder: str
    length: Length | None = None
    batch: int = 32
    learning_rate: float = 2e-5
    seed: int = 0

    def __post_init__(self) -> None:
        if self.batch < 2:
            raise ArgumentError(f"a batch must have 2 questions or more, not {self.batch}")
        if self.seed < 0:
            raise ArgumentError(f"the seed must not be negative, and it is {self.seed}")


class Adaptation(NamedTuple):
    """What came of it."""

    gain: Gain
    sts: tuple[float, float] | None  #: Spearman × 100 on STS Benchmark, before and after, if here
    is_kept: bool


class _Example(NamedTuple):
    question: Question
    negative: str


def adapt(
    documents: Iterable[Document],
    workspace: Workspace,
    settings: AdaptationSettings,
    *,
    keep_anyway: bool = False,
    notify: Callable[[str], None] = lambda message: None,
    on_progress: Callable[[int, float], None] = lambda steps, fraction: None,
) -> Adaptation:
    """Adapt an encoder to the text of documents, and write it if that helped.

    Args:
        documents: the corpus; a tenth of its documents is held out.
        workspace: where the model is made, and where it goes.
        settings: what to adapt, and how.
        keep_anyway: write it even if it did not help.
        notify: is called with a line of news now and then.
        on_progress: is called after each step with how many are done and which part that is.

    Raises:
        TrainingError: there is too little to learn from, the loss is not finite, or files cannot
            be written or read.
        EncoderError: the encoder cannot be used.
        ArgumentError: what is to be resumed began with other settings or another corpus.
        TrainingStoppedError: after Ctrl-C, when a checkpoint has been written.
    """
    encoder = trainable_encoder(settings.encoder)
    found = questions(distinct_documents(documents), settings.seed)
    parts = held_out(
        len(found), settings.seed, "with a title of its own or two sentences", HELD_OUT_PART
    )
    drawn = default_rng(settings.seed).permutation(parts.trained)[:MOST_TRAINED]
    trained = [found[place] for place in drawn]
    asked = [found[place] for place in parts.held_out]
    titles = sum(question.is_title for question in trained)
    notify(
        f"{len(trained):,} questions to train on ({titles:,} titles, {len(trained) - titles:,} "
        f"sentences), {len(asked):,} held out"
    )
    others = trained[:MOST_OTHERS]
    before = reciprocal_ranks(encoder, asked, others)
    sts_before = sts_spearman(encoder)
    notify(f"before: MRR {before.mean():.3f} among {len(asked) + len(others):,} passages")
    examples = [
        _Example(question, negative)
        for question, negative in zip(trained, hard_negatives(encoder, trained), strict=True)
    ]
    length = settings.length or Length(math.ceil(len(examples) / settings.batch))
    facts = {
        "encoder": settings.encoder,
        **{name: value for name, value in asdict(length).items() if value},
        "batch": settings.batch,
        "learning rate": settings.learning_rate,
        "seed": settings.seed,
    }
    plan = {**facts, "fingerprint": encoder.fingerprint, "corpus": _digest(found)}
    with workspace.opened(plan):
        position = fit(
            encoder.model,
            lambda epoch: _batches(examples, settings, epoch),
            _loss_of(encoder.model),
            Optimization(settings.learning_rate, length, seed=settings.seed),
            Checkpoints(workspace.folder),
            resume=workspace.resumes,
            on_step=lambda position, fraction, loss: on_progress(position.step, fraction),
        )
        result = gain(before, reciprocal_ranks(encoder, asked, others), settings.seed)
        sts_after = sts_spearman(encoder)
        sts = None if sts_before is None or sts_after is None else (sts_before, sts_after)
        adaptation = Adaptation(result, sts, result.is_certain or keep_anyway)
        if not adaptation.is_kept:
            workspace.discard()
            return adaptation
        facts |= {
            "questions trained on": len(trained),
            "of these titles": titles,
            "steps": position.step,
            "seconds": round(position.seconds),
            "held out": result,
            "STS Benchmark before, after": "{:.2f}, {:.2f}".format(*sts) if sts else "no data",
        }
        draft = workspace.draft()
        write_model(encoder.model, draft, model_card(workspace.output.name, STORY, facts))
        workspace.publish(draft)
    return adaptation


def _batches(
    examples: list[_Example], settings: AdaptationSettings, epoch: int
) -> list[list[_Example]]:
    order = default_rng([settings.seed, epoch]).permutation(len(examples))
    starts = range(0, len(order), settings.batch)
    batches = [[examples[row] for row in order[start : start + settings.batch]] for start in starts]
    return [batch for batch in batches if len(batch) > 1]


def _loss_of(model: Any) -> Callable[[list[_Example], Generator], torch.Tensor]:
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

    ranking = MultipleNegativesRankingLoss(model)

    def loss_of(batch: list[_Example], generator: Generator) -> torch.Tensor:
        import torch

        query = model.prompts.get("query") or ""
        document = model.prompts.get("document") or ""
        columns = [
            embedded(model, [example.question.query for example in batch], query),
            embedded(model, [example.question.passage for example in batch], document),
            embedded(model, [example.negative for example in batch], document),
        ]
        loss: torch.Tensor = ranking.compute_loss_from_embeddings(columns, torch.empty(0))
        return loss

    return loss_of


def _digest(found: list[Question]) -> str:
    digest = hashlib.sha256()
    for question in found:
        digest.update(f"{question.query}\n{question.passage}\n".encode())
    return digest.hexdigest()[:16]
