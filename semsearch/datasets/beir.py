"""Reads retrieval sets in the layout of BEIR (Thakur et al. 2021), from a folder or ZIP archive."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from semsearch.datasets.judging import Qrels, judge, relevance, retrieval_set
from semsearch.datasets.records import RetrievalSet
from semsearch.datasets.table import plain_name
from semsearch.datasets.textlines import DataFile, cells_of, numbered_lines, reading
from semsearch.errors import DatasetError
from semsearch.limits import MAX_ROW_VALUES, json_values
from semsearch.texts import joined_text


def has_beir_files(folder: Path) -> bool:
    """Whether a folder has the layout of BEIR."""
    return _file(folder, "corpus.jsonl") is not None


def read_beir(name: str, folder: Path, split: str = "test") -> RetrievalSet:
    """Read ``corpus.jsonl``, ``queries.jsonl`` and ``qrels/SPLIT.tsv``, optionally gzipped.

    A document is its title and text (`joined_text`). Only queries with judgements in the split are
    kept.

    Args:
        name: the name of the set.
        folder: a folder, or a ZIP archive of the files or of a folder with them.
        split: the split of the judgements.

    Raises:
        DatasetError: a file is missing or invalid.
    """
    root: DataFile = folder
    if folder.is_file():
        root = _in_archive(folder)
    corpus = read_texts(_required(root, "corpus.jsonl"))
    queries = read_texts(_required(root, "queries.jsonl"))
    qrels = _file(root, f"qrels/{split}.tsv")
    if qrels is None:
        raise DatasetError(f"{folder} has no qrels/{split}.tsv (splits: {_splits(root)})")
    return retrieval_set(name, corpus, queries, _qrels(qrels), split)


def _in_archive(file: Path) -> zipfile.Path:
    with reading(file):
        root = zipfile.Path(file)
        inner = [path for path in root.iterdir() if path.is_dir() and path.name != "__MACOSX"]
    if _file(root, "corpus.jsonl") is None and len(inner) == 1:
        return inner[0]
    return root


def _file(folder: DataFile, name: str) -> DataFile | None:
    candidates = (folder / name, folder / f"{name}.gz")
    return next((file for file in candidates if file.is_file()), None)


def _required(folder: DataFile, name: str) -> DataFile:
    file = _file(folder, name)
    if file is None:
        raise DatasetError(f"{folder} has no {name}")
    return file


def _splits(folder: DataFile) -> str:
    if not (folder / "qrels").is_dir():
        return "none"
    names = sorted(file.name for file in (folder / "qrels").iterdir())
    return ", ".join(name.split(".")[0] for name in names if ".tsv" in name) or "none"


def read_texts(file: DataFile) -> dict[str, str]:
    """The texts of JSON lines by ``_id`` (stripped), preceded by their titles, if any.

    Raises:
        DatasetError: the file cannot be read, or a line is invalid.
    """
    texts: dict[str, str] = {}
    for place, record in _records(file):
        found, text, title = record.get("_id"), record.get("text"), record.get("title")
        if not isinstance(found, (str, int)) or not isinstance(text, str):
            raise DatasetError(
                f"{place}: no '_id' and 'text' (fields: {', '.join(map(str, record))})"
            )
        name = str(found).strip()
        if not name:
            raise DatasetError(f"{place}: empty id")
        if name in texts:
            raise DatasetError(f"{place}: duplicate id {name!r}")
        texts[name] = joined_text([str(title), text]) if title else text
        _check_characters(place, name, texts[name])
    return texts


def _check_characters(place: str, name: str, text: str) -> None:
    """Refuse what an index refuses, but with its place."""
    if "\0" in name:
        raise DatasetError(f"{place}: id contains a NUL character")
    try:
        f"{name}{text}".encode()
    except UnicodeEncodeError:
        raise DatasetError(f"{place}: id or text holds an unpaired surrogate") from None


def _records(file: DataFile) -> Iterator[tuple[str, dict[str, Any]]]:
    for line in numbered_lines(file):
        if not line.text.strip():
            continue
        if len(line.text) > MAX_ROW_VALUES and json_values(line.text) > MAX_ROW_VALUES:
            raise DatasetError(f"{line.place}: more than {MAX_ROW_VALUES:,} values")
        try:
            record = json.loads(line.text)
        except (ValueError, RecursionError) as error:
            raise DatasetError(f"{line.place}: not JSON: {error}") from None
        if not isinstance(record, dict):
            raise DatasetError(f"{line.place}: not a JSON object")
        yield line.place, record


def _qrels(file: DataFile) -> Qrels:
    """Tab-separated ``query-id``, ``corpus-id`` and ``score``, with or without this header."""
    qrels: Qrels = {}
    lines = (line._replace(text=line.text.strip()) for line in numbered_lines(file))
    for number, line in enumerate(line for line in lines if line.text):
        cells = [cell.strip() for cell in cells_of(line, "\t")]
        if number == 0 and plain_name(cells[0]) == "queryid":
            continue
        if len(cells) != 3:
            raise DatasetError(f"{line.place}: {len(cells)} tab-separated columns, not 3")
        judge(qrels, cells[0], cells[1], relevance(cells[2], line.place))
    return qrels
