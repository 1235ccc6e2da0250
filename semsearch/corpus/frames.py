"""Reads what programs hold: pandas DataFrames, texts, dicts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from semsearch.corpus.documents import (
    DocumentReader,
    Items,
    Notify,
    OnBadRow,
    row_document,
    silent,
    table_documents,
)
from semsearch.corpus.roles import Roles, listed, resolve
from semsearch.corpus.table import COLUMNS, Row, Table
from semsearch.errors import (
    ArgumentError,
    BadRowError,
    CorpusError,
    check_items,
    raise_error,
    shown,
)
from semsearch.records import Document

if TYPE_CHECKING:
    import pandas

_BATCH_ROWS = 1_000

#: What an index adds: a text, a dict, a document, any number of these, or a data frame.
Item: TypeAlias = str | Mapping[str, Any] | Document
Texts: TypeAlias = "Item | Iterable[Item] | pandas.DataFrame"


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
    corpus: Texts, columns: Mapping[str, Any] | None = None, on_bad_row: OnBadRow = raise_error
) -> DocumentReader:
    """The documents of a data frame, or of texts, dicts and documents: one, or any number.

    A dict is a row with the columns ``text``, ``title`` and ``id``; all others are metadata. A
    reader of documents is returned as it is.

    Args:
        corpus: what to read.
        columns: arguments of `frame_documents`; those that are None are ignored.
        on_bad_row: called with the error of each item that is no document.

    Raises:
        ArgumentError: an item is none of these, or columns are named for something else than
            dicts and data frames.
    """
    named = {name: column for name, column in (columns or {}).items() if column is not None}
    if hasattr(corpus, "to_pandas"):  # of polars and pyarrow
        corpus = cast("Any", corpus).to_pandas()
    packages = {kind.__module__.partition(".")[0] for kind in type(corpus).__mro__}
    if "pandas" in packages and hasattr(corpus, "columns"):
        frame = cast("pandas.DataFrame", corpus)
        return frame_documents(frame, **named, on_bad_row=on_bad_row)
    one = isinstance(corpus, (str, Mapping, Document))
    if not one and (isinstance(corpus, bytes) or not isinstance(corpus, Iterable)):
        raise ArgumentError(
            f"cannot add {shown(corpus)}; give texts, dicts, documents, a data frame or a Corpus"
        )
    items = iter(cast("Iterable[Any]", [corpus] if one else corpus))
    if isinstance(items, DocumentReader) and not named:
        return items
    return DocumentReader(_item_documents(items, named), on_bad_row)


def _item_documents(items: Iterable[Any], named: Mapping[str, Any]) -> Items:
    """The documents of texts, dicts and documents, and an error in place of each that is none."""
    wanted = Roles.wanted(
        _names(named.get("text_columns", "text")),
        _name(named.get("title_column", "title")),
        _name(named.get("id_column", "id")),
    )
    table = Table("items", COLUMNS, iter(()))
    for place, item in enumerate(items):
        source = f"item {place}"
        if not isinstance(item, (str, Mapping, Document)):
            raise ArgumentError(f"{source} must be a text, a dict or a Document, not {shown(item)}")
        if named and not isinstance(item, Mapping):
            raise ArgumentError(f"{' and '.join(named)} need a data frame or dicts")
        if isinstance(item, Document):
            yield item
            continue
        cells = {"text": item} if isinstance(item, str) else item
        fields = {str(name): value for name, value in cells.items()}
        has_id = "id_column" in named or "id" in fields
        roles = wanted if has_id else wanted._replace(id=None)
        if fields.keys() & set(wanted.text):
            yield row_document(Row(source, fields), roles, table)
        else:
            names = f"no {' or '.join(map(repr, wanted.text))} (keys: {listed(list(fields))})"
            yield BadRowError(source, f"{names}; name the text with text_columns")


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
