"""Training of cross-encoders, which read both texts at once (Reimers & Gurevych 2019, table 2).

For an index, hard negatives are mined: passages that it ranks high for a query but that are not
judged relevant (Gao, Dai & Callan 2021, Rethink Training of BERT Rerankers, section 3). Both scores
are combined, as few judgements teach little; the weight is chosen on held-out queries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy

from semsearch.encoders import load_reranker
from semsearch.encoders.model_folder import (
    FIRST_STAGE_WEIGHT,
    ModelFolder,
    set_first_stage_weight,
    transformer_folder,
)
from semsearch.encoders.torch_loading import check_weights, loading
from semsearch.errors import quantity
from semsearch.evaluation.datasets import RetrievalSet
from semsearch.evaluation.statistics import Values
from semsearch.index import Index
from semsearch.records import Hits
from semsearch.search.options import RERANK_DEPTH
from semsearch.search.reranking import combined
from semsearch.training.data import load_stages
from semsearch.training.encoder import announcement
from semsearch.training.examples import Examples, Kind, Notify, check_yes_no, split
from semsearch.training.measures import MEASURES, NDCG, Measured, gain, ndcg
from semsearch.training.run import Job, Task, Trained
from semsearch.training.stages import Settings, Stage

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder

    from semsearch.training.trainer import Trainee

BINARY = "binary cross-entropy"
#: Number of top hits of a query from which its negatives are drawn.
NEAREST = 50
HELD_OUT_PART = 0.2
#: Maximum number of held-out queries; reranking more takes long.
MAX_HELD_OUT = 200
#: Weights of the first stage to try.
WEIGHTS = tuple(round(0.1 * tenths, 1) for tenths in range(10))


@dataclass(frozen=True)
class CrossEncoding(Task):
    """Train a cross-encoder with one output on scored pairs, or on pairs labelled yes or no."""

    name = "cross-encoder"
    usage = 'semsearch query "a question" --rerank {path}'

    def prepare(self, settings: Settings, notify: Notify) -> Job:
        """Scored pairs, preferred to labelled ones."""
        kinds = (Kind.SCORED, Kind.LABELLED)
        found, tests = load_stages(settings, [kinds] * len(settings.data), (Kind.SCORED,), notify)
        stages = [stage._replace(loss=BINARY) for stage in found]
        for stage in stages:
            check_yes_no(stage.training)
            notify(announcement(stage))

        def finish(folder: Path, base: Path) -> Trained:
            model = load_cross_encoder(folder)
            found = [
                Measured(test.name, MEASURES[test.kind].name, _score(model, test)) for test in tests
            ]
            return Trained(folder, found)

        return Job(stages, cross_encoder_trainee, finish)


def _score(model: CrossEncoder, examples: Examples) -> float:
    """The score of a cross-encoder on a set, by the evaluators of sentence-transformers."""
    from sentence_transformers.cross_encoder import evaluation

    evaluator: Any = evaluation.CrossEncoderClassificationEvaluator
    metric = "average_precision"
    if examples.kind is Kind.SCORED:
        evaluator, metric = evaluation.CrossEncoderCorrelationEvaluator, "spearman"
    pairs = [list(pair) for pair in zip(*examples.texts, strict=True)]
    evaluate = evaluator(pairs, list(examples.targets), show_progress_bar=False, write_csv=False)
    return 100 * float(numpy.nan_to_num(evaluate(model)[metric]))


def cross_encoder_trainee(folder: Path, stage: Stage) -> Trainee:
    """The cross-encoder in a folder."""
    from sentence_transformers.cross_encoder.losses import BinaryCrossEntropyLoss

    from semsearch.training.trainer import text_trainee

    training, development, recipe, _ = stage
    model = load_cross_encoder(folder)
    vars(model.config).pop(FIRST_STAGE_WEIGHT, None)  # it was chosen for other weights
    model.max_seq_length = recipe.max_tokens or model.max_seq_length
    score = None if development is None else partial(_score, model, development)
    loss = BinaryCrossEntropyLoss(model)
    return text_trainee(model, loss, training, recipe, score, only_used_words=True)


def load_cross_encoder(folder: Path) -> CrossEncoder:
    """Load a cross-encoder in fp32, with a new head unless it has one with one output."""
    import torch
    from sentence_transformers import CrossEncoder
    from transformers import AutoConfig

    with loading(str(folder)):
        place = transformer_folder(folder)
        stored = AutoConfig.from_pretrained(place, local_files_only=True).num_labels
        options = {
            "use_safetensors": True,
            "ignore_mismatched_sizes": True,
            "dtype": "float32",
            "attn_implementation": None,  # transformers' default, whatever the model's files name
        }
        model = CrossEncoder(
            str(place),
            num_labels=1,
            trust_remote_code=False,
            local_files_only=True,
            model_kwargs=options,
        )
        check_weights(model, ModelFolder(str(folder), place), needs_pooler=False, needs_head=False)
    if stored != 1:  # the activation that is stored is for another head
        model.activation_fn = torch.nn.Sigmoid()
    return model


@dataclass(frozen=True)
class Reranking(Task):
    """Train a cross-encoder to rerank the hits of a search.

    Args:
        backend: the search whose hits it will rerank.
        judged: queries with judgements of its documents; a fifth of the queries is held out.
        negatives: passages per query that are not judged relevant, as negatives.
    """

    backend: Index
    judged: RetrievalSet
    negatives: int = 4

    name = "cross-encoder"
    usage = CrossEncoding.usage

    def prepare(self, settings: Settings, notify: Notify) -> Job:
        """One stage, without a development set: the held-out queries are the test."""
        recipe, judged = settings.recipe, self.judged
        named = [name for name in judged.queries if _relevant(judged.qrels[name])]
        what = "queries with relevant documents"
        trained, asked = split(named, recipe.seed, what, HELD_OUT_PART, MAX_HELD_OUT)
        training = self._mined(trained, recipe.seed)
        hits = self._searched(asked, RERANK_DEPTH)
        negatives = sum(target == 0 for target in training.targets)
        notify(
            f"{len(trained):,} queries to train on, with {len(training) - negatives:,} relevant "
            f"passages and {negatives:,} negatives from their top {NEAREST}; {len(asked):,} "
            "queries held out"
        )
        stage = Stage(training, None, recipe.for_kind(Kind.LABELLED), BINARY)
        wanted = [judged.qrels[name] for name in asked]
        finish = partial(choose_weight, judged.name, hits, wanted)
        return Job([stage], cross_encoder_trainee, finish)

    def _searched(self, names: Sequence[str], k: int) -> list[Hits]:
        return self.backend.search_many([self.judged.queries[name] for name in names], k)

    def _mined(self, names: Sequence[str], seed: int) -> Examples:
        """Each query with its relevant passages and with mined negatives."""
        chance = numpy.random.default_rng(seed)
        highest = max(max(self.judged.qrels[name].values()) for name in names)
        rows: list[tuple[str, str, float]] = []
        for name, hits in zip(names, self._searched(names, NEAREST), strict=True):
            query, relevant = self.judged.queries[name], _relevant(self.judged.qrels[name])
            ids = ", ".join("'{}'".format(one.replace("'", "''")) for one in relevant)
            (right,) = self.backend.search_many([query], len(relevant), where=f"id in ({ids})")
            rows += [(query, hit.text, relevant[hit.document_id] / highest) for hit in right]
            others = [hit.text for hit in hits if hit.document_id not in relevant]
            drawn = chance.permutation(len(others))[: self.negatives]
            rows += [(query, others[place], 0.0) for place in drawn]
        queries, passages, targets = (list(column) for column in zip(*rows, strict=True))
        return Examples(self.judged.name, Kind.SCORED, (queries, passages), targets)


def _relevant(judged: dict[str, int]) -> dict[str, int]:
    return {name: grade for name, grade in judged.items() if grade > 0}


def choose_weight(
    name: str, asked: Sequence[Hits], wanted: Sequence[dict[str, int]], folder: Path, base: Path
) -> Trained:
    """Choose the weight of the first stage on held-out queries, and measure reranking.

    The hits and judgements are those of each query; the weight is stored with the model.
    """
    del base
    reranker = load_reranker(folder)
    read = [reranker.score(hits.query, [hit.text for hit in hits]).tolist() for hits in asked]

    def reranked(weight: float) -> Values:
        rankings = []
        for hits, scores in zip(asked, read, strict=True):
            both = combined([hit.score for hit in hits], scores, weight)
            order = sorted(range(len(hits)), key=lambda place: -both[place])
            rankings.append([hits[place].document_id for place in order])
        return ndcg(rankings, wanted)

    tried = numpy.array([reranked(weight) for weight in WEIGHTS])
    # Each half is measured with the weight that is best on the other half.
    after = numpy.empty(len(asked))
    for half in (0, 1):
        best = tried[:, 1 - half :: 2].mean(axis=1).argmax()
        after[half::2] = tried[best, half::2]
    before = ndcg([[hit.document_id for hit in hits] for hits in asked], wanted)
    test = f"{name} ({quantity(len(asked), 'held-out query')}), reranked"
    found = gain(test, NDCG, before, after)
    weight = WEIGHTS[int(tried.mean(axis=1).argmax())]
    set_first_stage_weight(folder, weight)
    helps = "helps" if found.is_significant else "does not help significantly"
    verdict = f"reranking {helps}; weight of the first stage {weight:g}"
    return Trained(folder, [found], verdict)
