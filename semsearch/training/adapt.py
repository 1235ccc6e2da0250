"""Fit an encoder to an unlabelled corpus, and keep the result only if it passes a test.

Titles, or sentences taken out of their context, serve as questions, with in-batch and mined hard
negatives (Henderson et al. 2017). The new weights are averaged with the old ones (Wortsman et al.
2022, Robust fine-tuning of zero-shot models), with the smallest share of the new ones that helps
significantly. Whether it helps, and whether the result is kept, is decided on other kinds of
questions: the user's own, with judgements, or made from held-out documents; and on STS Benchmark.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass, replace
from functools import partial
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy
from numpy.random import default_rng

from semsearch.encoders.model_folder import ModelFolder
from semsearch.encoders.torch_loading import quiet_transformers
from semsearch.encoders.torch_models import TorchEncoder
from semsearch.errors import ArgumentError, TrainingError
from semsearch.evaluation.datasets import RetrievalSet
from semsearch.evaluation.statistics import Values
from semsearch.protocols import Encoder
from semsearch.records import Document
from semsearch.training.data import found_sts
from semsearch.training.encoder import encoder_trainee, load_plain
from semsearch.training.examples import (
    MIN_DOCUMENTS,
    Examples,
    Kind,
    Notify,
    distinct_documents,
    sentences,
    split,
)
from semsearch.training.measures import MEASURES, NDCG, encoder_outcomes, gain, gold_of, ndcg
from semsearch.training.run import Job, Task, Trained
from semsearch.training.stages import Loss, Recipe, Settings, Stage

if TYPE_CHECKING:
    from semsearch.training.trainer import Trainee

HELD_OUT_PART = 0.1
#: Maximum number of training questions (one per document); from more, a random sample is drawn.
MAX_TRAINED = 50_000
#: Maximum number of distractors: passages besides those asked for.
MAX_OTHERS = 1_000
#: Minimum number of queries of one kind for an evaluation.
MIN_ASKED = 4
#: Hard negatives are among this many nearest passages, and score less than the positive by this
#: part of its score (de Souza P. Moreira et al. 2024, NV-Retriever, section 3).
DEPTH, MARGIN = 50, 0.05
#: Shares of the new weights to try, in ascending order.
SHARES = (0.25, 0.5, 1.0)
#: Largest drop of the STS Benchmark score (x 100) that its 95 % interval may include.
STS_MARGIN = 1.0
#: Minimum words of a sentence that serves as a question, and of one that is halved.
MIN_WORDS, MIN_HALVED = 4, 8
#: Number of context sentences on each side of the one taken out.
AROUND = 4
#: Number of words in a keyword question.
KEYWORDS = 4


class Question(NamedTuple):
    """A query, the passage that answers it, and the text of the whole document."""

    query: str
    passage: str
    document: str


@dataclass(frozen=True)
class Adaptation(Task):
    """Fit an encoder to an unlabelled corpus.

    Args:
        documents: the corpus.
        data_name: name of the corpus in messages.
        judged: queries with judgements of these documents, to evaluate on; None holds out a tenth
            of the documents and makes queries from them.
    """

    documents: Iterable[Document]
    data_name: str
    judged: RetrievalSet | None = None

    name = "adapt"
    recipe = Recipe(batch_size=32)

    def prepare(self, settings: Settings, notify: Notify) -> Job:
        """One stage, without a development set: the model to keep is chosen at the end."""
        seed = settings.recipe.seed
        documents = distinct_documents(self.documents)
        trained = questions(documents, seed)
        what = "different documents with a title of their own or two sentences"
        if self.judged is None:
            trained, held = split(trained, seed, what, HELD_OUT_PART)
            texts, others = ([one.document for one in part] for part in (held, trained))
            asked = made_queries(texts, others, seed)
        elif len(trained) < MIN_DOCUMENTS:
            raise TrainingError(f"training needs at least {MIN_DOCUMENTS} {what}")
        else:
            asked = [judged_queries(self.judged, documents, seed)]
        drawn = default_rng(seed).permutation(len(trained))[:MAX_TRAINED]
        columns = [trained[place].query for place in drawn], [trained[n].passage for n in drawn]
        kinds = " and ".join(f"{len(one.queries):,} {one.name}" for one in asked)
        notify(f"{len(drawn):,} questions to train on; evaluated on {kinds}")
        training = Examples(self.data_name, Kind.POSITIVE, columns, [])
        recipe = settings.recipe.for_kind(Kind.TRIPLETS)
        stage = Stage(training, None, recipe, Loss.RANKING.value)
        return Job([stage], adapted_trainee, partial(self._finish, asked, notify))

    def _finish(
        self, asked: Sequence[RetrievalSet], notify: Notify, folder: Path, base: Path
    ) -> Trained:
        """The average of the old and new weights, with the share that `chosen_share` returns."""
        probes = found_sts(["stsbenchmark"], "dev", notify)
        old = load_plain(base).state_dict()
        encoder = TorchEncoder(ModelFolder(str(folder), folder))
        new = {name: tensor.clone() for name, tensor in encoder.model.state_dict().items()}
        values, cosines = {}, {}
        for share in (0.0, *SHARES):
            encoder.model.load_state_dict(_mean(old, new, share))
            values[share] = query_scores(encoder, asked)
            cosines[share] = [encoder_outcomes(encoder.encode_documents, one) for one in probes]
        share = chosen_share(values)
        # The questions that were not used to choose the share.
        before, after = ([one[1::2] for one in values[place]] for place in (0.0, share))
        names = [one.name for one in asked]
        if len(names) > 1:
            names.append("all queries")
            before, after = ([*one, numpy.concatenate(one)] for one in (before, after))
        tests = [
            gain(f"{self.data_name}, {name}", NDCG, *both)
            for name, *both in zip(names, before, after, strict=True)
        ]
        objections = [] if tests[-1].is_significant else ["the gain is not significant"]
        fallen = [one.data for one in tests[: len(asked)] if one.score < (one.before or 0)]
        objections += [f"the score on {name} fell" for name in fallen]
        for probe, was, now in zip(probes, cosines[0.0], cosines[share], strict=True):
            tests.append(gain(probe.name, MEASURES[Kind.SCORED], was, now, gold_of(probe)))
            if (tests[-1].low or 0) < -STS_MARGIN:
                objections.append(f"the score on {probe.name} may fall by more than {STS_MARGIN:g}")
        if objections:
            return Trained(folder, tests, f"not kept: {', '.join(objections)}", is_kept=False)
        averaged = folder.with_name("averaged")
        encoder.model.load_state_dict(_mean(old, new, share))
        with quiet_transformers():
            encoder.model.save_pretrained(str(averaged))
        return Trained(averaged, tests, f"kept, with {share:.0%} of the new weights")


def adapted_trainee(folder: Path, stage: Stage) -> Trainee:
    """The encoder in a folder; the texts have hard negatives, and its prompts, as in search."""
    from datasets import Dataset
    from sentence_transformers.util import mine_hard_negatives

    queries, passages = stage.training.texts
    model = load_plain(folder)
    with redirect_stderr(StringIO()):  # its progress bars
        mined = mine_hard_negatives(
            Dataset.from_dict({"anchor": queries, "positive": passages}),
            model,
            range_max=DEPTH,
            relative_margin=MARGIN,
            num_negatives=1,
            verbose=False,
        )
    nearest = dict(zip(mined["anchor"], mined["negative"], strict=True))
    # A question whose nearest passages are all too near gets that of another question.
    others = passages[1:] + passages[:1]
    negatives = [nearest.get(query, other) for query, other in zip(queries, others, strict=True)]
    query, document = (model.prompts.get(name) or "" for name in ("query", "document"))
    columns = (query, queries), (document, passages), (document, negatives)
    texts = tuple([prompt + text for text in column] for prompt, column in columns)
    triplets = replace(stage.training, kind=Kind.TRIPLETS, texts=texts)
    return encoder_trainee(folder, stage._replace(training=triplets), attention_dropout=False)


def _mean(old: dict[str, Any], new: dict[str, Any], share: float) -> dict[str, Any]:
    """The weighted mean of the weights; non-float tensors are the new model's."""
    return {
        name: old[name].lerp(tensor, share) if tensor.is_floating_point() else tensor
        for name, tensor in new.items()
    }


