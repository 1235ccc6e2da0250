"""BERT pre-training: masked words and next sentences, with the sum of both losses."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from semsearch.errors import ArgumentError
from semsearch.records import Document
from semsearch.training.bert import (
    MAX_TOKENS,
    BertSize,
    LoadedBert,
    load_bert,
    new_bert,
    predict_frequencies,
)
from semsearch.training.examples import Examples, Kind, Notify
from semsearch.training.processes import process_count
from semsearch.training.recipe import Recipe
from semsearch.training.scoring import Measured
from semsearch.training.sentences import distinct_documents, held_out, sentences
from semsearch.training.stages import Settings, Stage
from semsearch.training.task import Task
from semsearch.training.wordpieces import learn_word_pieces, save_tokenizer

if TYPE_CHECKING:
    from transformers import BertTokenizerFast

    from semsearch.training.masked_pairs import MaskedPairs
    from semsearch.training.stage_trainer import StageTrainer

SIZE, VOCABULARY = BertSize.SMALL, 30_522
#: Learning rates for models from scratch; wider models need lower ones.
LEARNING_RATES = {
    BertSize.TINY: 1e-3,
    BertSize.MINI: 1e-3,
    BertSize.SMALL: 5e-4,
    BertSize.BASE: 1e-4,  # the paper's
}
#: Learning rate for continued pre-training.
GENTLE_LEARNING_RATE = 5e-5


@dataclass
class Pretraining(Task):
    """Pre-train a BERT on a corpus.

    Args:
        documents: the corpus; 5 % of its documents of two or more sentences are held out.
        data_name: name of the corpus in messages.
        size: of a BERT from scratch; None means small.
        vocabulary: maximum number of word pieces, from scratch; None means 30,522.
        cased: keep capitals and accents, from scratch.
    """

    documents: Iterable[Document]
    data_name: str
    size: BertSize | None = None
    vocabulary: int | None = None
    cased: bool = False
    _goes_on: bool = field(default=False, init=False)
    _notify: Notify = field(default=print, init=False)

    name = "pretrain"
    description = (
        "A BERT made by semsearch: pre-trained by masked language modelling and next-sentence "
        "prediction (Devlin et al. 2019), or with random weights after 0 steps. It is not a "
        "sentence encoder yet: its vectors are pooled token vectors, to be fine-tuned."
    )
    recipe = Recipe(steps=10_000, batch_size=64, max_tokens=128)

    def recipe_for(self, base: str | None) -> Recipe:
        """The default recipe, with a learning rate that suits the size."""
        rate = LEARNING_RATES[self.size or SIZE] if base is None else GENTLE_LEARNING_RATE
        return replace(self.recipe, learning_rate=rate)

    def choices(self) -> dict[str, Any]:
        """Size and vocabulary of a model from scratch."""
        if self._goes_on:
            return {}
        return {
            "size": (self.size or SIZE).name.lower(),
            "vocabulary": self._max_pieces,
            "cased": self.cased,
        }

    def stages(self, settings: Settings, notify: Notify) -> tuple[list[Stage], list[Examples]]:
        """One stage; the vocabulary is learnt from all texts and titles."""
        (recipe,) = settings.recipes
        self._notify = notify
        self._goes_on = settings.base is not None
        if not 16 <= (recipe.max_tokens or 0) <= MAX_TOKENS:
            raise ArgumentError(
                f"max_tokens must be from 16 to {MAX_TOKENS}, not {recipe.max_tokens}"
            )
        if recipe.batch_size < 2:
            raise ArgumentError(f"batch_size must be at least 2, not {recipe.batch_size}")
        documents = distinct_documents(self.documents)
        if recipe.steps == 0:
            return [Stage(self._examples(documents, ""), None, recipe)], []
        usable = [len(sentences(document.text)) > 1 for document in documents]
        places = [place for place, is_usable in enumerate(usable) if is_usable]
        parts = held_out(len(places), recipe.seed, "different documents of two sentences or more")
        held = {places[place] for place in parts.held_out}
        notify(
            f"{len(parts.trained):,} documents of two sentences or more to train on, "
            f"{len(held):,} held out"
        )
        training = [document for place, document in enumerate(documents) if place not in held]
        development = self._examples([documents[place] for place in sorted(held)], " (held out)")
        return [Stage(self._examples(training, ""), development, recipe)], []

    def loss(self, number: int, training: Examples) -> str:
        """The name of the loss, the same for all stages."""
        del number, training
        return "masked words + next sentence"

    def trainer(self, folder: Path, number: int, stage: Stage) -> StageTrainer:
        """A trainer of the BERT, which is new or, with a base model, that in the folder."""
        del number
        from transformers import TrainingArguments

        from semsearch.training.masked_pairs import held_out_losses, loss_of
        from semsearch.training.stage_trainer import EVALUATE_AT_LEAST_EVERY, StageTrainer
        from semsearch.training.trainers import MaskedTrainer

        training, development, recipe = stage
        model, tokenizer, has_new_heads = self._start(folder, stage)

        def save(folder: Path) -> None:
            model.save_pretrained(folder)
            save_tokenizer(tokenizer, folder)

        if development is None:
            return StageTrainer(model, recipe, 1, MaskedTrainer, TrainingArguments, {}, save=save)
        data = _masked_pairs(training, tokenizer, recipe)
        measured = _masked_pairs(development, tokenizer, recipe)
        if recipe.epochs is not None:  # the trainer cannot count endless batches
            batches = sum(1 for _ in data.epoch(0)) / process_count()
            recipe = replace(recipe, epochs=None, steps=math.ceil(recipe.epochs * batches))
        if has_new_heads:
            predict_frequencies(model, data.tokens.ids)
        self._notify(
            f"{len(tokenizer):,} word pieces, {len(data.tokens.ids):,} tokens, "
            f"{model.num_parameters():,} parameters"
        )
        model.forward = partial(loss_of, model)

        def score() -> float:
            losses = held_out_losses(model, measured)
            self._notify(f"held out: {losses}")
            return -losses.masked_loss - losses.next_loss

        return StageTrainer(
            model,
            recipe,
            EVALUATE_AT_LEAST_EVERY,
            MaskedTrainer,
            TrainingArguments,
            {"train_dataset": data, "data_collator": data.collated},
            score,
            save,
        )

    def measured(
        self, folder: Path, base: Path, tests: Sequence[Examples], last: Stage
    ) -> list[Measured]:
        """Both losses and accuracies on the held-out documents."""
        del base, tests
        if last.development is None:
            return []
        from semsearch.training.masked_pairs import held_out_losses

        model, tokenizer, _ = load_bert(folder)
        losses = held_out_losses(model, _masked_pairs(last.development, tokenizer, last.recipe))
        values = {
            "masked words, loss": losses.masked_loss,
            "masked words found, %": 100 * losses.masked_accuracy,
            "next sentence, loss": losses.next_loss,
            "next sentence found, %": 100 * losses.next_accuracy,
        }
        name = last.development.name
        return [Measured(name, measure, value) for measure, value in values.items()]

    @property
    def _max_pieces(self) -> int:
        return VOCABULARY if self.vocabulary is None else self.vocabulary

    def _examples(self, documents: Sequence[Document], part: str) -> Examples:
        texts = (
            [document.text for document in documents],
            [document.title or "" for document in documents],
        )
        name = f"{self.data_name}{part}"
        return Examples(name, Kind.DOCUMENTS, texts, [name] * len(documents), [])

    def _start(self, folder: Path, stage: Stage) -> LoadedBert:
        """The model before its first step."""
        from transformers import set_seed

        most = stage.recipe.max_tokens or MAX_TOKENS
        set_seed(stage.recipe.seed)
        if not self._goes_on:
            sets = filter(None, (stage.training, stage.development))
            texts = [text for one in sets for column in one.texts for text in column]
            tokenizer = learn_word_pieces(
                lambda: chain.from_iterable(map(sentences, texts)),
                self._max_pieces,
                most,
                cased=self.cased,
            )
            return LoadedBert(new_bert(self.size or SIZE, tokenizer), tokenizer, new_heads=True)
        found = load_bert(folder)
        if found.new_heads:
            self._notify(f"{folder} has no pre-training heads; they start with random weights")
        known = found.model.config.max_position_embeddings
        if most > known:
            raise ArgumentError(f"{folder} reads {known} tokens, not {most}; lower --max-tokens")
        return found


def _masked_pairs(examples: Examples, tokenizer: BertTokenizerFast, recipe: Recipe) -> MaskedPairs:
    from semsearch.training.masked_pairs import MaskedPairs

    most = recipe.max_tokens or MAX_TOKENS
    documents = map(sentences, examples.texts[0])
    return MaskedPairs(documents, tokenizer, most, recipe.batch_size, recipe.seed)
