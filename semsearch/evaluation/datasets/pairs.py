"""Loads sentence pairs by name or path: scored ones (STS), labelled ones (NLI, paraphrases)."""

from __future__ import annotations

from collections.abc import Callable

from semsearch.errors import DatasetError
from semsearch.evaluation.datasets.pairtable import (
    PairColumns,
    read_labelled_table,
    read_scored_table,
)
from semsearch.evaluation.datasets.records import LabelledPair, StsSet
from semsearch.evaluation.datasets.registry import (
    DatasetKind,
    check_split,
    data_file,
    data_folder,
    existing_path,
    known_set,
    names_of,
)
from semsearch.evaluation.datasets.sts import (
    has_semeval_files,
    is_translated,
    read_semeval,
    read_stsbenchmark,
    read_translated,
)

_SICK = {"train": "SICK_train", "trial": "SICK_trial", "test": "SICK_test_annotated"}
_LABELLED = {
    "snli": {"dev": "nli/snli_dev.csv", "test": "nli/snli_test.csv"},
    "msrp": {
        "train": "pairs/msr-para-train.tsv",
        "dev": "pairs/msr-para-val.tsv",
        "test": "pairs/msr-para-test.tsv",
    },
    "quora": {"dev": "pairs/quora_dev.tsv"},
}


def sts_names() -> list[str]:
    """The names of the STS sets that `load_sts_set` accepts."""
    return names_of(DatasetKind.STS)


def load_sts_set(
    name_or_path: str,
    split: str = "test",
    columns: PairColumns | None = None,
    notify: Callable[[str], None] = lambda line: None,
) -> StsSet:
    """Read a set of scored sentence pairs.

    Args:
        name_or_path: ``stsbenchmark``, ``sts12`` to ``sts16``, ``sick``, ``stsb-multi:pt``
            (STS Benchmark in Portuguese), ``stsb-multi:en-pt`` (English against Portuguese); or
            a CSV or TSV file, optionally gzipped (columns: `read_scored_table`); or a folder
            in the SemEval layout. ``./sick`` is a path, not the name.
        split: ``train``, ``dev`` or ``test`` of STS Benchmark and its translations, ``train``,
            ``trial``, ``test`` or ``all`` of SICK. The yearly sets, files and folders have
            only ``test``.
        columns: the columns of a file.
        notify: called with one line about the columns of a file.

    Returns:
        The set; gold scores are from 0 to 5, SICK's from 1 to 5, a file's are unchanged.

    Raises:
        DatasetNotFoundError: the set has not been downloaded, or the path does not exist.
        CorpusError: a file cannot be read.
        DatasetError: the split does not exist, or a file is invalid.
    """
    name = name_or_path
    if name in sts_names() or is_translated(name):
        if columns is not None and any(columns):
            raise DatasetError(f"{name} is a published set; columns can only be named for a file")
        return _published(name, split)
    path, name = existing_path(name, sts_names(), "STS set")
    check_split(name, split)
    if path.is_dir():
        if not has_semeval_files(path):
            raise DatasetError(f"{path} has no file STS.input.NAME.txt; name a file of pairs")
        return StsSet(name, split, *read_semeval(path))
    table = read_scored_table(path, columns)
    notify(table.columns)
    return StsSet(name, split, {name: table.pairs}, table.unscored)


def _published(name: str, split: str) -> StsSet:
    if name == "stsbenchmark":
        check_split(name, split, ("train", "dev", "test"))
        return StsSet(name, split, {name: read_stsbenchmark(split)}, 0)
    if is_translated(name):
        return StsSet(name, split, {name: read_translated(name, split)}, 0)
    if name == "sick":
        check_split(name, split, (*_SICK, "all"))
        parts = _SICK.values() if split == "all" else [_SICK[split]]
        tables = [read_scored_table(data_file(f"sts/SICK/{part}.txt")) for part in parts]
        return StsSet(name, split, {name: [pair for table in tables for pair in table.pairs]}, 0)
    check_split(name, split)
    known = known_set(name)
    for file in known.files:  # an incomplete year must not be read silently
        if "/STS." in file.path:
            data_file(file.path)
    return StsSet(name, split, *read_semeval(data_folder() / known.place))


def labelled_names() -> list[str]:
    """The names of the sets that `load_labelled_pairs` accepts."""
    return list(_LABELLED)


def load_labelled_pairs(name: str, split: str = "test") -> list[LabelledPair]:
    """Read labelled sentence pairs, without those that have no gold label (``-``).

    Args:
        name: ``snli`` (splits dev and test), ``msrp`` (train, dev, test; label 1 for a paraphrase)
            or ``quora`` (dev; 1 for a duplicate).
        split: the split of the set.

    Raises:
        DatasetNotFoundError: the set has not been downloaded.
        DatasetError: the split does not exist.
    """
    check_split(name, split, _LABELLED[name])
    return read_labelled_table(data_file(_LABELLED[name][split]))
