"""Compares systems: their search results for one text, or their similarities of sentences.

The systems of an index are its embedding spaces and BM25.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations, zip_longest
from pathlib import Path
from typing import NamedTuple

import numpy

from semsearch.encoders import CROSS_ENCODER_PREFIX
from semsearch.encoders.specs import Precision
from semsearch.errors import ArgumentError, check_texts, check_whole_number, quoted, shown
from semsearch.evaluation import CosineScorer, load_pair_scorer
from semsearch.evaluation.rankers import System
from semsearch.index import Index
from semsearch.protocols import Matrix, Reranker
from semsearch.records import Hit, Hits

#: The depth to which the rank of another system's result is searched.
DEPTH = 1000

#: With one or two shared documents, a rank correlation is almost always +1 or -1.
MIN_SHARED = 3


class Agreement(NamedTuple):
    """The agreement of two systems on their top documents."""

    left: str
    right: str
    shared: int  #: the number of common documents
    #: Kendall's tau-b over the documents of either system, by their ranks among the first `DEPTH`
    #: of each; documents that a system does not have among these tie for the last rank (Fagin,
    #: Kumar & Sivakumar 2003). None if fewer than `MIN_SHARED` documents are shared.
    rank_correlation: float | None


class Neighbours(NamedTuple):
    """The top documents for a text, by system."""

    hits: dict[str, Hits]  #: by system
    found_by: Counter[str]  #: the number of systems that found a document, by id
    agreements: list[Agreement]  #: of all pairs of systems
    verdicts: dict[str, float]  #: scores of a cross-encoder by document id; empty without one

    def _repr_html_(self) -> str:
        """HTML for notebooks: systems side by side, then their agreement."""
        import pandas

        ranks = zip_longest(*self.hits.values())
        rows = [[rank, *map(self._cell, row)] for rank, row in enumerate(ranks, start=1)]
        shared = ["system", "and", "documents shared", "rank correlation (Kendall)"]
        tables = (
            pandas.DataFrame(rows, columns=["", *self.hits]),
            pandas.DataFrame(self.agreements, columns=shared),
        )
        return "".join(table.to_html(index=False) for table in tables)

    def _cell(self, hit: Hit | None) -> str:
        """A hit with a mark: * if all systems found it, + if more than one did."""
        if hit is None:
            return ""
        systems = self.found_by[hit.document_id]
        mark = "* " if systems == len(self.hits) else "+ " if systems > 1 else ""
        verdict = self.verdicts.get(hit.document_id)
        judged = "" if verdict is None else f" (judge {verdict:.3f})"
        return f"{mark}{hit.score:.3f} {hit.title or hit.document_id}{judged}: {hit.text}"


class SentenceSimilarities(NamedTuple):
    """The similarities of all sentences by one system, shape (sentences, sentences)."""

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
    """Search one index with several systems.

    Args:
        path: the index.
        text: the query.
        systems: embedding spaces of the index by name, ``bm25``, ``hybrid:SPACE``; by default all
            spaces, and BM25 if the index has it.
        k: the number of documents per system.
        where: a filter over metadata.
        judge: a cross-encoder that scores all passages found.

    Raises:
        ArgumentError: there is only one system, one is named twice, `k` is below 1, or an argument
            has the wrong type.
        SpaceError: the space does not exist.
    """
    k = check_whole_number("k", k, 1)
    systems = check_texts("systems", systems)
    if judge is not None and not callable(getattr(judge, "score", None)):
        raise ArgumentError(
            f"judge must be a reranker (load_reranker returns one), not {shown(judge)}"
        )
    with Index.open(path) as index:
        known = index.info().systems
        systems = systems or known
        if len(known) < 2:
            raise ArgumentError(
                f"{index.path} has only one system, its space '{known[0]}'; add another: "
                f"semsearch configure --add-space ENCODER --index {quoted(str(index.path))}"
            )
        if len(set(systems)) < max(2, len(systems)):
            raise ArgumentError("a comparison needs two or more different systems; name them")
        all_hits = {name: _searched(index, name, text, max(k, DEPTH), where) for name in systems}
    hits = {name: Hits(text, found[:k]) for name, found in all_hits.items()}
    found_by = Counter(hit.document_id for found in hits.values() for hit in found)
    agreements = [
        _agreement(left, right, all_hits[left], all_hits[right], k)
        for left, right in combinations(all_hits, 2)
    ]
    return Neighbours(hits, found_by, agreements, _verdicts(judge, text, hits))


def compare_sentences(
    sentences: Sequence[str], systems: str | Sequence[str]
) -> list[SentenceSimilarities]:
    """Compare all sentences with each other, by each system.

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
        raise ArgumentError("name a system to compare the sentences with")
    if len(sentences) < 2 or not all(sentence.strip() for sentence in sentences):
        raise ArgumentError("a comparison needs two or more sentences, none of them empty")
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
        raise ArgumentError(f"{system} can only score the results of others; use it as the judge")
    mode, space, _, run = System.parsed(system)
    if run is not None:
        raise ArgumentError(
            f"{system} is not a system of an index: use embedding spaces, bm25 or hybrid:SPACE"
        )
    return index.search(text, k, space=space, where=where, mode=mode)


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
    """The best score among each document's passages, which may differ between systems."""
    if judge is None:
        return {}
    found: list[Hit] = [hit for of_system in hits.values() for hit in of_system]
    passages = list(dict.fromkeys(hit.text for hit in found))
    scores = dict(zip(passages, judge.score(text, passages).tolist(), strict=True))
    verdicts: dict[str, float] = {}
    for hit in found:
        verdicts[hit.document_id] = max(verdicts.get(hit.document_id, -numpy.inf), scores[hit.text])
    return verdicts
