"""Loads retrieval sets by name or path, in any supported format."""

from __future__ import annotations

from collections.abc import Callable

from semsearch.errors import DatasetError
from semsearch.evaluation.datasets.beir import has_beir_files, read_beir
from semsearch.evaluation.datasets.classical import has_classical_files, read_classical
from semsearch.evaluation.datasets.lisa import has_lisa_files, read_lisa
from semsearch.evaluation.datasets.questions import read_judged_table
from semsearch.evaluation.datasets.records import RetrievalSet
from semsearch.evaluation.datasets.registry import (
    DatasetKind,
    check_split,
    data_file,
    existing_path,
    names_of,
)
from semsearch.evaluation.datasets.scifact import read_scifact


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
