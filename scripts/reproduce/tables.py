"""The tables of RESULTS.md: every system that can run here, on every available data set.

The text between the figures is written here; the figures are measured.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from scripts.reproduce.page import difference, interval, provenance, replace_section, short, table
from scripts.shared.corpora import film_titles
from semsearch.datasets import (
    RetrievalSet,
    StsSet,
    load_retrieval_set,
    load_sts_set,
    retrieval_names,
    sts_names,
)
from semsearch.encoders import load_encoder
from semsearch.errors import DatasetNotFoundError
from semsearch.evaluation import (
    Aggregation,
    IrEvaluation,
    StsEvaluation,
    evaluate_retrieval,
    evaluate_sts,
    load_pair_scorer,
    load_rankers,
)
from semsearch.evaluation.intervals import randomised_difference
from semsearch.evaluation.published import PublishedRow, published_rows
from semsearch.evaluation.rankers import IndexRanker
from semsearch.records import SearchMode
from semsearch.search.queries import Fusion

MEASURES = ("nDCG@10", "RR@10", "R@100", "AP")

#: Other poolings of the bundled model's transformer; its own is the mean.
POOLINGS = ("minilm@cls", "minilm@max", "minilm@pooler")


#: Systems that are also measured on an index of passages.
INDEXED = ("bm25", "minilm", "hybrid:minilm")

#: Splits besides the test split, which is not always available.
OTHER_SPLITS = {"sick": ("trial",)}


def write_tables(file: Path, glove: Path | None, parts: Sequence[str]) -> None:
    """Measure these parts, and write each into its section of a Markdown file."""
    words = [] if glove is None else [f"glove:{glove}", f"glove:{glove}@sif"]
    for part in parts:
        name = f"tables --part {part}"
        text = PARTS[part](words)
        replace_section(file, name, f"{text}\n\n{provenance('tables', '--part', part)}")


def _sts(words: Sequence[str]) -> str:
    sets, missing = _here(sts_names(), load_sts_set)
    scorers = [load_pair_scorer(spec) for spec in ("hashing", *words, *POOLINGS, "minilm")]
    sts = [evaluate_sts(dataset, scorers) for dataset in sets]
    apart = [
        f"{result.dataset} {result.spearman.value - result.published:+.2f}"
        for one in sts
        for result in one.results
        if result.published is not None
    ]
    parts = [
        "## Comparison of encoders: semantic textual similarity",
        SYSTEMS,
        "Spearman's correlation of the cosine with the gold scores x 100, with 95 % bootstrap "
        "intervals. All pairs of a year together, as in the papers:",
        _sts_table(sts, Aggregation.ALL),
        _sizes(sts),
        "The mean over the subsets of a year, a different measure:",
        _sts_table(
            [one for one in sts if len(one.dataset.subsets) > 1], Aggregation.MEAN, published=False
        ),
        "`minilm` minus each other system on the same pairs (paired bootstrap):",
        _sts_differences(sts),
        "Differences from the published figures, and what could not be run:",
        _remarks(apart, STS_REMARKS, missing),
    ]
    return "\n\n".join(parts)


def _retrieval(words: Sequence[str]) -> str:
    sets, missing = _here(retrieval_names(), load_retrieval_set)
    others = [*words, *POOLINGS, *(f"hybrid:{spec}" for spec in words[:1])]
    rankers = load_rankers([*INDEXED, "hashing", *others])
    whole = [
        evaluate_retrieval(retrieval, rankers, MEASURES, whole_documents=True) for retrieval in sets
    ]
    indexed = [
        evaluate_retrieval(retrieval, rankers[: len(INDEXED)], MEASURES) for retrieval in sets
    ]
    apart = [
        f"{result.dataset} {result.mean.value - result.published:+.2f} (nDCG@10)"
        for one in whole
        for result in one.results
        if result.published is not None
    ]
    parts = [
        "## Comparison of encoders: retrieval",
        SYSTEMS,
        "Whole documents, truncated at the encoder's limit (`semsearch eval ir "
        "--whole-documents`); means over queries x 100 with 95 % bootstrap intervals. Hybrid "
        "rankings hold 100 documents, the others 1,000.",
        *(_ir_table(one) for one in whole),
        "nDCG@10 of each system minus that of `bm25` on the same queries (randomisation test):",
        _ir_differences(whole),
        "The same documents in an index, split into passages and searched as by `semsearch query` "
        "(`semsearch eval ir` without `--whole-documents`), and the difference of nDCG@10 from "
        "that of whole documents on the same queries (randomisation test):",
        _indexed_table(whole, indexed),
        "Differences from the published figures, and what could not be run:",
        _remarks(apart, IR_REMARKS, missing),
    ]
    return "\n\n".join(parts)


def _fusion(words: Sequence[str]) -> str:
    del words
    sets, _ = _here(retrieval_names(), load_retrieval_set)
    encoder = load_encoder("minilm")
    rankers = load_rankers(["bm25", "minilm"], {"minilm": encoder}, precision="auto")
    for fusion in Fusion:
        mode = SearchMode.HYBRID
        rankers.append(IndexRanker(f"hybrid ({fusion.value})", mode, encoder, fusion=fusion))
    evaluations = [
        evaluate_retrieval(retrieval, rankers, MEASURES[:1])
        for retrieval in (*sets, film_titles(Path(os.environ["SEMSEARCH_DATA"])))
    ]
    rows = []
    for system in evaluations[0].runs:
        row = [f"`{system}`"]
        for one in evaluations:
            values = {name: one.per_query[name][MEASURES[0]] for name in one.runs}
            better = max(("bm25", "minilm"), key=lambda name: values[name].mean())
            cell = f"{values[system].mean():.2f}"
            if system.startswith("hybrid"):
                cell += f" ({difference(randomised_difference(values[system], values[better]))})"
            row.append(cell)
        rows.append(row)
    names = [f"{one.dataset.name} ({len(one.dataset.queries)})" for one in evaluations]
    parts = [
        "## Hybrid search: which fusion",
        "nDCG@10 x 100 of passages in an index, searched as by `semsearch query` in its default "
        "precision; beside each fusion, its difference from the better of its two sides on the "
        "same queries (randomisation test). The data sets, with their numbers of queries: those "
        "above, and descriptions of 22,303 films, found by the titles of 500. `zscores` is the "
        "mean of both sides' standard scores, `rrf` is reciprocal rank fusion.",
        table(["system", *names], rows),
    ]
    return "\n\n".join(parts)


def _here(names, load) -> tuple[list, list[str]]:
    """The available test sets, with SICK's trial set, and the names of the missing ones."""
    found, missing = [], []
    for name in names:
        for split in ("test", *OTHER_SPLITS.get(name, ())):
            try:
                found.append(load(name, split))
            except DatasetNotFoundError:
                missing.append(f"{name} {split}")
    return found, missing