def chosen_share(values: Mapping[float, list[Values]]) -> float:
    """The smallest share with a significant gain, else the best one, on every other question.

    Weights that stay close to the old ones lose less on other kinds of queries.
    """
    before, *others = (
        numpy.concatenate([one[::2] for one in values[share]]) for share in (0.0, *SHARES)
    )
    gains = [gain("", NDCG, before, after) for after in others]
    significant = [share for share, one in zip(SHARES, gains, strict=True) if one.is_significant]
    best = max(zip(gains, SHARES, strict=True), key=lambda pair: pair[0].score)[1]
    return significant[0] if significant else best


def made_queries(texts: Sequence[str], others: Sequence[str], seed: int) -> list[RetrievalSet]:
    """Queries made from texts, of kinds that are not trained on; the others are distractors."""
    documents = {str(place): text for place, text in enumerate((*texts, *others[:MAX_OTHERS]))}
    made = {
        "keyword queries": keywords(list(documents.values()))[: len(texts)],
        "half-sentence queries": fragments(texts, seed),
    }
    asked = []
    for kind, queries in made.items():
        fit = {str(place): query for place, query in enumerate(queries) if query}
        if len(fit) >= MIN_ASKED:
            asked.append(RetrievalSet(kind, documents, fit, {name: {name: 1} for name in fit}))
    if not asked:
        raise TrainingError("the texts are too short to make queries; give --queries and --qrels")
    return asked


