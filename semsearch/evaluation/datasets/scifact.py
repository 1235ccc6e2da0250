"""Reads SciFact (Wadden et al. 2020), claims and the abstracts they cite, in its own format."""

from __future__ import annotations

import re

from semsearch.corpus import good_rows, open_table
from semsearch.evaluation.datasets.records import RetrievalSet
from semsearch.evaluation.datasets.registry import check_split, data_file
from semsearch.evaluation.datasets.textlines import cell, unpacked
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
    documents, queries = {}, {}
    qrels: dict[str, dict[str, int]] = {}
    with unpacked(data_file("ir/scifact/scifact.zip")) as folder:
        with open_table(folder / "corpus_train.csv") as table:
            for row in good_rows(table):
                parts = [cell(row, "title"), _abstract(cell(row, "abstract"))]
                documents[cell(row, "doc_id")] = joined_text(parts)
        with open_table(folder / _CLAIMS[split]) as table:
            for row in good_rows(table):  # one for each piece of evidence
                queries[cell(row, "id")] = cell(row, "claim")
                cited = re.findall(r"\d+", cell(row, "cited_doc_ids"))
                qrels[cell(row, "id")] = dict.fromkeys(cited, 1)
    return RetrievalSet("scifact", documents, queries, qrels, split)


def _abstract(array: str) -> str:
    """The sentences of an array as printed by NumPy."""
    return sentences_text(printed_list(array) or []) or array
