"""BERT pre-training: masked words and next sentences, with the sum of both losses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from math import ceil
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from semsearch.encoders.torch_loading import quiet_transformers
from semsearch.errors import ArgumentError
from semsearch.records import Document
from semsearch.training.examples import Examples, Kind, Notify, distinct_documents, sentences, split
from semsearch.training.measures import Measured
from semsearch.training.run import Job, Task, Trained
from semsearch.training.stages import Recipe, Settings, Stage

if TYPE_CHECKING:
    from transformers import BertForPreTraining, BertTokenizerFast

    from semsearch.training.masked_pairs import MaskedPairs
    from semsearch.training.trainer import Trainee

#: BERT's maximum sequence length.
MAX_TOKENS = 512
#: Width of an attention head, the same in all sizes.
HEAD_WIDTH = 64
VOCABULARY = 30_522
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
#: Maximum number of characters with pieces of their own.
ALPHABET_SIZE = 1000
#: Minimum number of occurrences of a piece.
MIN_FREQUENCY = 2
LOSS = "masked words + next sentence"


class BertSize(Enum):
    """Layers, width and learning rate from scratch; the sizes of Turc et al. 2019."""

    TINY = (2, 128, 1e-3)
    MINI = (4, 256, 1e-3)
    SMALL = (4, 512, 5e-4)
    BASE = (12, 768, 1e-4)  # the paper's


@dataclass(frozen=True)
class Pretraining(Task):
    """Pre-train a BERT on a corpus.

    Args:
        documents: the corpus; 5 % of its documents of two or more sentences are held out.
        data_name: name of the corpus in messages.
        size: of a BERT from scratch.
        vocabulary: maximum number of word pieces, from scratch.
    """

    documents: Iterable[Document]
    data_name: str
    size: BertSize = BertSize.SMALL
    vocabulary: int = VOCABULARY

    name = "pretrain"
    usage = "semsearch train contrast corpus.csv --base {path}"
    recipe = Recipe(steps=10_000, batch_size=64, max_tokens=128)

    def recipe_for(self, base: str | None) -> Recipe:
        """The default recipe, with a learning rate that suits the size."""
        del base
        return replace(self.recipe, learning_rate=self.size.value[2])

    def prepare(self, settings: Settings, notify: Notify) -> Job:
        """One stage; the vocabulary is learnt from all texts and titles."""
        recipe = settings.recipe
        if not 16 <= (recipe.max_tokens or 0) <= MAX_TOKENS:
            raise ArgumentError(
                f"max_tokens must be from 16 to {MAX_TOKENS}, not {recipe.max_tokens}"
            )
        documents = distinct_documents(self.documents)
        texts = [one.text for one in documents], [one.title or "" for one in documents]
        training, development = Examples(self.data_name, Kind.DOCUMENTS, texts, []), None
        if recipe.epochs != 0:
            usable = [n for n, text in enumerate(texts[0]) if len(sentences(text)) > 1]
            what = "different documents of two sentences or more"
            trained, held = split(usable, recipe.seed, what)
            notify(f"{len(trained):,} {what} to train on, {len(held):,} held out")
            development = training.take(held, f"{self.data_name} (held out)")
            training = training.take(sorted({*range(len(documents))}.difference(held)))
        stage = Stage(training, development, recipe, LOSS)
        return Job([stage], partial(self._trainee, notify), partial(_finish, stage))

    def _trainee(self, notify: Notify, folder: Path, stage: Stage) -> Trainee:
        """A new BERT with its vocabulary."""
        from transformers import Trainer, TrainingArguments

        from semsearch.training.masked_pairs import loss_of
        from semsearch.training.trainer import EVAL_LOSS, EVALUATE_AT_LEAST_EVERY, Trainee

        del folder
        training, development, recipe, _ = stage
        sets = filter(None, (training, development))
        texts = [text for one in sets for column in one.texts for text in column]
        tokenizer = learn_word_pieces(texts, self.vocabulary, recipe.max_tokens or MAX_TOKENS)
        model = new_bert(self.size, tokenizer)
        options: dict[str, Any] = {"processing_class": tokenizer}
        if development is None:
            return Trainee(model, recipe, 1, Trainer, TrainingArguments, options)
        data = _masked_pairs(training, tokenizer, recipe)
        if recipe.epochs is not None:  # the trainer cannot count endless batches
            recipe = replace(recipe, epochs=None, steps=ceil(recipe.epochs * len(data.pairs(0))))
        notify(f"{len(tokenizer):,} word pieces, {model.num_parameters():,} parameters")
        model.forward = partial(loss_of, model)
        options |= {
            "train_dataset": data,
            "eval_dataset": list(_masked_pairs(development, tokenizer, recipe).batches([0])),
            "data_collator": itemgetter(0),
        }
        settings = {
            "per_device_train_batch_size": 1,  # an item of the data is a batch
            "per_device_eval_batch_size": 1,
            "prediction_loss_only": True,
            "accelerator_config": {"dispatch_batches": False},
        }
        trainer = EVALUATE_AT_LEAST_EVERY, Trainer, TrainingArguments
        return Trainee(model, recipe, *trainer, options, EVAL_LOSS, settings)


def _masked_pairs(examples: Examples, tokenizer: BertTokenizerFast, recipe: Recipe) -> MaskedPairs:
    from semsearch.training.masked_pairs import MaskedPairs

    most = recipe.max_tokens or MAX_TOKENS
    documents = map(sentences, examples.texts[0])
    return MaskedPairs(documents, tokenizer, most, recipe.batch_size, recipe.seed)


def _finish(stage: Stage, folder: Path, base: Path) -> Trained:
    """Both losses and accuracies on the held-out documents."""
    del base
    if stage.development is None:
        return Trained(folder, [])
    from transformers import BertForPreTraining, BertTokenizerFast

    from semsearch.training.masked_pairs import measured

    with quiet_transformers():
        model = BertForPreTraining.from_pretrained(folder)
    tokenizer = BertTokenizerFast.from_pretrained(folder)
    held_out = _masked_pairs(stage.development, tokenizer, stage.recipe)
    values = measured(model, held_out.batches([0]))
    name = stage.development.name
    return Trained(folder, [Measured(name, measure, value) for measure, value in values.items()])


def new_bert(size: BertSize, tokenizer: BertTokenizerFast) -> BertForPreTraining:
    """A BERT in fp32 with random weights from torch's global generator."""
    from transformers import BertConfig, BertForPreTraining

    layers, width, _ = size.value
    config = BertConfig(
        vocab_size=len(tokenizer),
        num_hidden_layers=layers,
        hidden_size=width,
        num_attention_heads=width // HEAD_WIDTH,
        intermediate_size=4 * width,
        max_position_embeddings=MAX_TOKENS,
        pad_token_id=tokenizer.pad_token_id,
    )
    return BertForPreTraining(config)


