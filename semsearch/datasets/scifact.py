"""Reads SciFact (Wadden et al. 2020), claims and the abstracts they cite, in its own format."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator

from semsearch.datasets.folder import data_file
from semsearch.datasets.records import RetrievalSet
from semsearch.datasets.registry import check_split
from semsearch.datasets.table import Row, csv_rows
from semsearch.datasets.textlines import numbered_lines, reading
from semsearch.texts import joined_text, printed_list, sentences_text

_CLAIMS = {"train": "claims_train.csv", "test": "claims_validation.csv"}


def read_scifact(split: str = "test") -> RetrievalSet:
    """All abstracts, and the claims of a split; the abstracts that a claim cites are relevant.

    A document is its title and abstract (`joined_text`).

    Args:
        split: ``train``, or ``test`` for the validation claims, as in BEIR: the test claims are
            published without judgements.

    Raises:
        DatasetNotFoundError: the set has not been downloaded.
        DatasetError: the split does not exist, or the archive is damaged.
    """
    check_split("scifact", split, _CLAIMS)
    file = data_file("ir/scifact/scifact.zip")
    with reading(file):
        archive = zipfile.Path(file)
        documents = {
            row["doc_id"]: joined_text([row["title"], _abstract(row["abstract"])])
            for row in _rows(archive, "corpus_train.csv")
        }
        queries, qrels = {}, {}
        for row in _rows(archive, _CLAIMS[split]):  # a row for each piece of evidence
            queries[row["id"]] = row["claim"]
            qrels[row["id"]] = dict.fromkeys(re.findall(r"\d+", row["cited_doc_ids"]), 1)
    return RetrievalSet("scifact", documents, queries, qrels, split)


def _rows(archive: zipfile.Path, name: str) -> Iterator[dict[str, str]]:
    rows = csv_rows(numbered_lines(archive / name), ",")
    header = next(rows, Row("", []))
    return (dict(zip(header.cells, row.cells, strict=False)) for row in rows)


def _abstract(array: str) -> str:
    """The sentences of an array as printed by NumPy."""
    return sentences_text(printed_list(array) or []) or array