def judged_queries(judged: RetrievalSet, documents: Sequence[Document], seed: int) -> RetrievalSet:
    """The queries with a relevant document among these, their documents and distractors."""
    texts = {one.id: one.text for one in documents if one.id is not None}
    queries = {
        name: query
        for name, query in judged.queries.items()
        if any(grade > 0 and one in texts for one, grade in judged.qrels[name].items())
    }
    if len(queries) < MIN_ASKED:
        raise ArgumentError(
            f"at least {MIN_ASKED} queries need a relevant document in this corpus; "
            f"{judged.name} has {len(queries)}"
        )
    wanted = {one for name in queries for one in judged.qrels[name]}
    others = [one for one in texts if one not in wanted]
    drawn = default_rng(seed).permutation(len(others))[:MAX_OTHERS]
    wanted.update(others[place] for place in drawn)
    passages = {name: text for name, text in texts.items() if name in wanted}
    return RetrievalSet("judged queries", passages, queries, judged.qrels)


def query_scores(encoder: Encoder, asked: Sequence[RetrievalSet]) -> list[Values]:
    """NDCG@10 of each query, by kind; all kinds are about the same documents."""
    from sentence_transformers.util import semantic_search

    names, texts = zip(*asked[0].documents.items(), strict=True)
    vectors = encoder.encode_documents(texts)
    found = []
    for one in asked:
        queries = encoder.encode_queries(list(one.queries.values()))
        hits = semantic_search(queries, vectors, top_k=10)
        ranked = [[names[int(hit["corpus_id"])] for hit in best] for best in hits]
        found.append(ndcg(ranked, [one.qrels[name] for name in one.queries]))
    return found


def questions(documents: Iterable[Document], seed: int) -> list[Question]:
    """One question per document that allows any.

    It is the title, if the text does not repeat it, or a sentence drawn by the seed, with the text
    around it as the passage; if a document allows both, one of them is drawn.
    """
    found = []
    for place, document in enumerate(documents):
        generator = default_rng([seed, place])
        text = " ".join(document.text.split())
        title = " ".join((document.title or "").split())
        choices = []
        if title and title.casefold() not in text.casefold():
            choices.append(Question(title, text, text))
        parts = sentences(text)
        fit = [number for number, part in enumerate(parts) if len(part.split()) >= MIN_WORDS]
        if len(parts) > 1 and fit:
            taken = int(generator.choice(fit))
            context = parts[max(0, taken - AROUND) : taken] + parts[taken + 1 : taken + AROUND + 1]
            choices.append(Question(parts[taken], " ".join(context), text))
        if choices:
            found.append(choices[int(generator.integers(len(choices)))])
    return found


def keywords(texts: Sequence[str]) -> list[str]:
    """The most specific words of each text, in text order; empty if there are too few.

    Specific words are frequent in the text and occur in few others (tf-idf, Spärck Jones 1972).
    """
    listed = [re.findall(r"\w{3,}", text.lower()) for text in texts]
    spread = Counter(word for words in listed for word in set(words))
    found = []
    for words in listed:
        counts = Counter(words)
        ordered = sorted(
            counts, key=lambda word: (-counts[word] * math.log(len(texts) / spread[word]), word)
        )
        best = set(ordered[:KEYWORDS])
        found.append(" ".join(sorted(best, key=words.index)) if len(best) == KEYWORDS else "")
    return found


def fragments(texts: Sequence[str], seed: int) -> list[str]:
    """Half of the words of one sentence per text, both drawn; empty if all sentences are short."""
    found = []
    for place, text in enumerate(texts):
        generator = default_rng([seed, place])
        long = [words for part in sentences(text) if len(words := part.split()) >= MIN_HALVED]
        words = long[int(generator.integers(len(long)))] if long else []
        kept = numpy.sort(generator.permutation(len(words))[: len(words) // 2])
        found.append(" ".join(words[place] for place in kept.tolist()))
    return found
