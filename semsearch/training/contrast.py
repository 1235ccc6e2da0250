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
from itertools import pairwise

import numpy

from semsearch.encoders.model_folder import find_model, model_modules
from semsearch.records import Document
from semsearch.training.checks import check_trainable, text_key, without_leaks
from semsearch.training.data import load_examples
from semsearch.training.examples import Examples, Kind, Notify
from semsearch.training.recipe import Recipe
from semsearch.training.sentences import distinct_documents, held_out, sentences
from semsearch.training.siamese import BiEncoderTask
from semsearch.training.stages import Settings, Stage

#: Maximum number of training pairs; from more, a random sample is drawn.
MAX_PAIRS = 500_000
#: Maximum number of held-out pairs that are scored.
MAX_SCORED = 1_000
#: Learning rates of a plain BERT, by maximum hidden size; wider ones and sentence encoders, which
#: are trained already, use the default.
NEW_RATES = ((256, 1e-3), (512, 5e-4))


@dataclass
class Contrast(BiEncoderTask):
    """Train a bi-encoder on an unlabelled corpus.

    Args:
        documents: the corpus.
        data_name: name of the corpus in messages.
    """

    documents: Iterable[Document]
    data_name: str

    name = "contrast"
    keeps_its_task = True
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

    def stages(self, settings: Settings, notify: Notify) -> tuple[list[Stage], list[Examples]]:
        """One stage; a twentieth of the documents is held out to choose the best checkpoint."""
        (recipe,) = settings.recipes
        found = [
            chain
            for document in distinct_documents(self.documents)
            if len(chain := _chain(document)) > 1
        ]
        parts = held_out(
            len(found), recipe.seed, "different documents with a title or two sentences"
        )
        training = self._pairs([found[place] for place in parts.trained], "", MAX_PAIRS, recipe)
        development = self._pairs(
            [found[place] for place in parts.held_out], " (held out)", MAX_SCORED, recipe
        )
        tests = [
            load_examples(spec, (Kind.SCORED, Kind.POSITIVE), split="test", notify=notify)
            for spec in settings.tests
        ]
        training = without_leaks(training, [development, *tests], settings.keep_leaks, notify)
        check_trainable(training)
        return [Stage(training, development, recipe)], tests

    def _pairs(
        self, chains: Sequence[Sequence[str]], part: str, most: int, recipe: Recipe
    ) -> Examples:
        pairs = [
            pair
            for chain in chains
            for pair in pairwise(chain)
            if text_key(pair[0]) != text_key(pair[1])
        ]
        if len(pairs) > most:
            drawn = numpy.random.default_rng(recipe.seed).permutation(len(pairs))[:most]
            pairs = [pairs[row] for row in sorted(drawn.tolist())]
        texts = [left for left, _ in pairs], [right for _, right in pairs]
        name = f"{self.data_name}{part}"
        places = [f"{name}, pair {number}" for number in range(1, len(pairs) + 1)]
        return Examples(name, Kind.POSITIVE, texts, places, [])


def _chain(document: Document) -> list[str]:
    """The title, if there is one, and the sentences of a document."""
    title = " ".join((document.title or "").split())
    return [*([title] if title else []), *sentences(document.text)]
