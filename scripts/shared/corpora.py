"""The corpora of the benchmarks."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

FILM_WORDS = 60


class Corpus(NamedTuple):
    """Texts, also in a CSV file."""

    name: str
    texts: list[str]
    file: Path


def film_beginnings(data: Path) -> Iterator[str]:
    """The first words of film descriptions, oldest films first."""
    files = sorted((data / "corpora" / "movies").glob("*.json"))
    films = (film for file in files for film in json.loads(file.read_text("utf-8")))
    return distinct(" ".join((film.get("extract") or "").split()[:FILM_WORDS]) for film in films)


def sts_sentences(data: Path) -> Iterator[str]:
    """The sentences of the STS Benchmark."""
    files = [data / "sts/stsbenchmark" / f"sts-{split}.csv" for split in ("train", "dev", "test")]
    lines = (line for file in files for line in file.read_text("utf-8").split("\n"))
    return distinct(text for line in lines for text in line.split("\t")[5:7])


def wordnet_definitions(data: Path) -> list[str]:
    """The definitions of the Open English WordNet."""
    lines = (data / "corpora" / "wordnet_definitions.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line)["text"] for line in lines]


def lines_of(file: Path) -> list[str]:
    """The distinct lines of a file."""
    return list(distinct(file.read_text("utf-8").splitlines()))


def distinct(texts: Iterable[str]) -> Iterator[str]:
    """The stripped texts, without blank ones and duplicates."""
    return filter(None, dict.fromkeys(text.strip() for text in texts))


def corpus_of(name: str, texts: Iterable[str], folder: Path) -> Corpus:
    """Write texts into a CSV file, and return them as a corpus."""
    file, found = folder / f"{name}.csv", list(texts)
    with file.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows([("id", "text"), *enumerate(found)])
    return Corpus(name, found, file)
