"""Teaching an encoder another language: new words, a dictionary, and the teacher's vectors.

Reimers & Gurevych 2020 train a student to give each translated sentence the vector that its teacher
gives to the English one. With some thousand sentences, a model trained on English alone hardly
improves this way: it splits the words of another language into fragments. So they are first added
to its vocabulary (`vocabulary`). English sentences among the others preserve what the model knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy

from semsearch.corpus import good_rows, open_table
from semsearch.corpus.formats import format_by_name
from semsearch.encoders import load_encoder
from semsearch.encoders.specs import Precision
from semsearch.errors import (
    ArgumentError,
    ColumnNotFoundError,
    CorpusError,
    DatasetNotFoundError,
    EncoderError,
)
from semsearch.evaluation.datasets.sts import (
    SOURCE_LANGUAGE,
    TRANSLATED,
    is_translated,
    languages_of,
    parallel_sentences,
)
from semsearch.evaluation.datasets.textlines import numbered_lines
from semsearch.training.data import NO_DEVELOPMENT, found_sts, held_out, load_tests
from semsearch.training.encoder import compare_encoders, disable_dropout, load_plain, plain_encode
from semsearch.training.examples import Examples, Kind, Notify, text_key, without_overlap
from semsearch.training.measures import cosine_to_teacher
from semsearch.training.run import Job, Task, Trained
from semsearch.training.stages import Recipe, Settings, Stage, per_stage
from semsearch.training.vocabulary import WordDropout, add_words

if TYPE_CHECKING:
    from semsearch.training.trainer import Trainee

#: Number of English training sentences for each translated one.
REPLAYED = 0.25
#: Maximum number of held-out sentences.
MAX_HELD_OUT = 500
LOSS = "cosine to the teacher's vector"
COLUMNS = ["source", "translation"]


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
        sets = [read_parallel(spec, one, notify) for spec, one in named]
        training = Examples(
            " + ".join(one.name for one in sets),
            Kind.TRANSLATIONS,
            tuple(list(chain(*texts)) for texts in zip(*(one.texts for one in sets), strict=True)),
            [],
            tuple(dict.fromkeys(label for one in sets for label in one.labels)),
        )
        recipe, development = settings.recipe.for_kind(Kind.TRANSLATIONS), None
        if settings.development != NO_DEVELOPMENT:
            training, development = held_out(training, recipe.seed, MAX_HELD_OUT)
        tests = load_tests(settings, notify)
        held = [*tests, development] if development else tests
        training = without_overlap(training, held, notify)
        tests += _published_tests(training, notify)
        stage = Stage(training, development, recipe, LOSS)
        return Job([stage], partial(_trainee, notify), partial(_finish, tests))


def read_parallel(spec: str, language: str | None, notify: Notify) -> Examples:
    """Translated sentences, each pair once, with their language as the only label.

    They are from a published set (``stsb-multi:pt``), a table of sources and translations, or a
    pair of line-aligned files (Moses: ``news.pt`` beside ``news.en``). Without a language, it is
    that in the name of the set or line-aligned file.

    Raises:
        ArgumentError: the spec is not valid, or the language is unknown.
        CorpusError: the file or a row cannot be read, or it holds no translations.
        DatasetNotFoundError: there is no such file, or the set is not on this machine.
    """
    path = Path(spec).expanduser()
    if is_translated(spec):
        found, language = languages_of(spec)
        if found not in (language, SOURCE_LANGUAGE) or language == SOURCE_LANGUAGE:
            raise ArgumentError(f"{spec} is not a translation from English, such as stsb-multi:pt")
        pairs = parallel_sentences(language)
    elif not path.is_file():
        raise DatasetNotFoundError(f"no such file: {path} (published sets: stsb-multi:pt)")
    elif format_by_name(path) is None:
        language = language or path.suffix.removeprefix(".")
        pairs = _aligned_lines(path.with_suffix(f".{SOURCE_LANGUAGE}"), path)
    else:
        pairs = _columns(path)
    if language is None:
        raise ArgumentError(f"the language of {path.name} is unknown; give it with --language")
    stripped = [(source.strip(), translation.strip()) for source, translation in pairs]
    distinct = dict.fromkeys(pair for pair in stripped if all(pair))
    if empty := sum(not all(pair) for pair in stripped):
        notify(f"{path.name}: {empty:,} pairs without text on one side are left out")
    if not distinct:
        raise CorpusError(f"{path.name} holds no translated sentences")
    sources, translations = zip(*distinct, strict=True)
    texts = list(sources), list(translations)
    return Examples(path.name, Kind.TRANSLATIONS, texts, [], (language,))


def _columns(path: Path) -> list[tuple[str, str]]:
    """The columns of a table that are named so, or its only two columns in this order."""
    with open_table(path) as table:
        named = COLUMNS if {*COLUMNS} <= {*table.columns} else list(table.columns)
        if len(named) != 2:
            raise ColumnNotFoundError(
                f"{table.name}: columns 'source' and 'translation' are needed, or a table of only "
                f"two columns (columns: {', '.join(named)})"
            )
        rows = [[str(row.fields.get(name) or "") for name in named] for row in good_rows(table)]
    return [(source, translation) for source, translation in rows]


def _aligned_lines(english: Path, path: Path) -> list[tuple[str, str]]:
    """The sentences of two files, line by line."""
    if english == path or not english.is_file():
        raise ArgumentError(
            f"{path}: give a table (CSV, TSV), or the translation in a pair of line-aligned "
            f"files, such as news.pt beside news.{SOURCE_LANGUAGE}"
        )
    sources, translations = ([line.text for line in numbered_lines(one)] for one in (english, path))
    if len(sources) != len(translations):
        raise CorpusError(
            f"{english.name} has {len(sources):,} lines and {path.name} {len(translations):,}; "
            "each line must translate the same line of the other file"
        )
    return list(zip(sources, translations, strict=True))


def _trainee(notify: Notify, folder: Path, stage: Stage) -> Trainee:
    """The bi-encoder in a folder, with the words of the languages added."""
    from sentence_transformers.sentence_transformer.data_collator import (
        SentenceTransformerDataCollator,
    )

    from semsearch.training.trainer import TeacherLoss, text_trainee

    training, development, recipe, _ = stage
    model = load_plain(folder)
    if model.transformers_model is None:
        raise EncoderError("the teacher is no transformer; words can be added only to one")
    model.max_seq_length = recipe.max_tokens or model.max_seq_length
    disable_dropout(model)  # its noise keeps a student from matching its teacher
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
    targets = [*(place[text] for text in sources), *replayed]
    examples = replace(training, texts=([prompt + text for text in texts],), targets=targets)
    teacher = load_encoder(str(folder), local_files_only=True)
    loss = TeacherLoss(model, teacher.encode_documents(distinct))
    score = None
    if development is not None:
        wanted = teacher.encode_documents(development.texts[0])
        score = partial(cosine_to_teacher, plain_encode(model, prompt), development, wanted)
    dropout = WordDropout(model[0], known, recipe.seed)
    collator = SentenceTransformerDataCollator(preprocess_fn=dropout)
    return text_trainee(model, loss, examples, recipe, score, collator=collator)


def _finish(tests: Sequence[Examples], folder: Path, base: Path) -> Trained:
    """The scores of the student and of its teacher, with their prompts, as in search."""
    student, teacher = (
        load_encoder(str(one), precision=Precision.FP32, local_files_only=True).encode_documents
        for one in (folder, base)
    )
    scores = [compare_encoders(student, teacher, test) for test in tests if len(test)]
    return Trained(folder, scores)


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
            keys = [map(text_key, texts) for texts in zip(*test.texts, strict=True)]
            rows = [row for row, texts in enumerate(keys) if seen.isdisjoint(texts)]
            tests.append(test.take(rows, f"{test.name}, unseen sentences ({len(rows):,})"))
    return tests
