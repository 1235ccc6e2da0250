"""Teaching an encoder another language: new words, a dictionary, and the teacher's vectors.

Reimers & Gurevych 2020 train a student to give each translated sentence the vector that its teacher
gives to the English one. With some thousand sentences, a model trained on English alone hardly
improves this way. So the words of the language are first added to its vocabulary, each initialised
as the mean of its English translations, weighted by their probability under IBM Model 1. Words
already in the vocabulary (BERT's has "um" and "para") are moved towards that mean, too. Words in
none of the sentences are read by their parts: these get pieces, which are trained by cutting other
words at random. English sentences among the others preserve what the model knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy

from semsearch.encoders import load_encoder
from semsearch.encoders.specs import Precision
from semsearch.errors import EncoderError
from semsearch.evaluation.datasets.sts import SOURCE_LANGUAGE, TRANSLATED
from semsearch.protocols import Matrix
from semsearch.training.data import NO_DEVELOPMENT, found_sts, held_out, load_tests
from semsearch.training.encoder import compare_encoders, limit_tokens, load_plain, plain_encode
from semsearch.training.examples import (
    Examples,
    Kind,
    Notify,
    check_trainable,
    mixed,
    text_key,
    without_overlap,
)
from semsearch.training.measures import columns_of
from semsearch.training.parallel import read_parallel
from semsearch.training.run import Job, Task, Trained
from semsearch.training.stages import Recipe, Settings, Stage, per_stage
from semsearch.training.vocabulary import WordDropout, add_words

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from semsearch.training.trainer import Trainee

#: Number of English training sentences for each translated one.
REPLAYED = 0.25
#: Maximum number of held-out sentences.
MAX_HELD_OUT = 500
LOSS = "cosine to the teacher's vector"


@dataclass(frozen=True)
class Translation(Task):
    """Teach a bi-encoder other languages.

    Args:
        languages: one per parallel text; None takes the one that the text names.
    """

    languages: Sequence[str | None]

    name = "translate"
    # New words must move far, known ones must not.
    recipe = Recipe(batch_size=80, learning_rate=5e-5, embedding_learning_rate=2e-3)

    def prepare(self, settings: Settings, notify: Notify) -> Job:
        """One stage for all languages, and the test sets that are available for them."""
        languages = per_stage(self.languages, len(settings.data), "--language")
        named = zip(settings.data, languages, strict=True)
        training = mixed([read_parallel(spec, one, notify) for spec, one in named])
        check_trainable(training)
        recipe, development = settings.recipe.for_kind(Kind.TRANSLATIONS), None
        if settings.development != NO_DEVELOPMENT:
            training, development = held_out(training, recipe.seed, MAX_HELD_OUT)
        tests = load_tests(settings, notify)
        held = [*tests, development] if development else tests
        training = without_overlap(training, held, notify)
        tests += _published_tests(training, notify)
        stage = Stage(training, development, recipe, LOSS)
        return Job([stage], partial(_trainee, notify), partial(_finish, tests))


def _trainee(notify: Notify, folder: Path, stage: Stage) -> Trainee:
    """The bi-encoder in a folder, with the words of the languages added."""
    from sentence_transformers.sentence_transformer.data_collator import (
        SentenceTransformerDataCollator,
    )

    from semsearch.training.losses import TeacherLoss
    from semsearch.training.trainer import text_trainee

    training, development, recipe, _ = stage
    model = load_plain(folder)
    if model.transformers_model is None:
        raise EncoderError("the teacher is no transformer; words can be added only to one")
    limit_tokens(model, recipe.max_tokens)
    disable_dropout(model)
    sources, translations = training.texts
    known = len(model.tokenizer)
    added = add_words(model, sources, translations)
    notify(f"{added:,} word pieces added, initialised from a dictionary of the texts")
    distinct = list(dict.fromkeys(sources))
    place = {text: row for row, text in enumerate(distinct)}
    generator = numpy.random.default_rng(recipe.seed)
    count = min(len(distinct), round(REPLAYED * len(translations)))
    replayed = sorted(generator.permutation(len(distinct))[:count].tolist())
    prompt = model.prompts.get("document") or ""
    texts = [*translations, *(distinct[row] for row in replayed)]
    examples = replace(
        training,
        texts=([prompt + text for text in texts],),
        targets=[*(place[text] for text in sources), *replayed],
    )
    teacher = load_encoder(str(folder), local_files_only=True)
    loss = TeacherLoss(model, teacher.encode_documents(distinct))
    score = None
    if development is not None:
        wanted = teacher.encode_documents(development.texts[0])
        score = partial(_score, model, prompt, development, wanted)
    collator = SentenceTransformerDataCollator(
        preprocess_fn=WordDropout(model[0], known, recipe.seed)
    )
    return text_trainee(model, loss, examples, recipe, score, collator=collator)


def _score(model: SentenceTransformer, prompt: str, development: Examples, wanted: Matrix) -> float:
    """The mean cosine of sentences and translations to the teacher's vectors of the sentences."""
    encode = plain_encode(model, prompt=prompt)
    columns = columns_of(encode, development)
    cosines = [(vectors * wanted).sum(axis=1).mean() for vectors in columns]
    return 100 * float(numpy.mean(cosines))


def _finish(tests: Sequence[Examples], folder: Path, base: Path) -> Trained:
    """The scores of the student and of its teacher, with their prompts, as in search."""
    student, teacher = (
        load_encoder(str(one), precision=Precision.FP32, local_files_only=True).encode_documents
        for one in (folder, base)
    )
    return Trained(
        folder, [compare_encoders(student, teacher, test) for test in tests if len(test)]
    )


def disable_dropout(model: SentenceTransformer) -> None:
    """Turn off dropout: its noise keeps a student from matching its teacher's vectors."""
    import torch

    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0


def _published_tests(training: Examples, notify: Notify) -> list[Examples]:
    """The test set of STS Benchmark in each language, across languages and in English.

    Those on this machine; translated ones also without the sentences seen in training.
    """
    names = [
        f"{TRANSLATED}:{name}"
        for language in training.labels
        for name in (language, f"{SOURCE_LANGUAGE}-{language}")
    ]
    seen = {text_key(text) for column in training.texts for text in column}
    tests = []
    for test in found_sts([*names, "stsbenchmark"], "test", notify):
        tests.append(test)
        if test.name.startswith(TRANSLATED):
            rows = [
                row
                for row, texts in enumerate(zip(*test.texts, strict=True))
                if not any(text_key(text) in seen for text in texts)
            ]
            tests.append(test.take(rows, f"{test.name}, unseen sentences ({len(rows):,})"))
    return tests
