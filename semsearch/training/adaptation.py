"""Fit an encoder to an unlabelled corpus, and keep the result only if it passes a test.

Titles, or sentences taken out of their context, serve as questions; in-batch and mined hard
negatives are the wrong answers (multiple negatives ranking, Henderson et al. 2017). The new weights
are averaged with the old ones (Wortsman et al. 2022, Robust fine-tuning of zero-shot models), with
the smallest share of the new ones that helps significantly. Whether it helps, and whether the
result is kept, is decided on other kinds of questions than those trained on: the user's own, with
judgements, or questions made from held-out documents; and on STS Benchmark, if it is available.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy
from numpy.random import default_rng

from semsearch.datasets import RetrievalSet
from semsearch.encoders import load_encoder
from semsearch.encoders.cache import temporary_cache
from semsearch.encoders.torch_loading import quiet_transformers
from semsearch.errors import ArgumentError, TrainingError
from semsearch.evaluation.statistics import Values
from semsearch.protocols import Encoder
from semsearch.records import Document
from semsearch.texts import quantity
from semsearch.training.data import found_sts
from semsearch.training.examples import Examples, Kind, Notify
from semsearch.training.gains import Gain, gain, spearman_gain
from semsearch.training.hard_negatives import hard_negatives
from semsearch.training.questions import fragments, keywords, questions
from semsearch.training.recipe import Recipe
from semsearch.training.scoring import Measured, columns_of
from semsearch.training.search_test import Asked, SearchTest
from semsearch.training.sentences import check_count, distinct_documents, held_out
from semsearch.training.siamese import BiEncoderTask
from semsearch.training.stages import Settings, Stage

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

HELD_OUT_PART = 0.1
#: Maximum number of training questions (one per document); from more, a random sample is drawn.
MAX_TRAINED = 50_000
#: Maximum number of distractors: passages besides those asked for.
MAX_OTHERS = 1_000
#: Minimum number of queries of one kind for an evaluation.
MIN_ASKED = 4
MEASURE = "nDCG@10"
#: Shares of the new weights to try, in ascending order.
SHARES = (0.25, 0.5, 1.0)
#: Largest drop of the STS Benchmark score (x 100) that its 95 % interval may include.
STS_MARGIN = 1.0


class Verdict(NamedTuple):
    """The effect of the training, and whether the result is better than the old model."""

    share: float  #: of the new weights
    pooled: Gain  #: over all questions
    by_kind: dict[str, Gain]
    sts: Gain | None  #: Spearman x 100 on STS Benchmark's development set, if available

    @property
    def objections(self) -> list[str]:
        """Reasons why the model is not better than the old one."""
        found = [] if self.pooled.is_significant else ["the gain is not significant"]
        found += [
            f"the score on {kind} fell"
            for kind, one in self.by_kind.items()
            if one.after < one.before
        ]
        if self.sts is not None and self.sts.low < -STS_MARGIN:
            found.append(f"the STS Benchmark score may fall by more than {STS_MARGIN:g}")
        return found

    def __str__(self) -> str:
        return f"{self.pooled}, with {self.share:.0%} of the new weights"


@dataclass
class Adaptation(BiEncoderTask):
    """Fit an encoder to an unlabelled corpus.

    Args:
        documents: the corpus.
        data_name: name of the corpus in messages.
        keep_anyway: write the model even if it does not pass the test.
        judged: queries with judgements of these documents, to evaluate on; None holds out a tenth
            of the documents and makes queries from them.
    """

    documents: Iterable[Document]
    data_name: str
    keep_anyway: bool = False
    judged: RetrievalSet | None = None
    #: The effect of the training, once it is measured.
    verdict: Verdict = field(init=False)
    _test: SearchTest = field(init=False)
    _sts: list[Examples] = field(init=False)

    name = "adapt"
    description = (
        "An encoder fitted by semsearch to an unlabelled corpus, from `{base}`: it was trained to "
        "find documents by their titles, or by sentences taken out of their context, among "
        "in-batch and mined hard negatives. Its weights are an average of the old and new ones."
    )
    keeps_its_task = True
    attention_dropout = False
    recipe = Recipe(batch_size=32)

    def stages(self, settings: Settings, notify: Notify) -> tuple[list[Stage], list[Examples]]:
        """One stage, without a development set: the model to keep is chosen at the end."""
        (recipe,) = settings.recipes
        documents = distinct_documents(self.documents)
        found = questions(documents, recipe.seed)
        usable = "different documents with a title of their own or two sentences"
        check_count(len(found), usable)
        trained = found
        if self.judged is None:
            parts = held_out(len(found), recipe.seed, usable, HELD_OUT_PART)
            trained = [found[place] for place in parts.trained]
            asked = [found[place].document for place in parts.held_out]
            self._test = made_test(asked, [one.document for one in trained], recipe.seed)
        else:
            self._test = judged_test(self.judged, documents, recipe.seed)
        drawn = default_rng(recipe.seed).permutation(len(trained))[:MAX_TRAINED]
        trained = [trained[place] for place in drawn]
        titles = sum(question.is_title for question in trained)
        kinds = " and ".join(f"{len(asked.queries):,} {asked.kind}" for asked in self._test.asked)
        notify(
            f"{len(trained):,} questions to train on ({titles:,} titles, "
            f"{len(trained) - titles:,} sentences); evaluated on {kinds}"
        )
        self._sts = found_sts(["stsbenchmark"], "dev", notify)
        texts = (
            [question.query for question in trained],
            [question.passage for question in trained],
            hard_negatives(load_encoder(str(settings.base)), trained),
        )
        places = [f"{self.data_name}, question {number}" for number in range(1, len(trained) + 1)]
        training = Examples(self.data_name, Kind.TRIPLETS, texts, places, [])
        stage = Stage(training, None, recipe.for_kind(training.kind))
        return [stage], found_sts(["stsbenchmark"], "test", notify) if self._sts else []

    def prompted(self, training: Examples, model: SentenceTransformer) -> Examples:
        """The texts with the model's prompts, as in search."""
        prompts = [model.prompts.get(name) or "" for name in ("query", "document", "document")]
        columns = zip(prompts, training.texts, strict=True)
        texts = tuple([prompt + text for text in column] for prompt, column in columns)
        return replace(training, texts=texts)

    def finished(self, folder: Path, base: Path) -> Path:
        """The average of the old and new weights, with the share that `chosen_share` returns."""
        old, model = self.load(base).state_dict(), self.load(folder)
        new = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        mixed = {share: folder.with_name(f"share-{share}") for share in SHARES}
        found: dict[float, list[Values]] = {}
        sts: dict[float, list[Values]] = {}
        found[0.0], sts[0.0] = self._values(base)
        for share, place in mixed.items():
            model.load_state_dict(_mean(old, new, share))
            shutil.copytree(folder, place, dirs_exist_ok=True)
            with quiet_transformers():
                model.save_pretrained(str(place), create_model_card=False)
            with temporary_cache(folder.with_name("cache")):
                found[share], sts[share] = self._values(place)
        share = chosen_share(found)
        self.verdict = _verdict(
            share,
            self._test,
            found,
            [
                spearman_gain(sts[0.0][place], sts[share][place], examples.targets)
                for place, examples in enumerate(self._sts)
            ],
        )
        self.description += f" On held-out queries: {self.verdict}."
        if self.verdict.objections:
            self.description += f" It was kept although {', and '.join(self.verdict.objections)}."
        return mixed[share]

    def _values(self, folder: Path) -> tuple[list[Values], list[Values]]:
        """A model's score on each question, and its cosines of STS Benchmark's pairs."""
        encoder = load_encoder(str(folder), local_files_only=True)
        return self._test.values(encoder), [_cosines(encoder, one) for one in self._sts]

    def measured(
        self, folder: Path, base: Path, tests: Sequence[Examples], last: Stage
    ) -> list[Measured]:
        """The scores on each kind of question before and after, and on STS Benchmark."""
        found = [
            Measured(
                f"{self.data_name}, {kind}", f"{MEASURE} x 100", 100 * one.after, 100 * one.before
            )
            for kind, one in self.verdict.by_kind.items()
        ]
        return [*found, *super().measured(folder, base, tests, last)]

    def is_worth_keeping(self) -> bool:
        """Whether there are no objections, or the model is kept anyway."""
        return not self.verdict.objections or self.keep_anyway


