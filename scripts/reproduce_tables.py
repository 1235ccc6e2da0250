"""RESULTS.md's tables: every system that can run here, on every set that is here.

The words between the figures are written here; no figure is.
"""

from __future__ import annotations

import platform
import shlex
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from bench_machine import cores, cpu_description

from semsearch.datasets import (
    RetrievalSet,
    load_retrieval_set,
    load_sts_set,
    retrieval_names,
    sts_names,
)
from semsearch.errors import DatasetNotFoundError
from semsearch.evaluation import (
    Aggregation,
    Difference,
    Interval,
    IrEvaluation,
    StsEvaluation,
    evaluate_retrieval,
    evaluate_sts,
    load_pair_scorer,
    load_rankers,
)
from semsearch.evaluation.published import published_rows

PACKAGES = ("openvino", "torch", "transformers", "sentence-transformers", "ir_measures", "scipy")
MEASURES = ("nDCG@10", "RR@10", "R@100", "AP")
BEGIN, END = "<!-- {} begin: written by scripts/reproduce {} -->", "<!-- {} end -->"

#: Poolings of the bundled model's transformer; its own is the mean.
POOLINGS = ("minilm@cls", "minilm@max", "minilm@pooler")


def write_tables(file: Path, glove: Path | None) -> None:
    """Measure everything and put the tables into a Markdown file."""
    words = [] if glove is None else [f"glove:{glove}", f"glove:{glove}@sif"]
    systems = [*words, *POOLINGS, "minilm"]
    sts_sets, sts_missing = _here(sts_names(), load_sts_set)
    ir_sets, ir_missing = _here(retrieval_names(), load_retrieval_set)
    scorers = [load_pair_scorer(spec) for spec in ("hashing", *systems)]
    sts = [evaluate_sts(dataset, scorers) for dataset in sts_sets]
    hybrids = [f"hybrid:{spec}" for spec in (*words[:1], "minilm")]
    rankers = load_rankers(["bm25", "hashing", *systems, *hybrids])
    ir = [evaluate_retrieval(retrieval, rankers, MEASURES) for retrieval in ir_sets]
    replace_section(file, "tables", _page(sts, ir, [*sts_missing, *ir_missing]))


def replace_section(file: Path, name: str, text: str) -> None:
    """Put a section into a file, in the place of the one of that name, or at its end."""
    begin, end = BEGIN.format(name, name), END.format(name)
    section = f"{begin}\n{text.strip()}\n{end}\n"
    page = file.read_text("utf-8") if file.exists() else "# Results\n"
    before, found, rest = page.partition(begin)
    after = rest.partition(end)[2].lstrip("\n")
    parts = [before.rstrip() + "\n", section, after] if found else [page.rstrip() + "\n", section]
    file.write_text("\n".join(part for part in parts if part), "utf-8")


def provenance(command: Sequence[str]) -> str:
    """What must be known to measure the same again."""
    versions = ", ".join(f"{package} {version(package)}" for package in PACKAGES)
    day = datetime.now(UTC).date()
    return (
        f"Measured on {day} by `{shlex.join(command)}` with Python {platform.python_version()}, "
        f"{versions}, on "
        f"{cores()} cores of {cpu_description()['cpu']}."
    )


def _here(names, load) -> tuple[list, list[str]]:
    found, missing = [], []
    for name in names:
        try:
            found.append(load(name, "test"))
        except DatasetNotFoundError:
            missing.append(name)
    return found, missing


def _page(sts: list[StsEvaluation], ir: list[IrEvaluation], missing: list[str]) -> str:
    parts = [
        "## The contrast of encoders",
        provenance(["scripts/reproduce", *sys.argv[1:]]),
        "`hashing` knows no meaning (texts are near when they share words); `glove` averages word "
        "vectors, `@sif` weights them (Arora et al. 2017); `minilm@…` is the transformer of "
        "all-MiniLM-L6-v2 with a pooling that it was not trained for; `minilm` is the model as it "
        "is, pooled by the mean.",
        "### Semantic textual similarity",
        "Spearman's correlation of the cosine with the gold scores x 100, with 95 % bootstrap "
        "intervals. All pairs of a year together, as in the papers:",
        _sts_table(sts, Aggregation.ALL),
        _sizes(sts),
        "The mean over the sub-sets of a year, which is another figure:",
        _sts_table(
            [one for one in sts if len(one.dataset.subsets) > 1], Aggregation.MEAN, published=False
        ),
        "By how much `minilm` is above each other system on the same pairs (paired bootstrap):",
        _sts_differences(sts),
        "### Retrieval",
        "Documents whole, cut where the encoder stops reading, ranked by exact search; means over "
        "queries x 100 with 95 % bootstrap intervals.",
        *(_ir_table(one) for one in ir),
        "By how much each system is above `bm25` in nDCG@10 on the same queries (randomisation "
        "test):",
        _ir_differences(ir),
        "### Where ours differ from the published figures, and what could not be run",
        _remarks(sts, ir, missing),
    ]
    return "\n\n".join(parts)


