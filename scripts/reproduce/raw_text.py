"""RESULTS.md: an encoder trained from raw text, and the gain of each training stage."""

from __future__ import annotations

import json
import random
import statistics
from collections.abc import Iterator
from pathlib import Path

from scripts.reproduce.page import difference, table
from scripts.reproduce.work import Work, figure, spread, sts_scores, write_table
from semsearch.datasets import load_retrieval_set, load_sts_set
from semsearch.datasets.folder import data_folder
from semsearch.evaluation import evaluate_sts, load_pair_scorer

SIZE = ["--size", "tiny"]
#: Numbers of labelled training pairs, with the epochs for each.
LABELS = {500: "20", 5749: "4"}
#: Learning rates; each model's is chosen on the development set.
RATES = ("2e-4", "5e-4", "1e-3")


def raw_text(work: Work) -> str:
    """Random weights, then contrastive training, then training on labels."""
    corpus = _corpus(work)
    pooled: dict[str, list[float]] = {}
    labelled: dict[tuple[str, int], list[Path]] = {}
    for seed in map(str, work.seeds):
        made = _stages(work, corpus, seed)
        for title, model in made.items():
            pooled.setdefault(title, []).append(_test_score(model))
            for count in LABELS:
                found = _fine_tuned(work, model, count, seed)
                labelled.setdefault((title, count), []).append(found)
    rows = [
        [title, spread(scores)]
        + [spread([_test_score(model) for model in labelled[title, count]]) for count in LABELS]
        for title, scores in pooled.items()
    ]
    return "\n\n".join(
        [
            "### From raw text to a sentence encoder",
            "`semsearch train pretrain CORPUS --size tiny --steps 0` for random weights, then "
            "`semsearch train contrast CORPUS`, then `semsearch train siamese` on pairs of STS "
            "Benchmark's training set; CORPUS holds films, SciFact's abstracts and WordNet's "
            "definitions with their titles. The learning rate of `siamese` is the best of "
            f"{', '.join(RATES)} on the development set, for each model. Spearman x 100 on the "
            "test set:",
            table(["", "pooled", *(f"{count:,} labelled pairs" for count in LABELS)], rows),
            "The paired gain of `contrast` over random weights, after training on the same labels:",
            table(["", *(f"{count:,} labelled pairs" for count in LABELS)], _gains(labelled, work)),
        ]
    )


def _stages(work: Work, corpus: Path, seed: str) -> dict[str, Path]:
    """The models before training on labels, by title."""
    seeded = ["--seed", seed]
    start = work.once(f"random-{seed}", "pretrain", str(corpus), *SIZE, "--steps", "0", *seeded)
    contrasted = work.once(
        f"random-contrast-{seed}", "contrast", str(corpus), "--base", str(start), *seeded
    )
    return {"random weights": start, "random weights, then contrast": contrasted}


def _fine_tuned(work: Work, model: Path, count: int, seed: str) -> Path:
    """The model trained on labels, with the learning rate that is best on the development set."""
    file = work.folder / f"labels-{count}.csv"
    if not file.exists():
        pairs = load_sts_set("stsbenchmark", "train").subsets["stsbenchmark"]
        drawn = random.Random(1).sample(list(pairs), min(count, len(pairs)))
        rows = ((pair.left, pair.right, pair.gold) for pair in drawn)
        write_table(file, ("sentence1", "sentence2", "score"), rows)
    recipe = ["--data", str(file), "--scale", "0", "5", "--epochs", LABELS[count]]
    recipe += ["--dev", "stsbenchmark:dev", "--test", "stsbenchmark", "--seed", seed]
    tried = [
        work.once(
            f"{model.name}-{count}-{rate}",
            *("siamese", "--base", str(model), *recipe, "--learning-rate", rate),
        )
        for rate in RATES
    ]
    return max(tried, key=_development_score)


def _gains(labelled: dict[tuple[str, int], list[Path]], work: Work) -> list[list[str]]:
    test = load_sts_set("stsbenchmark")
    rows, values = [], []
    for place, seed in enumerate(work.seeds):
        found = []
        for count in LABELS:
            scorers = [
                load_pair_scorer(str(labelled[title, count][place]))
                for title in ("random weights", "random weights, then contrast")
            ]
            (one,) = evaluate_sts(test, scorers).differences
            found.append(one.difference)
        values.append([one.value for one in found])
        rows.append([f"seed {seed}", *map(difference, found)])
    means = (statistics.mean(column) for column in zip(*values, strict=True))
    return [*rows, ["mean", *(f"+{figure(mean)}" if mean > 0 else figure(mean) for mean in means)]]


def _corpus(work: Work) -> Path:
    """Titles and texts of three corpora, one after the other."""
    file = work.folder / "raw-text.csv"
    if not file.exists():
        rows = ((number, *row) for number, row in enumerate(_titled()))
        write_table(file, ("id", "title", "text"), rows)
    return file


def _titled() -> Iterator[tuple[str, str]]:
    yield from titled_texts("films")
    yield from titled_texts("definitions")
    for text in load_retrieval_set("scifact").documents.values():
        yield "", text


def titled_texts(name: str) -> Iterator[tuple[str, str]]:
    """Titles and extracts of films, or words and WordNet's definitions."""
    folder = data_folder() / "corpora"
    if name == "films":
        for films in sorted((folder / "movies").glob("*.json")):
            for film in json.loads(films.read_text("utf-8")):
                if film.get("extract"):
                    yield film["title"], film["extract"]
    else:
        with (folder / "wordnet_definitions.jsonl").open(encoding="utf-8") as lines:
            for line in lines:
                entry = json.loads(line)
                yield entry["lemma"], entry["text"]


def _test_score(model: Path) -> float:
    return sts_scores(str(model), [load_sts_set("stsbenchmark")])[0]


def _development_score(model: Path) -> float:
    record = json.loads((model / "training.json").read_text("utf-8"))
    history = record["results"][0]["history"]
    return max(one["score"] for one in history if one["step"] and "score" in one)
