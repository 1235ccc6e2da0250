"""The training section of RESULTS.md: each model trained by `semsearch train`, once per seed.

A model whose folder exists is not trained again, so an interrupted run resumes. `cross-encoder`
needs the models of `siamese`, `reranking` those of `cross-encoder`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy

from scripts.reproduce.page import provenance, replace_section, table
from scripts.reproduce.raw_text import raw_text
from scripts.reproduce.translation import translation
from scripts.reproduce.unsupervised import adaptation, distillation, pretraining
from scripts.reproduce.work import (
    SNLI_HELD_OUT,
    Work,
    figure,
    retrieval_table,
    seed_of,
    semsearch,
    snli,
    spread,
    sts_scores,
    write_table,
)
from semsearch.datasets import StsSet, load_labelled_pairs, load_retrieval_set, load_sts_set
from semsearch.encoders import load_encoder
from semsearch.encoders.model_folder import first_stage_weight
from semsearch.evaluation.published import published_rows

INTRODUCTION = """## Training

Figures with ± are means and standard deviations of runs with different seeds, from 1 on."""
#: Pairs that the bi-encoder scores for the cross-encoder: each sentence with its NEAREST nearest
#: ones, and with one of the NEXT after these.
NEAREST, NEXT = 2, 98
#: Other pairs that it scores, by data set and split.
UNLABELLED = (
    ("snli", "dev"),
    ("quora", "dev"),
    *(("msrp", part) for part in ("train", "dev", "test")),
)
YEARS = ("sts12", "sts13", "sts14", "sts15")


def write_training(file: Path, folder: Path, seeds: int, parts: Sequence[str]) -> None:
    """Train and measure these parts, and write each into its section of a Markdown file."""
    folder.mkdir(parents=True, exist_ok=True)
    work = Work(folder, range(1, seeds + 1))
    replace_section(file, "training", INTRODUCTION)
    for part in parts:
        command = ("training", "--part", part)
        text = f"{PARTS[part](work)}\n\n{provenance(*command)}"
        replace_section(file, " ".join(command), text)


def siamese(work: Work) -> str:
    """A bi-encoder trained on STS Benchmark with the cosine loss."""
    recipe = ["--data", "stsbenchmark:train", "--loss", "cosine"]
    recipe += ["--epochs", "2", "--learning-rate", "3e-5", "--test", "stsbenchmark"]
    folders = work.trained("sts", "siamese", *recipe)
    benchmark = load_sts_set("stsbenchmark")
    years = [load_sts_set(year) for year in YEARS]
    unseen = [_unseen(year) for year in years]
    sets = [benchmark, *unseen, *years]
    rows = [["`minilm`, as it comes", *map(figure, sts_scores("minilm", sets))]]
    runs = [sts_scores(str(folder), sets) for folder in folders]
    for folder, run in zip(folders, runs, strict=True):
        rows.append([f"seed {seed_of(folder)}", *map(figure, run)])
    rows.append(["**trained**", *map(spread, zip(*runs, strict=True))])
    rows += _published("SBERT-base trained", len(sets) - 1)
    parts = "; ".join(f"{year.name}: {', '.join(sorted(year.subsets))}" for year in unseen)
    return "\n\n".join(
        [
            "### A bi-encoder on STS Benchmark",
            f"`semsearch train siamese {' '.join(recipe)}`, from the bundled model. Spearman x 100 "
            "on the test set, and on the yearly sets, all pairs together. Training pairs that also "
            "occur in the development or test set were left out.",
            "STS Benchmark's training set was itself drawn from the yearly sets, so their figures "
            "would hide forgetting. *Unseen* are the subsets from which it took no pairs "
            f"({parts}).",
            table(
                ["", "stsbenchmark", *(f"{year} unseen" for year in YEARS)]
                + [f"{year} whole" for year in YEARS],
                rows,
            ),
        ]
    )


def cross_encoder(work: Work) -> str:
    """A cross-encoder trained on the bi-encoder's scores of many pairs, then on STS Benchmark."""
    recipe = ["--data", str(_taught_pairs(work)), "--data", "stsbenchmark:train"]
    recipe += ["--epochs", "1", "--learning-rate", "1e-4"]
    recipe += ["--epochs", "3", "--learning-rate", "3e-5"]
    recipe += ["--dev", "stsbenchmark:dev", "--test", "stsbenchmark"]
    folders = work.trained("cross-encoder", "cross-encoder", *recipe)
    test = [load_sts_set("stsbenchmark")]
    scores = [sts_scores(f"cross-encoder:{folder}", test)[0] for folder in folders]
    rows = [
        [f"seed {seed_of(folder)}", figure(score)]
        for folder, score in zip(folders, scores, strict=True)
    ]
    rows += [["**trained**", spread(scores)], *_published("cross-encoder trained", 0)]
    return "\n\n".join(
        [
            "### A cross-encoder on STS Benchmark",
            f"`semsearch train cross-encoder {work.shown(recipe)}`, from the bundled model. "
            f"`{_taught_pairs(work).name}` holds pairs without their labels: SNLI (dev), Quora, "
            "MSR paraphrases, SICK, and each sentence of STS Benchmark's training set with its "
            f"{NEAREST} nearest and one of the next {NEXT}. Their scores are the cosines of the "
            "bi-encoder above (seed 1), so the training set is the only human-scored data. "
            "Spearman x 100 on the test set.",
            table(["", "stsbenchmark"], rows),
        ]
    )


