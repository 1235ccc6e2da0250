"""Reads SciFact (Wadden et al. 2020), claims and the abstracts they cite, in its own format."""

from __future__ import annotations

import re

from semsearch.corpus.texts import joined_text, printed_list, sentences_text
from semsearch.datasets.folder import data_file
from semsearch.datasets.records import RetrievalSet
from semsearch.datasets.registry import check_split
from semsearch.datasets.textlines import cell, table_rows, unpacked

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
    documents, queries = {}, {}
    qrels: dict[str, dict[str, int]] = {}
    with unpacked(data_file("ir/scifact/scifact.zip")) as folder:
        with table_rows(folder / "corpus_train.csv") as table:
            for row in table.rows:
                parts = [cell(row, "title"), _abstract(cell(row, "abstract"))]
                documents[cell(row, "doc_id")] = joined_text(parts)
        with table_rows(folder / _CLAIMS[split]) as table:
            for row in table.rows:  # one for each piece of evidence
                queries[cell(row, "id")] = cell(row, "claim")
                cited = re.findall(r"\d+", cell(row, "cited_doc_ids"))
                qrels[cell(row, "id")] = dict.fromkeys(cited, 1)
    return RetrievalSet("scifact", documents, queries, qrels, split)


def _abstract(array: str) -> str:
    """The sentences of an array as printed by NumPy."""
    return sentences_text(printed_list(array) or []) or array
