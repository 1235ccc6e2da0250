"""Reads retrieval sets in the layout of BEIR (Thakur et al. 2021), from a folder or ZIP archive."""

from __future__ import annotations

from pathlib import Path

from semsearch.corpus.texts import joined_text
from semsearch.datasets.judging import Qrels, judge, relevance, retrieval_set
from semsearch.datasets.records import RetrievalSet
from semsearch.datasets.textlines import cell, numbered_lines, table_rows, unpacked
from semsearch.errors import DatasetError
from semsearch.records import Document


def has_beir_files(folder: Path) -> bool:
    """Whether a folder has the layout of BEIR."""
    return _file(folder, "corpus.jsonl") is not None


def read_beir(name: str, place: Path, split: str = "test") -> RetrievalSet:
    """Read ``corpus.jsonl``, ``queries.jsonl`` and ``qrels/SPLIT.tsv``, optionally gzipped.

    A document is its title and text (`joined_text`). Only queries with judgements in the split are
    kept.

    Args:
        name: the name of the set.
        place: a folder, or a ZIP archive of the files or of a folder with them.
        split: the split of the judgements.

    Raises:
        DatasetError: a file is missing or invalid.
    """
    if place.is_dir():
        return _read(name, place, split)
    with unpacked(place) as folder:
        inner = [path for path in folder.iterdir() if path.is_dir() and path.name != "__MACOSX"]
        is_inside = not has_beir_files(folder) and len(inner) == 1
        return _read(name, inner[0] if is_inside else folder, split)


def _read(name: str, folder: Path, split: str) -> RetrievalSet:
    corpus, queries = (_texts(_required(folder, f"{what}.jsonl")) for what in ("corpus", "queries"))
    qrels = _file(folder, f"qrels/{split}.tsv")
    if qrels is None:
        names = sorted(file.name.split(".")[0] for file in folder.glob("qrels/*.tsv*"))
        splits = ", ".join(names) or "none"
        raise DatasetError(f"{folder} has no qrels/{split}.tsv (splits: {splits})")
    return retrieval_set(name, corpus, queries, _qrels(qrels), split)


def _file(folder: Path, name: str) -> Path | None:
    candidates = (folder / name, folder / f"{name}.gz")
    return next((file for file in candidates if file.is_file()), None)


def _required(folder: Path, name: str) -> Path:
    file = _file(folder, name)
    if file is None:
        raise DatasetError(f"{folder} has no {name}")
    return file


def _texts(file: Path) -> dict[str, str]:
    """The texts of JSON lines by ``_id`` (stripped), preceded by their titles, if any."""
    texts: dict[str, str] = {}
    with table_rows(file) as table:
        for row in table.rows:
            name, text = cell(row, "_id").strip(), row.fields.get("text")
            if not name or not isinstance(text, str):
                fields = ", ".join(row.fields)
                raise DatasetError(f"{row.source}: no '_id' and 'text' (fields: {fields})")
            if name in texts:
                raise DatasetError(f"{row.source}: duplicate id {name!r}")
            texts[name] = joined_text([cell(row, "title"), text])
            Document(name, texts[name] or "-", source=row.source)  # what an index refuses
    return texts


def _qrels(file: Path) -> Qrels:
    """Tab-separated ``query-id``, ``corpus-id`` and ``score``, with or without this header."""
    qrels: Qrels = {}
    lines = (line for line in numbered_lines(file) if line.text.strip())
    for number, line in enumerate(lines):
        cells = [text.strip() for text in line.text.split("\t")]
        if number == 0 and cells[0].lower().startswith("query"):
            continue
        if len(cells) != 3:
            raise DatasetError(f"{line.place}: {len(cells)} tab-separated columns, not 3")
        judge(qrels, cells[0], cells[1], relevance(cells[2], line.place))
    return qrels
