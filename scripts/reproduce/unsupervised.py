"""What RESULTS.md shows of training without labels."""

from __future__ import annotations

import json
from pathlib import Path

from scripts.reproduce.page import table
from scripts.reproduce.work import (
    Work,
    figure,
    retrieval_table,
    seed_of,
    snli,
    sts_scores,
    write_table,
)
from semsearch.datasets import load_retrieval_set, load_sts_set
from semsearch.datasets.folder import data_folder
from semsearch.evaluation import evaluate_retrieval, evaluate_sts, load_pair_scorer, load_rankers

#: The BERT from scratch.
PRETRAINING = ["--size", "tiny", "--vocabulary", "8000", "--steps", "3000"]
ADAPTATION = ["--steps", "60", "--keep-anyway", "--skip-bad-rows"]
DISTILLATION = ["--steps", "500"]
#: What it learns from afterwards; a tiny model takes larger steps.
FINE_TUNING = ["--learning-rate", "2e-4", "--dev", "stsbenchmark:dev", "--test", "stsbenchmark"]


def adaptation(work: Work) -> str:
    """What fitting to a corpus without labels does to a ranking."""
    adapted, told = {}, []
    for name in ("scifact", "cranfield"):
        corpus = work.folder / f"{name}.csv"
        if not corpus.exists():
            write_table(corpus, ("id", "text"), load_retrieval_set(name).documents.items())
        folders = work.trained(f"{name}-adapted", "adapt", str(corpus), *ADAPTATION)
        adapted[name] = [str(folder) for folder in folders]
        told += [
            f"{name}, seed {seed_of(folder)}: {_tested(folder, ['MRR x 100'])}"
            for folder in folders
        ]
    return "\n\n".join(
        [
            "### An encoder fitted to the corpus",
            f"`semsearch train adapt CORPUS {' '.join(ADAPTATION)}` on the documents, without "
            "their queries and judgements. nDCG@10 x 100, and the paired difference:",
            retrieval_table(adapted),
            "What it said itself, by questions made of held-out documents:",
            "\n".join(f"- {line}" for line in told),
        ]
    )


def pretraining(work: Work) -> str:
    """A BERT from scratch, and what each step of its training brings."""
    films = sorted(map(str, (data_folder() / "corpora" / "movies").glob("*.json")))
    reading = [*films, "--text-column", "extract", "--skip-bad-rows"]
    rows, told = [], ""
    for title, name, shorter in (
        ("random weights (one step)", "films-random", ["--steps", "1"]),
        ("pre-trained", "films-tiny", []),
    ):
        start = work.once(name, "pretrain", *reading, *PRETRAINING, *shorter)
        told = _tested(start, ["masked words found, %", "next sentence found, %"])
        training, _ = snli(work)
        classes = ["--base", str(start), "--data", str(training), "--loss", "softmax"]
        inferring = work.once(f"{name}-snli", "siamese", *classes, *FINE_TUNING)
        scores = ["--base", str(inferring), "--data", "stsbenchmark:train", "--loss", "cosine"]
        similar = work.once(f"{name}-sts", "siamese", *scores, *FINE_TUNING)
        test = [load_sts_set("stsbenchmark")]
        after = [sts_scores(str(folder), test)[0] for folder in (start, inferring, similar)]
        rows.append([title, *map(figure, after)])
    return "\n\n".join(
        [
            "### A BERT from scratch",
            f"`semsearch train pretrain FILMS --text-column extract {' '.join(PRETRAINING)}` on "
            f"the extracts of all films: held out, {told}. Then `train siamese` with the softmax "
            "loss for one epoch of SNLI (the pairs above), and with the cosine loss for four of "
            f"STS Benchmark (`{' '.join(FINE_TUNING)}`). Spearman x 100 on its test set after "
            "each step, vectors averaged:",
            table(["", "pooled, untrained", "+ SNLI", "+ STS Benchmark"], rows),
        ]
    )


def distillation(work: Work) -> str:
    """Students of minilm between speed and quality."""
    films = sorted(map(str, (data_folder() / "corpora" / "movies").glob("*.json")))
    reading = [*films, "--text-column", "extract", "--skip-bad-rows", *DISTILLATION]
    systems = {
        "`minilm`": "minilm",
        "static, no corpus": work.once("static", "distil", "minilm", "--static"),
        "static, films": work.once("films-static", "distil", "minilm", *reading, "--static"),
        "3 layers, films": work.once("films-3", "distil", "minilm", *reading, "--layers", "3"),
    }
    benchmark, scifact = load_sts_set("stsbenchmark"), load_retrieval_set("scifact")
    rows = []
    for title, system in systems.items():
        [sts] = evaluate_sts(benchmark, [load_pair_scorer(str(system))]).results
        rankers = load_rankers([str(system)])
        found = evaluate_retrieval(scifact, rankers, ["nDCG@10"], whole_documents=True)
        [ranked] = found.results
        rate = (len(scifact.documents) + len(scifact.queries)) / ranked.seconds
        rows.append([title, f"{rate:,.0f}", figure(sts.spearman.value), figure(ranked.mean.value)])
    return "\n\n".join(
        [
            "### Students of an encoder",
            f"`semsearch train distil minilm [FILMS {' '.join(DISTILLATION)}] --static` and "
            "`--layers 3`, on extracts of films and their sentences. Speed is that of SciFact's "
            "abstracts and claims, encoded and ranked; `semsearch eval ir --data scifact --system "
            "minilm --system STUDENT --whole-documents --report DIR` draws it against nDCG@10.",
            table(["", "texts/s", "stsbenchmark", "SciFact nDCG@10"], rows),
        ]
    )


def _tested(folder: Path, measures: list[str]) -> str:
    """What a model scored when it was made."""
    record = json.loads((folder / "training.json").read_text("utf-8"))
    found = {test["measure"]: test for test in record["tests"]}
    return ", ".join(
        f"{measure} {figure(found[measure]['score'])}"
        + (f" after {figure(before)}" if (before := found[measure]["before"]) else "")
        for measure in measures
    )