def _sts_table(
    evaluations: list[StsEvaluation], aggregation: Aggregation, *, published: bool = True
) -> str:
    sets = [_set_name(one) for one in evaluations]
    rows = []
    for system in evaluations[0].scores:
        found = [
            result.spearman
            for one in evaluations
            for result in one.results
            if result.system == system and result.aggregation is aggregation
        ]
        rows.append([f"`{short(system)}`", *map(interval, found)])
    for row in published_rows("sts") if published else []:
        values = [_published(row, one.dataset) for one in evaluations]
        if any(values):
            rows.append([f"*published: {row.title} ({row.source})*", *values])
    return table(["system", *sets], rows)


def _published(row: PublishedRow, dataset: StsSet) -> str:
    value = row.score(dataset.name, dataset.split, len(dataset.pairs))
    return "" if value is None else f"{value:.2f}"


def _set_name(evaluation: StsEvaluation) -> str:
    name, split = evaluation.dataset[:2]
    return name if split == "test" else f"{name} ({split})"


def _sizes(evaluations: list[StsEvaluation]) -> str:
    sizes = []
    for one in evaluations:
        size = f"{_set_name(one)} {len(one.dataset.pairs):,}"
        if one.dataset.unscored:
            size += f" ({one.dataset.unscored:,} more without gold scores are left out)"
        sizes.append(size)
    return f"Pairs: {'; '.join(sizes)}."