def classifier(work: Work) -> str:
    """SNLI's labels predicted from u, v and |u - v|."""
    training, held_out = snli(work)
    recipe = ["--data", str(training), "--loss", "softmax", "--dev", str(held_out)]
    recipe += ["--evaluate-every", "1000000"]
    folders = work.trained("snli", "siamese", *recipe)
    accuracies = [_last_score(folder) for folder in folders]
    sts = [sts_scores(str(folder), [load_sts_set("stsbenchmark")])[0] for folder in folders]
    return "\n\n".join(
        [
            "### A bi-encoder on SNLI",
            f"`semsearch train siamese {work.shown(recipe)}`, from the bundled model, one epoch. "
            f"On the {SNLI_HELD_OUT:,} held-out pairs, the head classifies {spread(accuracies)} % "
            f"correctly (a third by chance); the encoder without it scores "
            f"{spread(sts)} on STS Benchmark's test set. The head was scored once, at the end.",
        ]
    )


def reranking(work: Work) -> str:
    """The effect of the cross-encoder on rankings."""
    reranker = work.folder / "cross-encoder-1"
    return "\n\n".join(
        [
            "### The cross-encoder as a reranker",
            "The first 100 results of `minilm`, reranked by the cross-encoder of seed 1, which was "
            "trained on the similarity of sentences, not on questions and their answers. "
            "nDCG@10 x 100, and the paired difference:",
            _reranked([reranker]),
        ]
    )


def questions(work: Work) -> str:
    """The effect on rankings of a cross-encoder trained on queries of that index."""
    files = _judged_index(work)
    recipe = ["--index", str(files["index"]), "--queries", str(files["queries"])]
    recipe += ["--qrels", str(files["qrels"]), "--epochs", "2", "--learning-rate", "1e-4"]
    recipe += ["--max-tokens", "160"]
    rerankers = work.trained("reranker", "cross-encoder", *recipe)
    systems = [f"minilm+cross-encoder:{reranker}" for reranker in rerankers]
    return "\n\n".join(
        [
            "### A cross-encoder trained to rerank",
            f"`semsearch train cross-encoder {work.shown(recipe)}`, from the bundled model, on "
            "SciFact's abstracts and training claims. The claims searched for here are different "
            "ones. The first 100 results of `minilm`, reranked by both scores; nDCG@10 x 100, and "
            "the paired difference:",
            retrieval_table({"scifact": systems}),
            "The command's own measurement, on a held-out fifth of the training claims:",
            "\n".join(f"- seed {seed_of(folder)}: {_held_out(folder)}" for folder in rerankers),
        ]
    )


PARTS: dict[str, Callable[[Work], str]] = {
    "siamese": siamese,
    "cross-encoder": cross_encoder,
    "classifier": classifier,
    "reranking": reranking,
    "questions": questions,
    "adaptation": adaptation,
    "pretraining": pretraining,
    "raw-text": raw_text,
    "distillation": distillation,
    "translation": translation,
}


