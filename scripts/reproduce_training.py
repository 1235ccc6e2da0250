"""RESULTS.md's section on training: each model made by `semsearch train`, several times by seed.

A model whose folder is there is not trained again, so that a run that was stopped goes on.
"""

from __future__ import annotations

import csv
import json
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from reproduce_page import difference, interval, provenance, replace_section, table

from semsearch.datasets import load_labelled_pairs, load_retrieval_set, load_sts_set
from semsearch.errors import DatasetNotFoundError
from semsearch.evaluation import (
    evaluate_retrieval,
    evaluate_sts,
    load_pair_scorer,
    load_rankers,
)
from semsearch.evaluation.published import published_rows

#: Pairs of SNLI's test set that are never trained on; the rest of dev and test is.
SNLI_HELD_OUT = 2000
YEARS = ("sts12", "sts13", "sts14", "sts15")


class Work(NamedTuple):
    """Where models and made data go, and how often each is trained."""

    folder: Path
    seeds: Sequence[int]

    def trained(self, name: str, *arguments: str) -> Iterator[Path]:
        """The model of each seed, trained now if it has not been."""
        for seed in self.seeds:
            folder = self.folder / f"{name}-{seed}"
            if not folder.exists():
                semsearch(
                    "train",
                    *arguments,
                    "--seed",
                    str(seed),
                    "--output",
                    str(folder),
                    "--overwrite",
                )
            yield folder


def write_training(file: Path, folder: Path, seeds: int, parts: Sequence[str]) -> None:
    """Train and measure, and put the section into a Markdown file."""
    folder.mkdir(parents=True, exist_ok=True)
    work = Work(folder, range(1, seeds + 1))
    text = [
        "## Training",
        provenance(),
        f"Seeds 1 to {seeds}; figures with ± are means of the runs and standard deviations.",
        *(PARTS[part](work) for part in parts),
    ]
    replace_section(file, "training", "\n\n".join(text))


def semsearch(*arguments: str) -> None:
    """Run a command as a person would, its words passed on."""
    subprocess.run([sys.executable, "-m", "semsearch", *arguments], check=True)


def siamese(work: Work) -> str:
    """STS Benchmark by the cosine."""
    recipe = ["--data", "stsbenchmark:train", "--loss", "cosine"]
    recipe += ["--epochs", "2", "--learning-rate", "3e-5"]
    folders = list(work.trained("sts", "siamese", *recipe))
    rows = [["`minilm`, as it comes", *map(_figure, _sts_scores("minilm"))]]
    runs = [_sts_scores(str(folder)) for folder in folders]
    for folder, run in zip(folders, runs, strict=True):
        rows.append([f"seed {folder.name.rpartition('-')[2]}", *map(_figure, run)])
    rows.append(["**trained**", *map(_spread, zip(*runs, strict=True))])
    rows += _published("SBERT-base trained", len(YEARS))
    return "\n\n".join(
        [
            "### A bi-encoder on STS Benchmark",
            f"`semsearch train siamese {' '.join(recipe)}`, from the bundled model. Spearman x 100 "
            "on the test set, and on the yearly sets (all pairs together), where it was not "
            "trained: what it forgets shows there. Pairs that also stand in the test or "
            "development sets were left out of training.",
            table(["", "stsbenchmark", *YEARS], rows),
        ]
    )


def cross_encoder(work: Work) -> str:
    """SNLI and then STS Benchmark, read together."""
    training, _ = _snli(work)
    recipe = ["--data", str(training), "--data", "stsbenchmark:train"]
    recipe += ["--epochs", "1", "--epochs", "4", "--learning-rate", "5e-5"]
    folders = list(work.trained("cross-encoder", "cross-encoder", *recipe))
    scores = [_sts_scores(f"cross-encoder:{folder}", ())[0] for folder in folders]
    rows = [
        [f"seed {folder.name.rpartition('-')[2]}", _figure(score)]
        for folder, score in zip(folders, scores, strict=True)
    ]
    rows += [["**trained**", _spread(scores)], *_published("cross-encoder trained", 0)]
    return "\n\n".join(
        [
            "### A cross-encoder on SNLI and STS Benchmark",
            f"`semsearch train cross-encoder {_shown(recipe, work)}` on the bundled model: "
            "first the three classes of SNLI (all of its development set and its test set but "
            f"{SNLI_HELD_OUT:,} pairs: the training set is not here), then, with a new head, the "
            "gold scores. Spearman x 100 on STS Benchmark's test set.",
            table(["", "stsbenchmark"], rows),
        ]
    )


