"""Retrieval sets by name or path, in whichever format they are."""

from __future__ import annotations

from collections.abc import Callable

from semsearch.datasets.beir import has_beir_files, read_beir
from semsearch.datasets.classical import has_classical_files, read_classical
from semsearch.datasets.folder import data_file, existing_path, stem
from semsearch.datasets.judgedtable import read_judged_table
from semsearch.datasets.lisa import has_lisa_files, read_lisa
from semsearch.datasets.records import RetrievalSet
from semsearch.datasets.registry import DatasetKind, check_split, names_of
from semsearch.datasets.scifact import read_scifact
from semsearch.errors import DatasetError


def retrieval_names() -> list[str]:
    """The retrieval sets that `load_retrieval_set` knows by name."""
    return names_of(DatasetKind.RETRIEVAL)


def load_retrieval_set(
    name_or_path: str, split: str = "test", notify: Callable[[str], None] | None = None
) -> RetrievalSet:
    """Read documents, queries and judgements.

    Args:
        name_or_path: ``scifact``, ``beir-scifact`` or ``cranfield``; or a folder in the layout of
            BEIR (`read_beir`), zipped too, or of the classical collections (`read_classical`)
            or of LISA (`read_lisa`); or a CSV or TSV file of judged passages
            (`read_judged_table`). ``./scifact`` is the path where the name would be taken.
        split: which judgements of SciFact or of a BEIR folder; the others have one split.
        notify: is called with one line: which columns of a file are used.

    Raises:
        DatasetNotFoundError: it is not on this machine.
        DatasetError: there is no such split, or a file cannot be read.
    """
    if name_or_path == "scifact":
        return read_scifact(split)
    if name_or_path == "beir-scifact":
        return read_beir(name_or_path, data_file("ir/beir/scifact.zip"), split)
    if name_or_path == "cranfield":
        check_split(name_or_path, split, ("test",))
        files = [data_file(f"ir/cran/{name}") for name in ("cran.all.1400", "cran.qry", "cranqrel")]
        return read_classical(name_or_path, files[0].parent)
    path = existing_path(name_or_path, retrieval_names(), "retrieval set")
    if path.is_file():
        if path.suffix.casefold() == ".zip":
            return read_beir(stem(path), path, split)
        return read_judged_table(stem(path), path, notify)
    if has_beir_files(path):
        return read_beir(stem(path), path, split)
    if has_lisa_files(path):
        return read_lisa(stem(path), path)
    if has_classical_files(path):
        return read_classical(stem(path), path)
    raise DatasetError(
        f"{path} has neither corpus.jsonl (BEIR) nor documents, queries and judgements named "
        "as in NAME.ALL, NAME.QRY and NAME.REL, or LISA0.001, LISA.QUE and LISARJ.NUM"
    )
