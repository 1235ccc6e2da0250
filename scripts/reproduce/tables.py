"""The tables of RESULTS.md that compare encoders: each system on each available data set.

They are printed in Markdown, with the text around them left out.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from scripts.shared.frame import data_folder
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
from semsearch.evaluation.datasets import (
    load_retrieval_set,
    load_sts_set,
    retrieval_names,
    sts_names,
)
from semsearch.evaluation.results import published_rows
from semsearch.evaluation.statistics import randomised_difference

MEASURES = ("nDCG@10", "RR@10", "R@100", "AP")
#: Other poolings of the bundled model's transformer; its own is the mean.
POOLINGS = ("minilm@cls", "minilm@max", "minilm@pooler")
#: Systems that are also measured on an index of passages.
INDEXED = ("bm25", "minilm", "hybrid:minilm")
#: Splits besides the test split, which is not always available.
OTHER_SPLITS = {"sick": ("trial",)}
GLOVE = "glove/glove.6B.50d.txt"


def main() -> None:
    """Print the tables of the requested parts."""
    parser = argparse.ArgumentParser(prog="scripts/reproduce/tables", description=__doc__)
    parser.add_argument("--part", action="append", choices=PARTS, help="only this one")
    glove = data_folder() / GLOVE
    words = [f"glove:{glove}"] if glove.is_file() else []
    for part in parser.parse_args().part or PARTS:
        for table in PARTS[part](words):
            print(f"{table}\n", flush=True)


def sts(words: Sequence[str]) -> Iterator[str]:
    """Spearman's correlations, and the paired differences from minilm."""
    scorers = [load_pair_scorer(spec) for spec in ("hashing", *words, *POOLINGS, "minilm")]
    found = [evaluate_sts(one, scorers) for one in available(sts_names(), load_sts_set)]
    yield sts_table(found, Aggregation.ALL, published=True)
    several = [one for one in found if len(one.dataset.subsets) > 1]
    if several:
        yield sts_table(several, Aggregation.MEAN, published=False)
    rows: dict[str, list[str]] = {}
    for one in found:
        for pair in one.differences:
            if pair.over is Aggregation.ALL and pair.system == "minilm":
                rows.setdefault(pair.other, []).append(difference(pair.difference))
    yield table(
        ["minus", *map(sts_name, found)], ([short(name), *row] for name, row in rows.items())
    )


def sts_table(found: list[StsEvaluation], aggregation: Aggregation, *, published: bool) -> str:
    """A row for each system, and for each published one."""
    rows = []
    for system in found[0].scores:
        values = [
            interval(result.estimate)
            for one in found
            for result in one.results
            if result.system == system and result.over is aggregation
        ]
        rows.append([short(system), *values])
    for row in published_rows("sts") if published else []:
        scores = [
            row.score(one.dataset.name, one.dataset.split, len(one.dataset.pairs)) for one in found
        ]
        if any(scores):
            values = ["" if score is None else f"{score:.2f}" for score in scores]
            rows.append([f"*published: {row.title} ({row.source})*", *values])
    return table(["system", *map(sts_name, found)], rows)


def sts_name(evaluation: StsEvaluation) -> str:
    name, split = evaluation.dataset[:2]
    return name if split == "test" else f"{name} ({split})"


def retrieval(words: Sequence[str]) -> Iterator[str]:
    """Whole documents, the differences from BM25, and the same documents as passages."""
    sets = available(retrieval_names(), load_retrieval_set)
    others = [*words, *POOLINGS, *(f"hybrid:{spec}" for spec in words[:1])]
    rankers = load_rankers([*INDEXED, "hashing", *others])
    whole = [evaluate_retrieval(one, rankers, MEASURES, whole_documents=True) for one in sets]
    for one in whole:
        rows = []
        for system in one.runs:
            of = {result.over: result for result in one.results if result.system == system}
            published = of[MEASURES[0]].published
            means = [interval(of[measure].estimate) for measure in MEASURES]
            rows.append([short(system), *means, f"{published:.1f}" if published else ""])
        yield f"**{one.dataset.name}**\n\n" + table(["system", *MEASURES, "published"], rows)
    changes: dict[str, list[str]] = {}
    for one in whole:
        for pair in one.differences:
            if pair.over == MEASURES[0] and pair.other == "bm25":
                changes.setdefault(pair.system, []).append(difference(pair.difference))
    names = [one.dataset.name for one in whole]
    yield table(["system", *names], ([short(name), *row] for name, row in changes.items()))
    yield table(["set", "system", *MEASURES, "- whole"], indexed(whole, rankers[: len(INDEXED)]))


def indexed(whole: list[IrEvaluation], rankers: Sequence[Any]) -> Iterator[list[str]]:
    """Rows of systems on an index of passages, beside those on whole documents."""
    for before in whole:
        after = evaluate_retrieval(before.dataset, rankers, MEASURES)
        for system in after.runs:
            of = {one.over: one.estimate for one in after.results if one.system == system}
            values = [one.per_query[system][MEASURES[0]] for one in (after, before)]
            change = difference(randomised_difference(*values))
            means = [interval(of[measure]) for measure in MEASURES]
            yield [before.dataset.name, short(system), *means, change]


PARTS: dict[str, Callable[[Sequence[str]], Iterator[str]]] = {"sts": sts, "retrieval": retrieval}


def available(names: Iterable[str], load: Callable[[str, str], Any]) -> list[Any]:
    """The test sets that are in the data folder, with SICK's trial set."""
    found = []
    for name in names:
        for split in ("test", *OTHER_SPLITS.get(name, ())):
            try:
                found.append(load(name, split))
            except DatasetNotFoundError:
                print(f"not available, so not measured: {name} {split}\n")
    return found


def short(system: str) -> str:
    """A system's name as code, without the folders of a path."""
    prefix, mark, path = system.rpartition("glove:")
    return f"`{prefix}{mark}{Path(path).name}`" if mark else f"`{system}`"


def interval(found: Interval) -> str:
    return f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]"


def difference(found: Difference) -> str:
    relation = "" if found.p_shown[0] in "<≤" else "= "
    return f"{found.value:+.2f} [{found.low:+.2f}, {found.high:+.2f}], p {relation}{found.p_shown}"


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [headings, ["---", *["---:"] * (len(headings) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    main()