def classifier(work: Work) -> str:
    """SNLI's classes from u, v and |u - v|."""
    training, held_out = _snli(work)
    recipe = ["--data", str(training), "--loss", "softmax", "--dev", str(held_out)]
    recipe += ["--evaluate-every", "1000000"]
    folders = list(work.trained("snli", "siamese", *recipe))
    accuracies = [_last_score(folder) for folder in folders]
    sts = [_sts_scores(str(folder), ())[0] for folder in folders]
    return "\n\n".join(
        [
            "### A bi-encoder on SNLI",
            f"`semsearch train siamese {_shown(recipe, work)}`, from the bundled model, one epoch "
            f"over the same pairs. On the {SNLI_HELD_OUT:,} that were held out the head tells "
            f"{_spread(accuracies)} % right (a third by chance); the encoder without it scores "
            f"{_spread(sts)} on STS Benchmark's test set. The head was scored once, at the end.",
        ]
    )


def reranking(work: Work) -> str:
    """What the cross-encoder does to a ranking."""
    reranker = work.folder / "cross-encoder-1"
    system = f"minilm+cross-encoder:{reranker}"
    return "\n\n".join(
        [
            "### The cross-encoder as a reranker",
            "The first 100 of `minilm`, ordered anew by the cross-encoder of seed 1, which has "
            "learnt how similar two sentences are, and nothing of questions and their answers. "
            "nDCG@10 x 100, and the paired difference:",
            _retrieval({"scifact": system, "cranfield": system}, work),
        ]
    )


def adaptation(work: Work) -> str:
    """What fitting to a corpus without labels does to a ranking."""
    adapted = {}
    for name in ("scifact", "cranfield"):
        corpus = work.folder / f"{name}.csv"
        if not corpus.exists():
            _write(corpus, ("id", "text"), load_retrieval_set(name).documents.items())
        folder = work.folder / f"{name}-adapted"
        if not folder.exists():
            semsearch(
                "train",
                "adapt",
                str(corpus),
                "--output",
                str(folder),
                "--keep-anyway",
                "--skip-bad-rows",
            )
        adapted[name] = str(folder)
    return "\n\n".join(
        [
            "### An encoder fitted to the corpus",
            "`semsearch train adapt CORPUS --keep-anyway`, once over the documents without their "
            "queries and judgements. nDCG@10 x 100, and the paired difference:",
            _retrieval(adapted, work),
        ]
    )


PARTS: dict[str, Callable[[Work], str]] = {
    "siamese": siamese,
    "cross-encoder": cross_encoder,
    "classifier": classifier,
    "reranking": reranking,
    "adaptation": adaptation,
}


def _sts_scores(system: str, years: Sequence[str] = YEARS) -> list[float]:
    """Spearman x 100 on STS Benchmark's test set and the years, all pairs together."""
    scorer = load_pair_scorer(system)
    scores = []
    for name in ("stsbenchmark", *years):
        evaluation = evaluate_sts(load_sts_set(name), [scorer])
        scores.append(evaluation.results[0].spearman.value)
    return scores


def _retrieval(systems: dict[str, str], work: Work) -> str:
    rows = []
    for name, system in systems.items():
        try:
            retrieval = load_retrieval_set(name)
        except DatasetNotFoundError:
            continue
        found = evaluate_retrieval(retrieval, load_rankers(["minilm", system]), ["nDCG@10"])
        before, after = (result.mean for result in found.results)
        [changed] = found.differences
        rows.append([name, interval(before), interval(after), difference(changed.difference)])
    return table(["", "before", "after", "difference"], rows)


def _snli(work: Work) -> tuple[Path, Path]:
    """SNLI's pairs to train on and those held out, as files."""
    training, held_out = work.folder / "snli-train.csv", work.folder / "snli-held-out.csv"
    if not held_out.exists():
        development, test = (load_labelled_pairs("snli", split) for split in ("dev", "test"))
        names = ("sentence1", "sentence2", "label")
        _write(training, names, chain(development, test[:-SNLI_HELD_OUT]))
        _write(held_out, names, test[-SNLI_HELD_OUT:])
    return training, held_out


def _write(file: Path, names: Sequence[str], rows) -> None:
    with file.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(names)
        writer.writerows(rows)


def _last_score(folder: Path) -> float:
    record = json.loads((folder / "training.json").read_text("utf-8"))
    return [entry["score"] for entry in record["results"][-1]["history"] if "score" in entry][-1]


def _published(title: str, empty: int) -> list[list[str]]:
    return [
        [f"*published: {row.title} ({row.source})*", f"{row.scores['stsbenchmark']:.2f}"]
        + [""] * empty
        for row in published_rows("sts")
        if title in row.title
    ]


def _shown(recipe: Sequence[str], work: Work) -> str:
    return " ".join(part.replace(f"{work.folder}/", "") for part in recipe)


def _figure(score: float) -> str:
    return f"{score:.2f}"


def _spread(scores: Sequence[float]) -> str:
    scores = list(scores)
    if len(scores) < 2:
        return f"{scores[0]:.2f}"
    return f"{statistics.mean(scores):.2f} ± {statistics.stdev(scores):.2f}"
