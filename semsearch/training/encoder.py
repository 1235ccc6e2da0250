"""Training of bi-encoders: on labelled pairs and triplets, or on a corpus without labels.

The former follows Reimers & Gurevych 2019. In a corpus, a title and the sentence after it, and two
neighbouring sentences, are positive pairs; the rest of a large batch are the negatives (Logeswaran
& Lee 2018, quick thoughts), which turns a plain BERT into an encoder to fine-tune on labels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy

from semsearch.encoders.model_folder import ModelFolder, find_model, model_modules
from semsearch.encoders.torch_models import TorchEncoder
from semsearch.records import Document
from semsearch.training.data import load_stages, load_tests
from semsearch.training.examples import (
    Examples,
    Kind,
    Notify,
    check_yes_no,
    distinct_documents,
    sentences,
    split,
    text_key,
    without_overlap,
)
from semsearch.training.measures import (
    ACCURACY,
    MEASURES,
    Encode,
    Measured,
    encoder_outcomes,
    gain,
    gold_of,
)
from semsearch.training.run import Job, Task, Trained
from semsearch.training.stages import Loss, Recipe, Settings, Stage

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from semsearch.training.trainer import Trainee

#: Kinds of training examples, the preferred ones first, and of those to score an encoder on.
TRAINABLE = (Kind.SCORED, Kind.LABELLED, Kind.TRIPLETS, Kind.POSITIVE)
SCORABLE = (Kind.SCORED, Kind.TRIPLETS, Kind.POSITIVE)

#: Maximum number of training pairs, and of held-out pairs; from more, a random sample is drawn.
MAX_PAIRS, MAX_SCORED = 500_000, 1_000
#: Learning rates of a plain BERT, by maximum hidden size; wider ones and sentence encoders, which
#: are trained already, use the default.
NEW_RATES = ((256, 1e-3), (512, 5e-4))


@dataclass(frozen=True)
class Siamese(Task):
    """Train a bi-encoder.

    Args:
        losses: one per set of `Settings.data`; None takes the default for its examples.
    """

    losses: Sequence[Loss | None]

    name = "siamese"

    def prepare(self, settings: Settings, notify: Notify) -> Job:
        """The sets that suit the losses; the finished model is scored as an encoder."""
        kinds = [loss.kinds if loss else TRAINABLE for loss in self.losses]
        found, tests = load_stages(settings, kinds, SCORABLE, notify)
        stages = []
        for stage, chosen in zip(found, self.losses, strict=False):
            loss = chosen or default_loss(stage.training)
            stages.append(stage._replace(loss=loss.value))
            if loss is Loss.CONTRASTIVE:
                check_yes_no(stage.training)
            notify(announcement(stages[-1], ACCURACY if loss is Loss.SOFTMAX else None))
        return Job(stages, encoder_trainee, partial(scored_encoder, tests, stages[-1]))


@dataclass(frozen=True)
class Contrast(Task):
    """Train a bi-encoder on an unlabelled corpus.

    Args:
        documents: the corpus.
        data_name: name of the corpus in messages.
    """

    documents: Iterable[Document]
    data_name: str

    name = "contrast"
    recipe = Recipe(epochs=2, batch_size=256)  # in-batch negatives need large batches

    def recipe_for(self, base: str | None) -> Recipe:
        """A high learning rate for a small BERT that is not yet a sentence encoder."""
        from transformers import AutoConfig

        folder = find_model(str(base)).path
        if model_modules(folder):
            return self.recipe
        width = AutoConfig.from_pretrained(folder, local_files_only=True).hidden_size
        rate = next((rate for most, rate in NEW_RATES if width <= most), self.recipe.learning_rate)
        return replace(self.recipe, learning_rate=rate)

    def prepare(self, settings: Settings, notify: Notify) -> Job:
        """One stage; a twentieth of the documents is held out to choose the best checkpoint."""
        seed = settings.recipe.seed
        chains = [one for one in map(_chain, distinct_documents(self.documents)) if len(one) > 1]
        what = "different documents with a title or two sentences"
        trained, held = split(chains, seed, what)
        training = _pairs(self.data_name, trained, MAX_PAIRS, seed)
        development = _pairs(f"{self.data_name} (held out)", held, MAX_SCORED, seed)
        tests = load_tests(settings, notify)
        training = without_overlap(training, [development, *tests], notify)
        stage = Stage(training, development, settings.recipe, Loss.RANKING.value)
        notify(announcement(stage))
        return Job([stage], encoder_trainee, partial(scored_encoder, tests, stage))


def _chain(document: Document) -> list[str]:
    """The title, if there is one, and the sentences of a document."""
    title = " ".join((document.title or "").split())
    return [*([title] if title else []), *sentences(document.text)]


def _pairs(name: str, chains: Iterable[Sequence[str]], most: int, seed: int) -> Examples:
    pairs = [
        pair
        for chain in chains
        for pair in pairwise(chain)
        if text_key(pair[0]) != text_key(pair[1])
    ]
    if len(pairs) > most:
        drawn = numpy.random.default_rng(seed).permutation(len(pairs))[:most]
        pairs = [pairs[row] for row in sorted(drawn.tolist())]
    texts = [left for left, _ in pairs], [right for _, right in pairs]
    return Examples(name, Kind.POSITIVE, texts, [])


def default_loss(training: Examples) -> Loss:
    """The loss that suits a set; one whose labels are not yes and no trains a classifier."""
    if training.kind is Kind.LABELLED:
        return Loss.CONTRASTIVE if training.is_yes_no else Loss.SOFTMAX
    return Loss.COSINE if training.kind is Kind.SCORED else Loss.RANKING


def announcement(stage: Stage, measure: str | None = None) -> str:
    """What a stage trains on, and what it is scored on; by default with an encoder's measure."""
    training, development, _, loss = stage
    scored = "nothing"
    if development is not None:
        scored = f"{development.name} ({measure or MEASURES[development.kind].name})"
    size = f"{len(training):,} {training.kind.value}"
    return f"{training.name}: {size}, {loss} loss; scored on {scored}"