def learn_word_pieces(texts: Sequence[str], size: int, max_tokens: int) -> BertTokenizerFast:
    """A BERT tokenizer, without capitals and accents, with a vocabulary learnt from texts.

    The trainer of `tokenizers` numbers the characters in the order of a hash map, and the numbers
    break ties between equally frequent pairs. So that the same texts give the same vocabulary, the
    characters are passed to it in a fixed order, even if they are more than `size`.
    """
    from tokenizers.implementations import BertWordPieceTokenizer
    from transformers import BertTokenizerFast

    tokenizer = BertWordPieceTokenizer(lowercase=True)
    characters: Counter[str] = Counter()
    for text in texts:
        characters.update(tokenizer.normalizer.normalize_str(text))
    alphabet = sorted(
        character
        for character, _ in characters.most_common(ALPHABET_SIZE)
        if not character.isspace()
    )
    tokenizer.train_from_iterator(
        texts,
        vocab_size=size,
        min_frequency=MIN_FREQUENCY,
        limit_alphabet=ALPHABET_SIZE,
        special_tokens=[*SPECIAL, *alphabet, *(f"##{character}" for character in alphabet)],
        show_progress=False,
    )
    return BertTokenizerFast(vocab=tokenizer.get_vocab(), model_max_length=max_tokens)
