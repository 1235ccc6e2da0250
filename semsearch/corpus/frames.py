"""Reads pandas DataFrames."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from semsearch.corpus.documents import DocumentReader, Notify, OnBadRow, silent, table_documents
from semsearch.corpus.roles import Roles, resolve
from semsearch.corpus.table import Row, Table
from semsearch.errors import ArgumentError, CorpusError, check_items, raise_error
from semsearch.records import Document

if TYPE_CHECKING:
    import pandas

_BATCH_ROWS = 1_000


def frame_documents(
    frame: pandas.DataFrame,
    *,
    id_column: str | int | None = None,
    title_column: str | int | None = None,
    text_columns: str | int | Sequence[str | int] = (),
    on_bad_row: OnBadRow = raise_error,
    notify: Notify = silent,
) -> DocumentReader:
    """The documents of a DataFrame, by the same rules as those of a file; see `Corpus`.

    The index of the frame is not read; `frame.reset_index()` turns it into columns. Columns may be
    labelled by integers.
    """
    wanted = Roles.wanted(_names(text_columns), _name(title_column), _name(id_column))
    table = _table(frame)
    return DocumentReader(table_documents(table, resolve(table, wanted), notify), on_bad_row)


def documents_of(
    corpus: Iterable[Document] | pandas.DataFrame, columns: Mapping[str, Any]
) -> Iterable[Document]:
    """The documents of a data frame with these arguments of `frame_documents`, or those given.

    Raises:
        ArgumentError: columns are named without a data frame.
    """
    named = {name: column for name, column in columns.items() if column is not None}
    packages = {kind.__module__.partition(".")[0] for kind in type(corpus).__mro__}
    if "pandas" in packages and hasattr(corpus, "columns"):
        return frame_documents(cast("pandas.DataFrame", corpus), **named)
    if named:
        raise ArgumentError(f"{' and '.join(named)} need a data frame")
    return cast("Iterable[Document]", corpus)


def frame_text_columns(
    frame: pandas.DataFrame, wanted: str | int | Sequence[str | int] = ()
) -> tuple[str, ...]:
    """The names of a DataFrame's text columns: those wanted, or a guess.

    Raises:
        CorpusError: the frame has no rows, a column does not exist, two columns have the same name,
            or the text column cannot be guessed.
    """
    return resolve(_table(frame), Roles.wanted(_names(wanted), None, None)).text


def _names(labels: str | int | Sequence[str | int]) -> list[Any]:
    given = [labels] if isinstance(labels, (str, int)) else labels
    return [_name(label) for label in check_items("text_columns", given, "columns")]


def _name(label: Any) -> Any:
    """An integer label as a string; other types are checked later."""
    return str(label) if isinstance(label, int) and not isinstance(label, bool) else label


def _table(frame: pandas.DataFrame) -> Table:
    if frame.empty:
        raise CorpusError("frame has no rows")
    columns = [str(column) for column in frame.columns]
    return Table("frame", columns, _rows(frame, columns))


def _rows(frame: pandas.DataFrame, columns: Sequence[str]) -> Iterator[Row]:
    for start in range(0, len(frame), _BATCH_ROWS):
        batch = frame.iloc[start : start + _BATCH_ROWS]
        # Python's objects, and None for what is missing in pandas' sense.
        objects = batch.astype(object).where(batch.notna(), None)
        for number, cells in enumerate(objects.itertuples(index=False, name=None), start):
            yield Row(f"frame.iloc[{number}]", dict(zip(columns, cells, strict=True)))
