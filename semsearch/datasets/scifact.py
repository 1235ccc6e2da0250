"""SciFact, claims and the abstracts that they cite (Wadden et al. 2020), as its authors ship it."""

from __future__ import annotations

import ast
import csv
import io
import re
import tokenize
from collections.abc import Iterator
from zipfile import ZipFile

from semsearch.datasets.folder import data_file
from semsearch.datasets.records import RetrievalSet
from semsearch.datasets.registry import check_split
from semsearch.datasets.textlines import reading

__all__ = ["read_scifact"]

_CLAIMS = {"train": "claims_train.csv", "test": "claims_validation.csv"}


def read_scifact(split: str = "test") -> RetrievalSet:
    """All abstracts and some claims; what a claim cites is relevant to it.

    A document is its title and its abstract, joined by a space.

    Args:
        split: ``train``, or ``test`` for the validation claims: the test claims are published
            without judgements, so BEIR calls the validation claims that, too.

    Raises:
        DatasetNotFoundError: it is not here.
        DatasetError: there is no such split, or the archive is damaged.
    """
    check_split("scifact", split, _CLAIMS)
    file = data_file("ir/scifact/scifact.zip")
    with reading(file), ZipFile(file) as archive:
        documents = {
            row["doc_id"]: f"{row['title']} {' '.join(_strings(row['abstract']))}"
            for row in _rows(archive, "corpus_train.csv")
        }
        queries, qrels = {}, {}
        for row in _rows(archive, _CLAIMS[split]):  # a claim has a row per evidence
            queries[row["id"]] = row["claim"]
            qrels[row["id"]] = dict.fromkeys(re.findall(r"\d+", row["cited_doc_ids"]), 1)
    return RetrievalSet("scifact", documents, queries, qrels)


def _rows(archive: ZipFile, name: str) -> Iterator[dict[str, str]]:
    with archive.open(name) as file:
        yield from csv.DictReader(io.TextIOWrapper(file, "utf-8", newline=""))


def _strings(array: str) -> list[str]:
    """The strings of an array as numpy prints it: Python's literals without commas."""
    tokens = tokenize.generate_tokens(io.StringIO(array).readline)
    return [ast.literal_eval(token.string) for token in tokens if token.type == tokenize.STRING]
