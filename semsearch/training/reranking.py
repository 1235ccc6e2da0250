"""Training of a cross-encoder for an index on queries with judgements.

Hard negatives are mined: passages that the index ranks high for a query but that are not judged
relevant (Gao, Dai & Callan 2021, Rethink Training of BERT Rerankers, section 3). Judgements are few
and the first stage contributes what they do not teach, so both scores are combined; the weight is
chosen on held-out queries and stored with the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy

from semsearch.datasets import RetrievalSet
from semsearch.encoders import load_reranker
from semsearch.encoders.model_folder import set_first_stage_weight
from semsearch.evaluation.statistics import Values
from semsearch.protocols import SearchBackend
from semsearch.records import Hit, Hits
from semsearch.search.options import RERANK_DEPTH
from semsearch.search.reranking import combined
from semsearch.texts import quantity
from semsearch.training.cross_encoder import CrossEncoding
from semsearch.training.examples import Examples, Kind, Notify
from semsearch.training.gains import Gain, gain
from semsearch.training.scoring import Measured
from semsearch.training.search_test import ndcg
from semsearch.training.sentences import held_out
from semsearch.training.stages import Settings, Stage

#: Number of top hits of a query from which its negatives are drawn.
NEAREST = 50
HELD_OUT_PART = 0.2
#: Maximum number of held-out queries; reranking more takes long.
MAX_HELD_OUT = 200
#: Weights of the first stage to try.
WEIGHTS = tuple(round(0.1 * tenths, 1) for tenths in range(10))


@dataclass
class Reranking(CrossEncoding):
    """Train a cross-encoder to rerank the hits of a search.

    Args:
        backend: the search whose hits it will rerank.
        judged: queries with judgements of its documents; a fifth of the queries is held out.
        negatives: passages per query that are not judged relevant, as negatives.
    """

    backend: SearchBackend
    judged: RetrievalSet
    negatives: int = 4
    #: The effect of reranking on the held-out queries, once it is measured.
    gain: Gain = field(init=False)
    #: The weight of the first stage.
    weight: float = field(init=False)
    _asked: list[Hits] = field(init=False)
    _wanted: list[dict[str, int]] = field(init=False)

    description = (
        "A cross-encoder, trained by semsearch from `{base}` to rerank the hits of an index. Its "
        "score is combined with that of the first stage."
    )

    def choices(self) -> dict[str, Any]:
        """The number of negatives."""
        return {"negatives": self.negatives}

    def stages(self, settings: Settings, notify: Notify) -> tuple[list[Stage], list[Examples]]:
        """One stage, without a development set: the held-out queries are the test."""
        (recipe,) = settings.recipes
        named = [
            name for name in self.judged.queries if any(_relevant(self.judged.qrels[name]).values())
        ]
        parts = held_out(
            len(named), recipe.seed, "queries with relevant documents", HELD_OUT_PART, MAX_HELD_OUT
        )
        trained = [named[place] for place in parts.trained]
        asked = [named[place] for place in parts.held_out]
        self._wanted = [self.judged.qrels[name] for name in asked]
        self._asked = self._searched(asked, RERANK_DEPTH)
        training = self._mined(trained, recipe.seed)
        negatives = sum(target == 0 for target in training.targets)
        notify(
            f"{len(trained):,} queries to train on, with {len(training) - negatives:,} relevant "
            f"passages and {negatives:,} negatives from their top {NEAREST}; {len(asked):,} "
            "queries held out"
        )
        return [Stage(training, None, recipe.for_kind(Kind.LABELLED))], []

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
        places = [f"{self.judged.name}, pair {number}" for number in range(1, len(rows) + 1)]
        return Examples(self.judged.name, Kind.SCORED, (queries, passages), places, targets)

    def finished(self, folder: Path, base: Path) -> Path:
        """Choose the weight of the first stage on the held-out queries."""
        del base
        reranker = load_reranker(folder)
        read = [reranker.score(hits.query, [hit.text for hit in hits]) for hits in self._asked]
        before = self._values(self._asked)
        tried = [
            self._values(
                [
                    _ranked(hits, combined([hit.score for hit in hits], scores.tolist(), weight))
                    for hits, scores in zip(self._asked, read, strict=True)
                ]
            )
            for weight in WEIGHTS
        ]
        self.weight = WEIGHTS[_best(tried, slice(None))]
        # Each half is measured with the weight that is best on the other half.
        after = numpy.empty_like(before)
        for half, other in (
            (slice(0, None, 2), slice(1, None, 2)),
            (slice(1, None, 2), slice(0, None, 2)),
        ):
            after[half] = tried[_best(tried, other)][half]
        self.gain = gain("nDCG@10", before, after, 0)
        set_first_stage_weight(folder, self.weight)
        return folder

    def _values(self, rankings: Sequence[Sequence[Hit]]) -> Values:
        return ndcg([[hit.document_id for hit in hits] for hits in rankings], self._wanted)

    def measured(
        self, folder: Path, base: Path, tests: Sequence[Examples], last: Stage
    ) -> list[Measured]:
        """NDCG@10 on the held-out queries, before and after reranking."""
        del folder, base, tests, last
        name = f"{self.judged.name} ({quantity(self.gain.queries, 'held-out query')})"
        return [
            Measured(f"{name}, not reranked", "nDCG@10 x 100", 100 * self.gain.before),
            Measured(f"{name}, reranked", "nDCG@10 x 100", 100 * self.gain.after),
        ]


def _relevant(judged: dict[str, int]) -> dict[str, int]:
    return {name: grade for name, grade in judged.items() if grade > 0}


def _ranked(hits: Hits, scores: Sequence[float]) -> list[Hit]:
    return [hit for _, hit in sorted(zip(scores, hits, strict=True), key=lambda pair: -pair[0])]


def _best(tried: Sequence[Values], rows: slice) -> int:
    return int(numpy.argmax([values[rows].mean() for values in tried]))