def _sts_differences(evaluations: list[StsEvaluation]) -> str:
    rows = {}
    for one in evaluations:
        for found in one.differences:
            if found.aggregation is Aggregation.ALL and found.system == "minilm":
                rows.setdefault(found.other, []).append(difference(found.difference))
    sets = [_set_name(one) for one in evaluations]
    return table(["minus", *sets], [[f"`{short(name)}`", *row] for name, row in rows.items()])


def _ir_table(evaluation: IrEvaluation) -> str:
    retrieval: RetrievalSet = evaluation.dataset
    rows = []
    for system in evaluation.runs:
        found = {one.measure: one for one in evaluation.results if one.system == system}
        published = found[MEASURES[0]].published
        rows.append(
            [
                f"`{short(system)}`",
                *(interval(found[measure].mean) for measure in MEASURES),
                "" if published is None else f"{published:.1f}",
            ]
        )
    title = (
        f"**{retrieval.name}**, {len(retrieval.documents):,} documents, "
        f"{len(retrieval.queries):,} queries"
    )
    return f"{title}\n\n{table(['system', *MEASURES, 'published nDCG@10'], rows)}"


def _ir_differences(evaluations: list[IrEvaluation]) -> str:
    rows = {}
    for one in evaluations:
        for found in one.differences:
            if found.measure == MEASURES[0] and found.other == "bm25":
                rows.setdefault(found.system, []).append(difference(found.difference))
    sets = [one.dataset.name for one in evaluations]
    return table(["system", *sets], [[f"`{short(name)}`", *row] for name, row in rows.items()])


def _indexed_table(whole: list[IrEvaluation], indexed: list[IrEvaluation]) -> str:
    rows = []
    for of_whole, of_index in zip(whole, indexed, strict=True):
        for system in of_index.runs:
            found = {one.measure: one.mean for one in of_index.results if one.system == system}
            values = [one.per_query[system][MEASURES[0]] for one in (of_index, of_whole)]
            rows.append(
                [
                    of_index.dataset.name,
                    f"`{system}`",
                    *(interval(found[measure]) for measure in MEASURES),
                    difference(randomised_difference(*values)),
                ]
            )
    return table(["set", "system", *MEASURES, f"{MEASURES[0]} - whole"], rows)


def _remarks(apart: Sequence[str], remarks: Sequence[str], missing: Sequence[str]) -> str:
    lines = [
        f"`minilm` against the published figures of the same weights: {', '.join(apart)}. "
        "Everything is computed in fp32.",
        *remarks,
    ]
    if missing:
        lines.append(f"Not available on this machine, so not measured: {', '.join(missing)}.")
    return "\n".join(f"- {line}" for line in lines)


SYSTEMS = (
    "`hashing` ignores meaning (texts are similar when they share words); `glove` averages word "
    "vectors, `@sif` weights them (Arora et al. 2017); `minilm@…` is the transformer of "
    "all-MiniLM-L6-v2 with a pooling that it was not trained for; `minilm` is the unchanged "
    "model, with mean pooling."
)

COMMON_REMARKS = (
    "GloVe: the published row uses the 840B vectors (300 dimensions, 2.2 million words). "
    "Available here are only the 9,163 most frequent words of the 6B vectors (50 dimensions): "
    "rarer words, which carry most of the meaning, are missing, and 50 dimensions distinguish "
    "less.",
    "`minilm@cls`, `@max` and `@pooler` take the place of the paper's untrained BERT-base, but "
    "are not comparable with it: these weights were trained with mean pooling, and their other "
    "poolings keep much of that.",
    "BERT-base, SBERT-NLI and the papers' cross-encoders could not be run: their weights are "
    "on the model hub, which is not reachable from here. With them, `--system "
    "bert-base-uncased@mean` and the like measure their rows.",
)
STS_REMARKS = (
    *COMMON_REMARKS,
    "STS13 is published without its SMT subset, here and in the published figures of MTEB.",
)
IR_REMARKS = (
    "SciFact: the published figure is BEIR's, whose test claims are those that the authors "
    "publish as `claims_validation.csv`; a document is its title and its abstract, truncated at "
    "256 tokens.",
    *COMMON_REMARKS,
    "Cranfield has no published figures for these systems; its grades are inverted so that "
    "higher is better, and its queries are numbered by position.",
)

#: The parts that `--part` selects.
PARTS = {"sts": _sts, "retrieval": _retrieval, "fusion": _fusion}
