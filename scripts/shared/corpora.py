"""The corpora of the benchmarks, and the cost of encoding them."""

from __future__ import annotations

import argparse
import csv
import json
import os
import random
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from semsearch.datasets import RetrievalSet
from semsearch.encoders.model_folder import find_model

FILM_WORDS = 60


class Corpus(NamedTuple):
    """Texts, with the cost of encoding them."""

    name: str
    texts: list[str]
    tokens: int
    flops: float
    file: Path


def read_corpora(arguments: argparse.Namespace, folder: Path) -> list[Corpus]:
    """The corpora as CSV files; the last one is queried."""
    if arguments.corpus:
        texts = distinct(arguments.corpus.read_text("utf-8").splitlines())
        return [corpus_of("own", list(texts), folder)]
    data = Path(os.environ["SEMSEARCH_DATA"])
    films = islice(distinct(film_beginnings(data)), arguments.texts)
    sentences = islice(distinct(sts_sentences(data)), arguments.sentences)
    return [
        corpus_of("news-length", list(films), folder),
        corpus_of("sentences", list(sentences), folder),
    ]


def film_beginnings(data: Path) -> Iterator[str]:
    """The first words of film descriptions, oldest films first."""
    for file in sorted((data / "corpora" / "movies").glob("*.json")):
        for film in json.loads(file.read_text("utf-8")):
            yield " ".join((film.get("extract") or "").split()[:FILM_WORDS])


def film_titles(data: Path, count: int = 500) -> RetrievalSet:
    """Film descriptions, and the titles of `count` films (seed 0), each to find its own film."""
    films = [
        (film["title"].strip(), film["extract"].strip())
        for file in sorted((data / "corpora" / "movies").glob("*.json"))
        for film in json.loads(file.read_text("utf-8"))
        if len((film.get("extract") or "").strip()) >= 80 and (film.get("title") or "").strip()
    ]
    chosen = sorted(random.Random(0).sample(range(len(films)), count))
    return RetrievalSet(
        "film titles",
        {str(number): text for number, (_, text) in enumerate(films)},
        {str(number): films[number][0] for number in chosen},
        {str(number): {str(number): 1} for number in chosen},
    )


def sts_sentences(data: Path) -> Iterator[str]:
    """The sentences of the STS Benchmark."""
    for split in ("train", "dev", "test"):
        file = data / "sts" / "stsbenchmark" / f"sts-{split}.csv"
        for line in file.read_text("utf-8").split("\n"):
            yield from line.split("\t")[5:7]


def wordnet_definitions(data: Path) -> list[str]:
    """The definitions of the Open English WordNet."""
    lines = (data / "corpora" / "wordnet_definitions.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line)["text"] for line in lines]


def distinct(texts: Iterable[str]) -> Iterator[str]:
    """The stripped texts, without blank ones and duplicates."""
    seen = {""}
    for text in texts:
        stripped = text.strip()
        if stripped not in seen:
            seen.add(stripped)
            yield stripped


def corpus_of(name: str, texts: list[str], folder: Path) -> Corpus:
    """Write texts into a CSV file, and return them as a corpus."""
    file = folder / f"{name}.csv"
    with file.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["id", "text"])
        writer.writerows(enumerate(texts))
    tokens, flops = encoding_cost(texts)
    return Corpus(name, texts, tokens, flops, file)


def encoding_cost(texts: Sequence[str]) -> tuple[int, float]:
    """The number of tokens in texts, and of floating-point operations to encode them.

    In each layer, a token is multiplied by four square matrices and the two of the feed-forward
    block; attention multiplies it by every token of its text, twice. Padding is not counted.
    """
    from tokenizers import Tokenizer

    model = find_model("minilm").path
    config = json.loads((model / "config.json").read_text("utf-8"))
    limit = json.loads((model / "sentence_bert_config.json").read_text("utf-8"))["max_seq_length"]
    tokenizer = Tokenizer.from_file(str(model / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(limit)
    width, inner = config["hidden_size"], config["intermediate_size"]
    lengths = [len(encoded.ids) for encoded in tokenizer.encode_batch_fast(texts)]
    matrices = 2 * (4 * width * width + 2 * width * inner) * sum(lengths)
    attention = 4 * width * sum(length * length for length in lengths)
    return sum(lengths), config["num_hidden_layers"] * float(matrices + attention)


def corpus_record(corpus: Corpus) -> dict[str, Any]:
    """The description of a corpus in the results."""
    return {
        "name": corpus.name,
        "documents": len(corpus.texts),
        "tokens": corpus.tokens,
        "megaflops_a_token": corpus.flops / corpus.tokens / 1e6,
    }