def encoder_trainee(folder: Path, stage: Stage, *, attention_dropout: bool = True) -> Trainee:
    """The bi-encoder in a folder with the loss of a stage.

    Without dropout in attention, this is one fused kernel: less than half the time for long
    passages.
    """
    from semsearch.training.trainer import classifier_accuracy, embedding_loss, text_trainee

    training, development, recipe, name = stage
    chosen = Loss(name)
    model = load_plain(folder)
    model.max_seq_length = recipe.max_tokens or model.max_seq_length
    if not attention_dropout:
        disable_dropout(model, "SelfAttention")
    loss = embedding_loss(model, chosen, training, recipe.batch_size)
    score: Callable[[], float] | None = None
    if development is not None:
        score = partial(score_encoder, plain_encode(model), development)
        if chosen is Loss.SOFTMAX and development.kind is Kind.LABELLED:
            score = partial(classifier_accuracy, model, loss, development)
    return text_trainee(
        model, loss, training, recipe, score, distinct=chosen is Loss.RANKING, only_used_words=True
    )


def load_plain(folder: Path) -> SentenceTransformer:
    """The model in a folder, in fp32."""
    return TorchEncoder(ModelFolder(str(folder), folder)).model


def plain_encode(model: SentenceTransformer, prompt: str = "") -> Encode:
    """A function that returns the unit vectors of texts, which a prompt precedes."""
    return partial(model.encode, prompt=prompt, normalize_embeddings=True, show_progress_bar=False)


def score_encoder(encode: Encode, examples: Examples) -> float:
    """The score of an encoder on a set of examples."""
    outcomes = encoder_outcomes(encode, examples)
    return float(numpy.nan_to_num(MEASURES[examples.kind].score(outcomes, gold_of(examples))))


def scored_encoder(tests: Sequence[Examples], last: Stage, folder: Path, base: Path) -> Trained:
    """The scores of the trained encoder on tests, else the development set, and of its base."""
    if not tests and last.development and last.loss != Loss.SOFTMAX.value:
        tests = [last.development]
    encode, before = (plain_encode(load_plain(one)) for one in (folder, base))
    return Trained(folder, [compare_encoders(encode, before, test) for test in tests])


def compare_encoders(encode: Encode, encode_before: Encode, test: Examples) -> Measured:
    """The score of an encoder on a set, and what it gained over another one."""
    before, after = (encoder_outcomes(one, test) for one in (encode_before, encode))
    return gain(test.name, MEASURES[test.kind], before, after, gold_of(test))


def disable_dropout(model: SentenceTransformer, owners: str = "") -> None:
    """Turn off dropout, of all modules or of those whose class has a name with this ending."""
    for owner in model.modules():
        for module in owner.children():
            if type(module).__name__ == "Dropout" and type(owner).__name__.endswith(owners):
                module.p = 0.0
