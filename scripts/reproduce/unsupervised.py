"""RESULTS.md: training without labels."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

from scripts.reproduce.page import difference, interval, table
from scripts.reproduce.raw_text import titled_texts
from scripts.reproduce.work import Work, figure, seed_of, snli, sts_scores, write_table
from semsearch.datasets import RetrievalSet, load_retrieval_set, load_sts_set
from semsearch.datasets.folder import data_folder
from semsearch.evaluation import evaluate_retrieval, evaluate_sts, load_pair_scorer, load_rankers

#: Options of the BERT trained from scratch.
PRETRAINING = ["--size", "tiny", "--vocabulary", "8000", "--steps", "3000"]
ADAPTATION = ["--steps", "60", "--skip-bad-rows"]
#: Sizes of a task made of titles and texts.
MADE_DOCUMENTS, MADE_QUERIES = 3_000, 300
DISTILLATION = ["--steps", "500"]
#: Fine-tuning of the BERT from scratch: a tiny model takes a higher learning rate.
FINE_TUNING = ["--learning-rate", "2e-4", "--dev", "stsbenchmark:dev", "--test", "stsbenchmark"]


def adaptation(work: Work) -> str:
    """How often adapting to a corpus without labels is kept, and its effect on rankings."""
    rows = []
    for task in map(_adapted_task, ("scifact", "cranfield", "films", "definitions")):
        runs = [_adapted(work, task, seed) for seed in work.seeds]
        kept = [str(folder) for folder in runs if folder is not None]
        rows.append([f"**{task.name}**", f"kept in {len(kept)} of {len(runs)} runs", ""])
        if kept:
            rankers = load_rankers(["minilm", *kept])
            found = evaluate_retrieval(task, rankers, ["nDCG@10"], whole_documents=True)
            rows += [
                [
                    f"seed {seed_of(Path(one.system))}",
                    interval(result.mean),
                    difference(one.difference),
                ]
                for result, one in zip(found.results[1:], found.differences, strict=False)
            ]
    return "\n\n".join(
        [
            "### An encoder adapted to the corpus",
            f"`semsearch train adapt CORPUS {' '.join(ADAPTATION)}` on the documents, without "
            "their queries and judgements: SciFact's and Cranfield's, and two tasks made from "
            f"{MADE_DOCUMENTS:,} films and {MADE_DOCUMENTS:,} WordNet definitions, found by "
            f"{MADE_QUERIES} titles and words, which the texts do not contain (a film is called "
            '"It" there). The command keeps no model without a significant gain. nDCG@10 x 100 of '
            "the models that were kept, and the paired difference from `minilm`:",
            table(["", "after", "difference"], rows),
        ]
    )


def _adapted(work: Work, task: RetrievalSet, seed: int) -> Path | None:
    """The adapted model; None if the command kept the old one."""
    corpus, folder = work.folder / f"{task.name}.csv", work.folder / f"{task.name}-adapted-{seed}"
    refused = folder.with_suffix(".refused")
    if not corpus.exists():
        titles = _titles(task)
        rows = ((name, titles.get(name, ""), text) for name, text in task.documents.items())
        write_table(corpus, ("id", "title", "text"), rows)
    if not folder.exists() and not refused.exists():
        command = ["train", "adapt", str(corpus), *ADAPTATION, "--seed", str(seed)]
        command += ["--output", str(folder), "--overwrite"]
        program = [sys.executable, "-m", "semsearch", *command]
        done = subprocess.run(program, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode and "\nnot kept, " not in f"\n{done.stdout}":
            raise SystemExit(f"training ended with exit status {done.returncode}")
        if done.returncode:
            refused.write_text(done.stdout, "utf-8")
    return folder if folder.exists() else None


def _adapted_task(name: str) -> RetrievalSet:
    """A published data set, or a task made of titles and texts."""
    if name in ("scifact", "cranfield"):
        return load_retrieval_set(name)
    drawn = random.Random(0).sample(_without_titles(name), MADE_DOCUMENTS)
    asked = range(MADE_QUERIES)
    return RetrievalSet(
        name,
        {str(place): text for place, (_, text) in enumerate(drawn)},
        {str(place): drawn[place][0] for place in asked},
        {str(place): {str(place): 1} for place in asked},
    )


def _titles(task: RetrievalSet) -> dict[str, str]:
    """The titles of documents that are no query's answer."""
    if task.name not in ("films", "definitions"):
        return {}
    of_text = {text: title for title, text in _without_titles(task.name)}
    return {
        name: of_text[text] for name, text in task.documents.items() if name not in task.queries
    }


def _without_titles(name: str) -> list[tuple[str, str]]:
    """Titles, and texts that do not contain them: a film is "It" in its own text."""
    titled = list(titled_texts(name))
    if name == "films":
        titled = [(title, text.replace(title, "It")) for title, text in titled]
    return [(title, text) for title, text in titled if title not in text]


def pretraining(work: Work) -> str:
    """A BERT trained from scratch, and the gain of each training step."""
    films = sorted(map(str, (data_folder() / "corpora" / "movies").glob("*.json")))
    reading = [*films, "--text-column", "extract", "--skip-bad-rows"]
    rows, held_out = [], ""
    for title, name, shorter in (
        ("random weights (one step)", "films-random", ["--steps", "1"]),
        ("pre-trained", "films-tiny", []),
    ):
        start = work.once(name, "pretrain", *reading, *PRETRAINING, *shorter)
        held_out = _tested(start, ["masked words found, %", "next sentence found, %"])
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
            f"the extracts of all films; on held-out text, {held_out}. Then `train siamese` with "
            "the softmax loss for one epoch on SNLI (the pairs above), and with the cosine loss "
            f"for four on STS Benchmark (`{' '.join(FINE_TUNING)}`). Spearman x 100 on its test "
            "set after each step, with mean pooling:",
            table(["", "pooled, untrained", "+ SNLI", "+ STS Benchmark"], rows),
        ]
    )


def distillation(work: Work) -> str:
    """Students of minilm: speed against quality."""
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
            "`--layers 3`, on extracts of films and their sentences. Speed is measured on "
            "SciFact's abstracts and claims, encoded and ranked; `semsearch eval ir --data scifact "
            "--system minilm --system STUDENT --whole-documents --report DIR` plots it against "
            "nDCG@10.",
            table(["", "texts/s", "stsbenchmark", "SciFact nDCG@10"], rows),
        ]
    )


def _tested(folder: Path, measures: list[str]) -> str:
    """The test scores that a model's training recorded."""
    record = json.loads((folder / "training.json").read_text("utf-8"))
    found = {test["measure"]: test for test in record["tests"]}
    return ", ".join(
        f"{measure} {figure(found[measure]['score'])}"
        + (f" ({figure(before)} before)" if (before := found[measure]["before"]) else "")
        for measure in measures
    )
