"""Evaluates retrieval: how well systems rank relevant documents, with ir-measures."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations
from subprocess import CalledProcessError
from typing import TYPE_CHECKING, NamedTuple

import numpy

from semsearch.errors import ArgumentError, DatasetError, check_texts
from semsearch.evaluation.datasets import RetrievalSet
from semsearch.evaluation.pair_scorers import OnProgress, check_systems
from semsearch.evaluation.rankers import Collection, IndexRanker, Ranker
from semsearch.evaluation.results import PairedDifference, Result, published_value
from semsearch.evaluation.statistics import (
    Values,
    mean_interval,
    randomised_difference,
)
from semsearch.evaluation.trec import Run
from semsearch.index import Index
from semsearch.storage.words import parse_query

if TYPE_CHECKING:
    from ir_measures import Measure

logger = logging.getLogger(__name__)

#: Names as in ir-measures: RR is the reciprocal rank (its mean is MRR), AP's mean is MAP.
MEASURES = ("nDCG@10", "RR@10", "R@10", "R@100", "AP")
PUBLISHED_MEASURE = "nDCG@10"


class IrEvaluation(NamedTuple):
    """All systems on one set."""

    dataset: RetrievalSet
    runs: dict[str, Run]  #: by system
    per_query: dict[str, dict[str, Values]]  #: by system and measure, in the order of the queries
    results: list[Result]
    differences: list[PairedDifference]  #: of all pairs of systems
    whole_documents: bool = False  #: whether each document was one passage


def measures(names: Sequence[str]) -> list[Measure]:
    """Parse the names of measures.

    Raises:
        ArgumentError: no installed package computes a measure with this name, or there are none.
    """
    from ir_measures import DefaultPipeline, parse_measure

    names = check_texts("names", names)
    if not names:
        raise ArgumentError(f"name a measure, such as {', '.join(MEASURES)}")
    found = []
    for name in names:
        try:
            measure = parse_measure(name)
            measure.validate_params()  # type: ignore[no-untyped-call]
            is_computed = DefaultPipeline.supports(measure)  # type: ignore[no-untyped-call]
        except (NameError, ValueError, SyntaxError, AssertionError, KeyError, TypeError):
            is_computed = False
        if not is_computed or measure.params.get("cutoff", 1) < 1:  # trec_eval aborts at 0
            raise ArgumentError(
                f"unknown measure '{name}' (measures: {', '.join(MEASURES)}, and others of "
                "ir-measures)"
            )
        found.append(measure)
    return found


def evaluate_retrieval(
    retrieval: RetrievalSet,
    rankers: Sequence[Ranker],
    names: Sequence[str] = MEASURES,
    *,
    index: Index | None = None,
    whole_documents: bool = False,
    on_progress: OnProgress = lambda system, items, done, total: None,
) -> IrEvaluation:
    """Evaluate the rankings of systems on a retrieval set.

    Indexes are created as by `semsearch index`, searched as by `semsearch query`, and removed at
    the end; BM25 and hybrid search read operators in queries, as there. Intervals are from a
    bootstrap over the queries; differences are tested with a randomisation test.

    Args:
        retrieval: documents, queries and judgements.
        rankers: the systems.
        names: the measures, as named by ir-measures.
        index: an existing index of the documents; see `index_rankers`.
        whole_documents: store each document as one passage, truncated by the encoder, as in
            published evaluations; only then are published values part of the results.
        on_progress: called with the name of a system, "documents" (which are indexed) or
            "queries", how many are done, and of how many.

    Raises:
        ArgumentError: a measure is unknown, or two systems have the same name.
        DatasetError: a measure cannot be computed for these judgements.
    """
    rankers = check_systems("rankers", rankers)
    wanted = measures(names)
    if any(isinstance(ranker, IndexRanker) and ranker.reads_operators for ranker in rankers):
        _warn_of_operators(retrieval)
    runs, per_query = {}, {}
    results: list[Result] = []
    with Collection(
        retrieval, index, whole_documents=whole_documents, on_progress=on_progress
    ) as collection:
        for ranker in rankers:
            run, seconds = ranker.rank(collection)
            values = _measured(retrieval, run, wanted)
            runs[ranker.spec], per_query[ranker.spec] = run, values
            for name, of_queries in values.items():
                n, published = len(of_queries), None
                if name == PUBLISHED_MEASURE and whole_documents:
                    published = published_value(
                        "ir", ranker.spec, retrieval.name, retrieval.split, n
                    )
                mean = mean_interval(of_queries)
                precision = ranker.precision
                results.append(Result(name, ranker.spec, n, mean, seconds, published, precision))
    differences = []
    for other, system in combinations(runs, 2):
        for name, before in per_query[other].items():
            found = randomised_difference(per_query[system][name], before)
            differences.append(PairedDifference(name, system, other, found))
    return IrEvaluation(retrieval, runs, per_query, results, differences, whole_documents)


def _warn_of_operators(retrieval: RetrievalSet) -> None:
    """Say how many queries have operators."""
    parsed = map(parse_query, retrieval.queries.values())
    if count := sum(1 for query in parsed if query.phrases or query.excluded):
        logger.warning(
            "%s: quotes or minus signs are operators in %s of %s queries",
            retrieval.name,
            f"{count:,}",
            f"{len(retrieval.queries):,}",
        )


def _measured(retrieval: RetrievalSet, run: Run, wanted: Sequence[Measure]) -> dict[str, Values]:
    """The values of each measure x 100 in the order of the queries; 0 without results."""
    from ir_measures import iter_calc

    values = {str(measure): numpy.zeros(len(retrieval.queries)) for measure in wanted}
    # gdeval requires numbers as ids of queries, and ids of documents without white space.
    rows = {query: str(row) for row, query in enumerate(retrieval.queries)}
    ids: defaultdict[str, str] = defaultdict(lambda: str(len(ids)))
    # Packages of measures break ties in different ways; here ties keep the order of the run.
    # Compat gives documents that were not found a score of 0, and Judged needs one that was.
    ranked = {
        rows[query]: {
            ids[name]: float(len(found) - before)
            for before, name in enumerate(sorted(found, key=found.__getitem__, reverse=True))
        }
        for query, found in run.items()
        if found and query in rows
    }
    # pytrec_eval crashes at grades below -1, which no measure distinguishes from -1.
    qrels = {
        rows[query]: {ids[name]: max(-1, grade) for name, grade in grades.items()}
        for query, grades in retrieval.qrels.items()
    }
    try:
        for metric in iter_calc(wanted, qrels, ranked):
            # IPrec is NaN for queries without relevant documents, for which other measures are 0.
            value = 100 * numpy.nan_to_num(metric.value)
            values[str(metric.measure)][int(metric.query_id)] = value
    except (ValueError, ZeroDivisionError, CalledProcessError) as error:  # of a script in Perl
        shown = ", ".join(values)
        raise DatasetError(f"{retrieval.name} cannot be measured by {shown}: {error}") from error
    return values