def made_test(asked: Sequence[str], others: Sequence[str], seed: int) -> SearchTest:
    """A test with queries made from documents, of kinds that are not trained on.

    Args:
        asked: texts of the documents to find.
        others: texts of other documents, used as distractors.
        seed: of the choice of sentences.

    Raises:
        TrainingError: the texts are too short.
    """
    passages = {str(place): text for place, text in enumerate((*asked, *others[:MAX_OTHERS]))}
    kinds = []
    for kind, queries in (
        ("keyword queries", keywords(list(passages.values()))[: len(asked)]),
        ("half-sentence queries", fragments(asked, seed)),
    ):
        fit = [place for place, query in enumerate(queries) if query]
        if len(fit) >= MIN_ASKED:
            judged = [{str(place): 1} for place in fit]
            kinds.append(Asked(kind, [queries[place] for place in fit], judged))
    if not kinds:
        raise TrainingError(
            "the texts are too short to make queries for an evaluation; provide your own, with "
            "judgements"
        )
    return SearchTest(passages, kinds)


def judged_test(judged: RetrievalSet, documents: Sequence[Document], seed: int) -> SearchTest:
    """A test with the judged queries, their documents and distractors.

    Raises:
        ArgumentError: fewer than `MIN_ASKED` queries have a relevant document in the corpus.
    """
    texts = {one.id: one.text for one in documents if one.id is not None}
    names = [
        name
        for name in judged.queries
        if any(grade > 0 and one in texts for one, grade in judged.qrels[name].items())
    ]
    if len(names) < MIN_ASKED:
        raise ArgumentError(
            f"{judged.name} has {quantity(len(names), 'query')} with a relevant "
            f"document in this corpus; an evaluation needs {MIN_ASKED} or more"
        )
    wanted = {one for name in names for one in judged.qrels[name] if one in texts}
    others = [one for one in texts if one not in wanted]
    drawn = default_rng(seed).permutation(len(others))[:MAX_OTHERS]
    shown = {*wanted, *(others[place] for place in drawn)}
    asked = Asked(
        "judged queries",
        [judged.queries[name] for name in names],
        [judged.qrels[name] for name in names],
    )
    return SearchTest({name: text for name, text in texts.items() if name in shown}, [asked])


