"""A bi-encoder from an unlabelled corpus: neighbouring texts are positive pairs.

A title and the sentence after it, and two neighbouring sentences, are positive pairs; the rest of a
large batch are the negatives (Logeswaran & Lee 2018, quick thoughts; the loss of Henderson et al.
2017). This turns a plain BERT, pre-trained or not, into an encoder to fine-tune on labels.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

import numpy

from semsearch.encoders.model_folder import find_model, model_modules
from semsearch.records import Document
from semsearch.training.data import load_examples
from semsearch.training.encoder import announcement, encoder_outcome, encoder_trainee
from semsearch.training.examples import (
    Examples,
    Kind,
    Notify,
    check_trainable,
    distinct_documents,
    sentences,
    split,
    text_key,
    without_overlap,
)
from semsearch.training.run import Job, Task
from semsearch.training.stages import Loss, Recipe, Settings, Stage

#: Maximum number of training pairs, and of held-out pairs; from more, a random sample is drawn.
MAX_PAIRS, MAX_SCORED = 500_000, 1_000
#: Learning rates of a plain BERT, by maximum hidden size; wider ones and sentence encoders, which
#: are trained already, use the default.
NEW_RATES = ((256, 1e-3), (512, 5e-4))


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
        folder = find_model(str(base)).path
        if model_modules(folder):
            return self.recipe
        config = json.loads((folder / "config.json").read_text("utf-8"))
        width = config.get("hidden_size", math.inf)  # named differently in DistilBERT, among others
        rate = next((rate for most, rate in NEW_RATES if width <= most), self.recipe.learning_rate)
        return replace(self.recipe, learning_rate=rate)

    def prepare(self, settings: Settings, notify: Notify) -> Job:
        """One stage; a twentieth of the documents is held out to choose the best checkpoint."""
        seed = settings.recipe.seed
        chains = [
            chain
            for document in distinct_documents(self.documents)
            if len(chain := _chain(document)) > 1
        ]
        what = "different documents with a title or two sentences"
        trained, held = split(len(chains), seed, what)
        training = _pairs(self.data_name, [chains[place] for place in trained], MAX_PAIRS, seed)
        name = f"{self.data_name} (held out)"
        development = _pairs(name, [chains[place] for place in held], MAX_SCORED, seed)
        tests = [
            load_examples(spec, (Kind.SCORED, Kind.POSITIVE), split="test", notify=notify)
            for spec in settings.tests
        ]
        held_sets = [development, *tests]
        training = without_overlap(training, held_sets, settings.allow_overlap, notify)
        check_trainable(training)
        stage = Stage(training, development, settings.recipe, Loss.RANKING.value)
        notify(announcement(stage, Loss.RANKING))
        return Job([stage], encoder_trainee, partial(encoder_outcome, tests, stage))


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
