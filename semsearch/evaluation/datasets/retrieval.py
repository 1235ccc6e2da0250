"""Loads retrieval sets by name or path; reads SciFact and the layout of BEIR."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from semsearch.corpus import good_rows, open_table
from semsearch.corpus.texts import joined_text, printed_list, sentences_text
from semsearch.errors import DatasetError
from semsearch.evaluation.datasets.classical import has_classical_files, read_classical
from semsearch.evaluation.datasets.lisa import has_lisa_files, read_lisa
from semsearch.evaluation.datasets.questions import read_judged_table, read_qrels, read_queries
from semsearch.evaluation.datasets.records import RetrievalSet, retrieval_set
from semsearch.evaluation.datasets.registry import (
    DatasetKind,
    check_split,
    data_file,
    existing_path,
    names_of,
)
from semsearch.evaluation.datasets.textlines import cell, unpacked

#: SciFact (Wadden et al. 2020): claims and the abstracts that they cite.
_CLAIMS = {"train": "claims_train.csv", "test": "claims_validation.csv"}


def retrieval_names() -> list[str]:
    """The names of the retrieval sets that `load_retrieval_set` accepts."""
    return names_of(DatasetKind.RETRIEVAL)


def load_retrieval_set(
    name_or_path: str,
    split: str = "test",
    notify: Callable[[str], None] = lambda line: None,
) -> RetrievalSet:
    """Read documents, queries and judgements.

    Args:
        name_or_path: ``scifact``, ``beir-scifact`` or ``cranfield``; or a folder in the layout of
            BEIR (`read_beir`; also as a ZIP archive), of the classical collections
            (`read_classical`) or of LISA (`read_lisa`); or a CSV or TSV file of judged passages
            (`read_judged_table`). ``./scifact`` is a path, not the name.
        split: the split of SciFact or of a BEIR folder; other sets have only ``test``.
        notify: called with one line about the columns of a file.

    Raises:
        DatasetNotFoundError: the set has not been downloaded, or the path does not exist.
        CorpusError: a file cannot be read.
        DatasetError: the split does not exist, or a file is invalid.
    """
    if name_or_path == "scifact":
        return read_scifact(split)
    if name_or_path == "beir-scifact":
        return read_beir(name_or_path, data_file("ir/beir/scifact.zip"), split)
    if name_or_path == "cranfield":
        check_split(name_or_path, split)
        files = [data_file(f"ir/cran/{name}") for name in ("cran.all.1400", "cran.qry", "cranqrel")]
        return read_classical(name_or_path, files[0].parent)
    path, name = existing_path(name_or_path, retrieval_names(), "retrieval set")
    if path.suffix.casefold() == ".zip" or has_beir_files(path):
        return read_beir(name, path, split)
    check_split(name, split)
    if path.is_file():
        return read_judged_table(name, path, notify)
    if has_lisa_files(path):
        return read_lisa(name, path)
    if has_classical_files(path):
        return read_classical(name, path)
    raise DatasetError(
        f"{path} has neither corpus.jsonl (BEIR) nor documents, queries and judgements named "
        "like NAME.ALL, NAME.QRY and NAME.REL, or LISA0.001, LISA.QUE and LISARJ.NUM"
    )


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


def has_beir_files(folder: Path) -> bool:
    """Whether a folder has the layout of BEIR."""
    return (folder / "corpus.jsonl").is_file()


def read_beir(name: str, place: Path, split: str = "test") -> RetrievalSet:
    """Read ``corpus.jsonl``, ``queries.jsonl`` and ``qrels/SPLIT.tsv``.

    A document is its title and text (`joined_text`). Only queries with judgements in the split are
    kept.

    Args:
        name: the name of the set.
        place: a folder, or a ZIP archive of the files or of a folder with them.
        split: the split of the judgements.

    Raises:
        CorpusError: a file is missing or cannot be read.
        DatasetError: a file is invalid, or the split does not exist.
    """
    if place.is_dir():
        return _read_beir(name, place, split)
    with unpacked(place) as folder:
        found = [file.parent for file in folder.rglob("corpus.jsonl")]
        return _read_beir(name, found[0] if found else folder, split)


def _read_beir(name: str, folder: Path, split: str) -> RetrievalSet:
    qrels = folder / "qrels" / f"{split}.tsv"
    if not qrels.is_file():
        splits = ", ".join(sorted(file.stem for file in qrels.parent.glob("*.tsv"))) or "none"
        raise DatasetError(f"{folder} has no qrels/{split}.tsv (splits: {splits})")
    queries = read_queries(folder / "queries.jsonl")
    return retrieval_set(name, _beir_documents(folder), queries, read_qrels(qrels), split)


def _beir_documents(folder: Path) -> dict[str, str]:
    """The texts of documents by ``_id``, preceded by their titles, if any."""
    texts: dict[str, str] = {}
    with open_table(folder / "corpus.jsonl") as table:
        for row in good_rows(table):
            name, text = cell(row, "_id").strip(), row.fields.get("text")
            if not name or not isinstance(text, str):
                fields = ", ".join(row.fields)
                raise DatasetError(f"{row.source}: no '_id' and 'text' (fields: {fields})")
            if name in texts:
                raise DatasetError(f"{row.source}: duplicate id {name!r}")
            texts[name] = joined_text([cell(row, "title"), text])
    return texts
