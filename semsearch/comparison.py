"""What several systems make of one text: neighbours side by side, sentences by each other.

One index with several embedding spaces answers the same query in each of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations, zip_longest
from pathlib import Path
from typing import NamedTuple

import numpy

from semsearch.arguments import check_texts, check_whole_number, shown
from semsearch.encoders import CROSS_ENCODER_PREFIX
from semsearch.encoders.specs import Precision
from semsearch.errors import ArgumentError, CombinationError
from semsearch.evaluation import CosineScorer, load_pair_scorer
from semsearch.evaluation.rankers import System
from semsearch.index import Index
from semsearch.notebook import table_html
from semsearch.protocols import Matrix, Reranker
from semsearch.records import Hit, Hits
from semsearch.retriever import Retriever

#: How far is looked for the rank that one system gives to what another shows.
DEPTH = 1000

#: With one or two shared documents, +1 and -1 are all that a rank correlation can well be.
MIN_SHARED = 3


class Agreement(NamedTuple):
    """How alike the first documents of two systems are."""

    left: str
    right: str
    shared: int  #: documents that both have
    #: Kendall's tau-b over the documents that either shows, by their ranks among the first
    #: `DEPTH` of each; what a system has not among these ties behind them (Fagin, Kumar &
    #: Sivakumar 2003). None when fewer than `MIN_SHARED` documents are shared.
    rank_correlation: float | None


class Neighbours(NamedTuple):
    """The first documents for a text, by several systems."""

    hits: dict[str, Hits]  #: by system
    found_by: Counter[str]  #: how many systems found a document, by its id
    agreements: list[Agreement]  #: of every two systems
    verdicts: dict[str, float]  #: a cross-encoder's score, by document id; empty without one

    def _repr_html_(self) -> str:
        """How notebooks show them: systems side by side, then what they share."""
        query = next((found.query for found in self.hits.values()), "")
        ranks = zip_longest(*self.hits.values())
        rows = [[str(rank), *map(self._cell, row)] for rank, row in enumerate(ranks, start=1)]
        agreements = [
            [left, right, str(shared), "" if correlation is None else f"{correlation:+.2f}"]
            for left, right, shared, correlation in self.agreements
        ]
        shared = ["system", "and", "documents shared", "rank correlation (Kendall)"]
        return table_html(query, ["", *self.hits], rows) + table_html("", shared, agreements)

    def _cell(self, hit: Hit | None) -> str:
        """A hit with a mark: * where all systems found it, + where more than one."""
        if hit is None:
            return ""
        systems = self.found_by[hit.document_id]
        mark = "* " if systems == len(self.hits) else "+ " if systems > 1 else ""
        verdict = self.verdicts.get(hit.document_id)
        judged = "" if verdict is None else f" (judge {verdict:.3f})"
        return f"{mark}{hit.score:.3f} {hit.title or hit.document_id}{judged}: {hit.text}"


class SentenceSimilarities(NamedTuple):
    """Every sentence against every other by one system, shape (sentences, sentences)."""

    system: str
    matrix: Matrix


def compare_neighbours(
    path: str | Path,
    text: str,
    systems: Sequence[str] = (),
    k: int = 10,
    *,
    where: str | None = None,
    judge: Reranker | None = None,
) -> Neighbours:
    """Search one index by several systems.

    Args:
        path: the index.
        text: the query.
        systems: embedding spaces of the index by name, ``bm25``, ``hybrid:SPACE``; none means all
            spaces, and BM25 where the index has it.
        k: how many documents each brings.
        where: a filter over metadata.
        judge: scores every passage that was found.

    Raises:
        ArgumentError: there is one system only, one is named twice, `k` is below 1, or one of
            these is of another type.
        SpaceError: the index has no such space.
    """
    k = check_whole_number("k", k, 1)
    systems = check_texts("systems", systems)
    if judge is not None and not callable(getattr(judge, "score", None)):
        raise ArgumentError(
            f"judge must be a reranker (load_reranker returns one), not {shown(judge)}"
        )
    with Index.open(path) as index:
        known = index.systems()
        systems = systems or known
        if len(known) < 2:
            raise CombinationError(
                f"{index.path} can be searched in one way only, by its space '{known[0]}'; add "
                f"another: semsearch index --add-space ENCODER --index {index.path}"
            )
        if len(set(systems)) < max(2, len(systems)):
            raise CombinationError("two or more different systems are compared; name them")
        deep = {name: _searched(index, name, text, max(k, DEPTH), where) for name in systems}
    hits = {name: Hits(text, found[:k]) for name, found in deep.items()}
    found_by = Counter(hit.document_id for found in hits.values() for hit in found)
    agreements = [
        _agreement(left, right, deep[left], deep[right], k) for left, right in combinations(deep, 2)
    ]
    return Neighbours(hits, found_by, agreements, _verdicts(judge, text, hits))


def compare_sentences(
    sentences: Sequence[str], systems: str | Sequence[str]
) -> list[SentenceSimilarities]:
    """Every sentence against every other, by each system.

    Args:
        sentences: two or more.
        systems: one or several encoders (the cosine), or ``cross-encoder:MODEL`` (its score; it
            reads the sentence of the row first).

    Raises:
        ArgumentError: there are fewer than two sentences, or one is empty.
        EncoderError: a system cannot be loaded.
    """
    sentences = check_texts("sentences", sentences)
    specs = check_texts("systems", [systems] if isinstance(systems, str) else systems)
    if not specs:
        raise CombinationError("name a system to compare the sentences with")
    if len(sentences) < 2 or not all(sentence.strip() for sentence in sentences):
        raise CombinationError("two or more sentences are compared, none of them empty")
    compared = []
    for spec in dict.fromkeys(specs):
        scorer = load_pair_scorer(spec, Precision.AUTO)
        if isinstance(scorer, CosineScorer):
            vectors = scorer.encoder.encode_documents(sentences)
            matrix = vectors @ vectors.T
        else:
            pairs = [(left, right) for left in sentences for right in sentences]
            matrix = scorer.score_pairs(pairs).reshape(len(sentences), -1)
        compared.append(SentenceSimilarities(spec, matrix))
    return compared


def _searched(index: Index, system: str, text: str, k: int, where: str | None) -> Hits:
    if CROSS_ENCODER_PREFIX in system:
        raise ArgumentError(f"{system} finds nothing by itself; ask for its verdict as the judge")
    mode, space, _, run = System.parsed(system)
    if run is not None:
        raise ArgumentError(f"{system}: systems are embedding spaces, bm25 and hybrid:SPACE")
    return Retriever(index, space).search(text, k, where=where, mode=mode)


def _agreement(left: str, right: str, left_hits: Hits, right_hits: Hits, k: int) -> Agreement:
    ranks = [{hit.document_id: hit.rank for hit in found} for found in (left_hits, right_hits)]
    shown = [{hit.document_id for hit in found[:k]} for found in (left_hits, right_hits)]
    shared = len(shown[0] & shown[1])
    if shared < MIN_SHARED:
        return Agreement(left, right, shared, None)
    from scipy.stats import kendalltau

    either = sorted(shown[0] | shown[1])
    compared = [[rank.get(name, len(rank) + 1) for name in either] for rank in ranks]
    return Agreement(left, right, shared, float(kendalltau(*compared).statistic))


def _verdicts(judge: Reranker | None, text: str, hits: dict[str, Hits]) -> dict[str, float]:
    """The best score of each document's passages: two systems may show different ones."""
    if judge is None:
        return {}
    found: list[Hit] = [hit for of_system in hits.values() for hit in of_system]
    passages = list(dict.fromkeys(hit.text for hit in found))
    scores = dict(zip(passages, judge.score(text, passages).tolist(), strict=True))
    verdicts: dict[str, float] = {}
    for hit in found:
        verdicts[hit.document_id] = max(verdicts.get(hit.document_id, -numpy.inf), scores[hit.text])
    return verdicts
