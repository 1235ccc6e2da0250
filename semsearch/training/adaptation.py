"""Fit an encoder to a corpus without labels, and keep the result only where it helps.

Titles, or sentences taken out of their context, are questions; in-batch and mined hard negatives
are the wrong answers (multiple negatives ranking, Henderson et al. 2017). Whether it helped is
measured by questions of documents that were held out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from numpy.random import default_rng

from semsearch.encoders.model_folder import ModelFolder, find_model
from semsearch.encoders.torch_models import TorchEncoder
from semsearch.records import Document
from semsearch.training.data import found_sts
from semsearch.training.examples import Examples, Kind, Notify
from semsearch.training.known_item import Gain, gain, hard_negatives, reciprocal_ranks
from semsearch.training.questions import Question, questions
from semsearch.training.recipe import Recipe
from semsearch.training.scoring import Measured
from semsearch.training.sentences import distinct_documents, held_out
from semsearch.training.siamese import BiEncoderTask
from semsearch.training.stages import Settings, Stage

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

HELD_OUT_PART = 0.1
#: How many documents are trained on; of more, some are drawn.
MOST_TRAINED = 50_000
#: How many passages of trained documents stand beside the held-out ones when it is measured.
MOST_OTHERS = 5_000


@dataclass
class Adaptation(BiEncoderTask):
    """Fit an encoder to a corpus.

    Args:
        documents: the corpus; a tenth of its documents is held out.
        data_name: what the corpus is called in messages.
        keep_anyway: write the model even if it did not help.
    """

    documents: Iterable[Document]
    data_name: str
    keep_anyway: bool = False
    #: What the training did to the held-out questions, once it is measured.
    gain: Gain = field(init=False)
    _asked: list[Question] = field(init=False)
    _others: list[Question] = field(init=False)

    name = "adapt"
    description = (
        "An encoder fitted to a corpus without labels by semsearch, from `{base}`: titles, or "
        "sentences taken out of their context, find their documents among in-batch and mined hard "
        "negatives. It was measured by such questions of documents that were held out; other tasks "
        "can have lost by it."
    )
    keeps_its_task = True
    attention_dropout = False
    recipe = Recipe(batch_size=32)

    def stages(self, settings: Settings, notify: Notify) -> tuple[list[Stage], list[Examples]]:
        """One stage, without a development set: the held-out questions are the test."""
        (recipe,) = settings.recipes
        found = questions(distinct_documents(self.documents), recipe.seed)
        parts = held_out(
            len(found), recipe.seed, "with a title of its own or two sentences", HELD_OUT_PART
        )
        drawn = default_rng(recipe.seed).permutation(parts.trained)[:MOST_TRAINED]
        trained = [found[place] for place in drawn]
        self._asked = [found[place] for place in parts.held_out]
        self._others = trained[:MOST_OTHERS]
        titles = sum(question.is_title for question in trained)
        notify(
            f"{len(trained):,} questions to train on ({titles:,} titles, "
            f"{len(trained) - titles:,} sentences), {len(self._asked):,} held out"
        )
        encoder = TorchEncoder(find_model(str(settings.base)))
        texts = (
            [question.query for question in trained],
            [question.passage for question in trained],
            hard_negatives(encoder, trained),
        )
        places = [f"{self.data_name}, question {number}" for number in range(1, len(trained) + 1)]
        training = Examples(self.data_name, Kind.TRIPLETS, texts, places, [])
        stage = Stage(training, None, recipe.for_kind(training.kind))
        return [stage], found_sts(["stsbenchmark"], "test", notify)

    def prompted(self, training: Examples, model: SentenceTransformer) -> Examples:
        """The texts with the model's prompts, as they are searched."""
        prompts = [model.prompts.get(name) or "" for name in ("query", "document", "document")]
        columns = zip(prompts, training.texts, strict=True)
        texts = tuple([prompt + text for text in column] for prompt, column in columns)
        return replace(training, texts=texts)

    def measured(
        self, folder: Path, base: Path, tests: Sequence[Examples], last: Stage
    ) -> list[Measured]:
        """The ranks of the passages of held-out questions, before and after; STS Benchmark."""
        before, after = (
            reciprocal_ranks(
                TorchEncoder(ModelFolder(str(model), model)), self._asked, self._others
            )
            for model in (base, folder)
        )
        self.gain = gain(before, after, last.recipe.seed)
        name = f"{self.data_name} (held out)"
        ranks = Measured(name, "MRR x 100", 100 * self.gain.after, 100 * self.gain.before)
        return [ranks, *super().measured(folder, base, tests, last)]

    def is_worth_keeping(self) -> bool:
        """Whether the held-out questions find their passages better than before."""
        return self.gain.is_certain or self.keep_anyway