def chosen_share(found: dict[float, list[Values]]) -> float:
    """The smallest share with a significant gain, else the best one, on every other question.

    Weights that stay close to the old ones lose less on other kinds of queries.
    """
    before, *others = (
        numpy.concatenate([values[::2] for values in found[one]]) for one in (0.0, *SHARES)
    )
    gains = [gain(MEASURE, before, after, 0) for after in others]
    significant = [share for share, one in zip(SHARES, gains, strict=True) if one.is_significant]
    best = max(zip(gains, SHARES, strict=True), key=lambda pair: pair[0].after)[1]
    return significant[0] if significant else best


def _verdict(
    share: float, test: SearchTest, found: dict[float, list[Values]], sts: Sequence[Gain]
) -> Verdict:
    """The verdict on the questions that were not used to choose the share."""
    before, after = ([values[1::2] for values in found[one]] for one in (0.0, share))
    return Verdict(
        share,
        gain(MEASURE, numpy.concatenate(before), numpy.concatenate(after), 0),
        {
            asked.kind: gain(MEASURE, old, new, 0)
            for asked, old, new in zip(test.asked, before, after, strict=True)
        },
        next(iter(sts), None),
    )


def _mean(old: dict[str, Any], new: dict[str, Any], share: float) -> dict[str, Any]:
    """The weighted mean of the weights; non-float tensors are the new model's."""
    return {
        name: old[name].lerp(tensor, share) if tensor.is_floating_point() else tensor
        for name, tensor in new.items()
    }


def _cosines(encoder: Encoder, examples: Examples) -> Values:
    left, right = columns_of(encoder.encode_documents, examples)
    cosines: Values = (left * right).sum(axis=1, dtype=numpy.float64)
    return cosines