def _sts_table(
    evaluations: list[StsEvaluation], aggregation: Aggregation, *, published: bool = True
) -> str:
    sets = [one.dataset.name for one in evaluations]
    rows = []
    for system in evaluations[0].scores:
        found = [
            result.spearman
            for one in evaluations
            for result in one.results
            if result.system == system and result.aggregation is aggregation
        ]
        rows.append([f"`{_short(system)}`", *map(_interval, found)])
    for row in published_rows("sts") if published else []:
        values = [f"{row.scores[name]:.2f}" if name in row.scores else "" for name in sets]
        if any(values):
            rows.append([f"*published: {row.title} ({row.source})*", *values])
    return _table(["system", *sets], rows)


def _sizes(evaluations: list[StsEvaluation]) -> str:
    sizes = []
    for one in evaluations:
        size = f"{one.dataset.name} {len(one.dataset.pairs):,}"
        if one.dataset.unscored:
            size += f" ({one.dataset.unscored:,} more without gold are left out)"
        sizes.append(size)
    return f"Pairs: {'; '.join(sizes)}."


def _sts_differences(evaluations: list[StsEvaluation]) -> str:
    rows = {}
    for one in evaluations:
        for found in one.differences:
            if found.aggregation is Aggregation.ALL and found.system == "minilm":
                rows.setdefault(found.other, []).append(_difference(found.difference))
    sets = [one.dataset.name for one in evaluations]
    return _table(["minus", *sets], [[f"`{_short(name)}`", *row] for name, row in rows.items()])


def _ir_table(evaluation: IrEvaluation) -> str:
    retrieval: RetrievalSet = evaluation.dataset
    rows = []
    for system in evaluation.runs:
        found = {one.measure: one for one in evaluation.results if one.system == system}
        published = found[MEASURES[0]].published
        rows.append(
            [
                f"`{_short(system)}`",
                *(_interval(found[measure].mean) for measure in MEASURES),
                "" if published is None else f"{published:.1f}",
            ]
        )
    title = (
        f"**{retrieval.name}**, {len(retrieval.documents):,} documents, "
        f"{len(retrieval.queries):,} queries"
    )
    return f"{title}\n\n{_table(['system', *MEASURES, 'published nDCG@10'], rows)}"


def _ir_differences(evaluations: list[IrEvaluation]) -> str:
    rows = {}
    for one in evaluations:
        for found in one.differences:
            if found.measure == MEASURES[0] and found.other == "bm25":
                rows.setdefault(found.system, []).append(_difference(found.difference))
    sets = [one.dataset.name for one in evaluations]
    return _table(["system", *sets], [[f"`{_short(name)}`", *row] for name, row in rows.items()])


def _remarks(sts: list[StsEvaluation], ir: list[IrEvaluation], missing: list[str]) -> str:
    apart = [
        f"{result.dataset} {result.spearman.value - result.published:+.2f}"
        for one in sts
        for result in one.results
        if result.published is not None
    ]
    apart += [
        f"{result.dataset} {result.mean.value - result.published:+.2f} (nDCG@10)"
        for one in ir
        for result in one.results
        if result.published is not None
    ]
    lines = [
        f"`minilm` against the published figures of the same weights: {', '.join(apart)}. It "
        "computes in bf16 where the processor has it, the published figures are of fp32.",
        "SciFact: the published figure is BEIR's, whose test claims are those that the authors "
        "publish as `claims_validation.csv`; a document is its title and its abstract, cut at 256 "
        "tokens.",
        "GloVe: the published row is of the 840B vectors, 300 wide, of 2.2 million words. Here are "
        "only the 9,163 most frequent words of the 6B vectors, 50 wide: rarer words, which carry "
        "most of the meaning, are left out, and 50 dimensions tell less apart.",
        "`minilm@cls`, `@max`, `@pooler` stand where the paper has an untrained BERT-base. They "
        "are no such thing: these weights were trained with mean pooling, and their other poolings "
        "keep much of that.",
        "BERT-base, SBERT-NLI and the papers' cross-encoders could not be run: their weights are "
        "on the model hub, which cannot be reached from here. With them, `--system "
        "bert-base-uncased@mean` and the like measure their rows.",
        "STS13 is public without its SMT sub-set, here and in the published figures of MTEB.",
        "Cranfield has no published figures of these systems to stand beside; its grades are "
        "turned so that higher is better, and its queries are counted in their order.",
    ]
    if missing:
        lines.append(f"Not on this machine, and so not measured: {', '.join(missing)} (test).")
    return "\n".join(f"- {line}" for line in lines)


def _short(system: str) -> str:
    """A system without the folders of a path."""
    prefix, mark, path = system.rpartition("glove:")
    return f"{prefix}{mark}{Path(path).name}" if mark else system


def _interval(found: Interval) -> str:
    return f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]"


def _difference(found: Difference) -> str:
    p = "p < 0.001" if found.p < 0.001 else f"p = {found.p:.3f}"
    return f"{found.value:+.2f} [{found.low:+.2f}, {found.high:+.2f}], {p}"


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [headings, ["---", *["---:"] * (len(headings) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