def _reranked(rerankers: Sequence[Path]) -> str:
    """The table of minilm's rankings, reranked by each of them."""
    systems = [f"minilm+cross-encoder:{reranker}" for reranker in rerankers]
    return retrieval_table(dict.fromkeys(("scifact", "cranfield"), systems))


def _unseen(year: StsSet) -> StsSet:
    """The subsets that share no pair with STS Benchmark's training set."""
    training = load_sts_set("stsbenchmark", "train").subsets["stsbenchmark"]
    seen = {frozenset((pair.left, pair.right)) for pair in training}
    return year._replace(
        subsets={
            name: pairs
            for name, pairs in year.subsets.items()
            if not any(frozenset((pair.left, pair.right)) in seen for pair in pairs)
        }
    )


def _taught_pairs(work: Work) -> Path:
    """The file of pairs from many sources, scored by the trained bi-encoder."""
    file = work.folder / "taught.csv"
    if file.exists():
        return file
    encoder = load_encoder(str(work.folder / "sts-1"))
    chance = numpy.random.default_rng(1)
    training = load_sts_set("stsbenchmark", "train").subsets["stsbenchmark"]
    sentences = list(dict.fromkeys(text for pair in training for text in (pair.left, pair.right)))
    vectors = encoder.encode_documents(sentences)
    pairs = [
        (pair.left, pair.right) for source in UNLABELLED for pair in load_labelled_pairs(*source)
    ]
    pairs += [(pair.left, pair.right) for pair in load_sts_set("sick", "train").subsets["sick"]]
    for row, cosines in enumerate(vectors @ vectors.T):
        nearest = numpy.argsort(-cosines)
        nearest = nearest[nearest != row]
        chosen = (*nearest[:NEAREST], nearest[NEAREST + chance.integers(NEXT)])
        pairs += [(sentences[row], sentences[other]) for other in chosen]
    distinct = list({frozenset(pair): pair for pair in pairs if pair[0] != pair[1]}.values())
    left, right = (encoder.encode_documents(side) for side in zip(*distinct, strict=True))
    cosines = (left * right).sum(axis=1).clip(0, 1)
    rows = ((*pair, f"{cosine:.4f}") for pair, cosine in zip(distinct, cosines, strict=True))
    write_table(file, ("sentence1", "sentence2", "score"), rows)
    return file


def _judged_index(work: Work) -> dict[str, Path]:
    """SciFact's abstracts as an index; its training claims and judgements as files."""
    training = load_retrieval_set("scifact", "train")
    found = {name: work.folder / f"scifact-{name}.csv" for name in ("corpus", "queries", "qrels")}
    found["index"] = work.folder / "scifact"
    if not found["index"].exists():
        judgements = (
            (query, document, grade)
            for query, judged in training.qrels.items()
            for document, grade in judged.items()
        )
        write_table(found["corpus"], ("id", "text"), training.documents.items())
        write_table(found["queries"], ("id", "text"), training.queries.items())
        write_table(found["qrels"], ("query-id", "document-id", "relevance"), judgements)
        semsearch("index", str(found["corpus"]), "--index", str(found["index"]))
    return found


def _held_out(folder: Path) -> str:
    """The held-out gain that the training of a reranker measured."""
    before, after = json.loads((folder / "training.json").read_text("utf-8"))["tests"]
    weight = first_stage_weight(folder)
    return (
        f"nDCG@10 {figure(before['score'])} before, {figure(after['score'])} after, weight of the "
        f"first stage {weight:g}"
    )


def _last_score(folder: Path) -> float:
    record = json.loads((folder / "training.json").read_text("utf-8"))
    history = record["results"][-1]["history"]
    return float([entry["score"] for entry in history if "score" in entry][-1])


def _published(title: str, empty: int) -> list[list[str]]:
    return [
        [f"*published: {row.title} ({row.source})*", f"{row.scores['stsbenchmark']:.2f}"]
        + [""] * empty
        for row in published_rows("sts")
        if title in row.title
    ]
