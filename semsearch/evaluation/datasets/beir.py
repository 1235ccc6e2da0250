"""Reads retrieval sets in the layout of BEIR (Thakur et al. 2021), from a folder or ZIP archive."""

from __future__ import annotations

from pathlib import Path

from semsearch.corpus import good_rows, open_table
from semsearch.corpus.texts import joined_text
from semsearch.errors import DatasetError
from semsearch.evaluation.datasets.judging import retrieval_set
from semsearch.evaluation.datasets.questions import read_qrels, read_queries
from semsearch.evaluation.datasets.records import RetrievalSet
from semsearch.evaluation.datasets.textlines import cell, unpacked


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
        return _read(name, place, split)
    with unpacked(place) as folder:
        found = [file.parent for file in folder.rglob("corpus.jsonl")]
        return _read(name, found[0] if found else folder, split)


def _read(name: str, folder: Path, split: str) -> RetrievalSet:
    qrels = folder / "qrels" / f"{split}.tsv"
    if not qrels.is_file():
        splits = ", ".join(sorted(file.stem for file in qrels.parent.glob("*.tsv"))) or "none"
        raise DatasetError(f"{folder} has no qrels/{split}.tsv (splits: {splits})")
    queries = read_queries(folder / "queries.jsonl")
    return retrieval_set(name, _corpus(folder), queries, read_qrels(qrels), split)


def _corpus(folder: Path) -> dict[str, str]:
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
