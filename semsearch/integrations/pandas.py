"""Searches DataFrames: importing this module adds the accessor ``.semsearch``.

>>> import pandas
>>> import semsearch.integrations.pandas
>>> frame = pandas.DataFrame({"pet": ["cat", "hen"], "text": ["It purrs.", "It lays eggs."]})
>>> frame.semsearch.search("eggs", k=1, encoder="hashing")["pet"].to_list()
['hen']
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from threading import RLock
from typing import Any, Unpack
from weakref import finalize

import numpy
import pandas

from semsearch.corpus import frame_documents, frame_text_columns
from semsearch.encoders import DEFAULT_ENCODER
from semsearch.errors import BadRowError
from semsearch.filters import And, Condition, Not, Or
from semsearch.filters.parsing import parse
from semsearch.index import Index
from semsearch.protocols import Encoder
from semsearch.records import BUILT_IN_FIELDS, Document, column_name, metadata_field
from semsearch.search.options import SearchOptions
from semsearch.search.queries import Query
from semsearch.texts import quantity

logger = logging.getLogger(__name__)

#: Temporary columns: of row numbers, and an empty one, so that no column of the frame is taken as
#: the title and all can be filtered.
_ROW, _TITLE = "semsearch row", "semsearch title"


@dataclass(frozen=True)
class _Indexed:
    """A copy of an encoded frame, its options, and the temporary index."""

    frame: pandas.DataFrame
    columns: list[str | int]
    encoder: str | Encoder
    index: Index
    opened: ExitStack

    def is_of(
        self, frame: pandas.DataFrame, columns: list[str | int], encoder: str | Encoder
    ) -> bool:
        """Whether the frame, its columns and the encoder are unchanged."""
        return (self.columns, self.encoder) == (columns, encoder) and self.frame.equals(frame)


#: By the `id` of a live frame; an accessor is created for each use.
_INDEXED: dict[int, _Indexed] = {}
#: Held by each search: another one may replace the temporary index.
_SEARCHING = RLock()


@pandas.api.extensions.register_dataframe_accessor("semsearch")
class SemsearchAccessor:
    """Searches the rows of a DataFrame.

    Args:
        frame: the rows.
    """

    def __init__(self, frame: pandas.DataFrame) -> None:
        self._frame = frame

    def search(
        self,
        query: Query,
        k: int = 10,
        *,
        text_columns: str | int | Sequence[str | int] = (),
        encoder: str | Encoder = DEFAULT_ENCODER,
        **options: Unpack[SearchOptions],
    ) -> pandas.DataFrame:
        """The rows nearest to a query, best first, with their scores in the first column.

        The first search encodes the frame into a temporary index, which later searches reuse while
        the frame, the columns and the encoder are unchanged. Rows without a text are not found. An
        existing column ``score`` is renamed to ``metadata.score``.

        Args:
            query: a text, several texts, or a vector.
            k: the number of rows.
            text_columns: the column to search, or several; by default, guessed by name.
            encoder: a spec such as ``minilm``, or an encoder.
            options: of `SearchOptions`; filters apply to the other columns, in which values that
                JSON lacks, such as infinity, are missing. In ``like`` and ``unlike``, a row is
                named by its position: ``"0"`` is the first.

        Raises:
            CorpusError: the frame has no rows, a column does not exist, or the text column cannot
                be guessed.
            ArgumentError: the query is empty, or `k` is below 1.
            FilterError: the filter is invalid.
        """
        columns = [text_columns] if isinstance(text_columns, (str, int)) else list(text_columns)
        where = options.get("where")
        if isinstance(where, str):
            options["where"] = str(_of_columns(parse(where)))
        with _SEARCHING:
            hits = self._index(columns, encoder).search(query, k, **options)
        rows = self._frame.iloc[[int(hit.document_id) for hit in hits]]
        rows = rows.rename(
            columns=lambda name: column_name(name, ("score",)) if isinstance(name, str) else name
        )
        rows.insert(0, "score", [hit.score for hit in hits])
        return rows

    def _index(self, columns: list[str | int], encoder: str | Encoder) -> Index:
        frame = self._frame
        known = _INDEXED.get(id(frame))
        if known and known.is_of(frame, columns, encoder):
            return known.index
        _forget(id(frame))
        with ExitStack() as stack:
            folder = tempfile.TemporaryDirectory(prefix="semsearch-", ignore_cleanup_errors=True)
            path = Path(stack.enter_context(folder), "index")
            index = stack.enter_context(Index.create(path, encoder))
            _fill(index, frame, columns)
            _INDEXED[id(frame)] = _Indexed(frame.copy(), columns, encoder, index, stack.pop_all())
        if not known:
            finalize(frame, _forget, id(frame))
        return index


def _fill(index: Index, frame: pandas.DataFrame, columns: list[str | int]) -> None:
    """Add the rows of a frame, with their positions as ids."""
    skipped: list[BadRowError] = []
    texts = frame_text_columns(frame, columns)  # errors do not list the temporary columns
    numbered = frame.assign(**{_ROW: range(len(frame)), _TITLE: None})
    for name in frame.columns:
        numbered[name] = _storable(frame[name])
    index.add(
        frame_documents(
            numbered,
            id_column=_ROW,
            title_column=_TITLE,
            text_columns=texts,
            on_bad_row=skipped.append,
        )
    )
    if skipped:
        rows = "1 row is" if len(skipped) == 1 else f"{len(skipped):,} rows are"
        first = str(skipped[0])  # its traceback would keep the frame alive where logs are kept
        logger.warning("%s not searched; the first: %s", rows, first)


def _storable(column: pandas.Series) -> pandas.Series:
    """A column without the values that metadata cannot hold."""
    if column.dtype.kind in "biuMm":
        return column
    reasons = [_unstorable(str(column.name), value) for value in column.tolist()]
    refused = [reason for reason in reasons if reason is not None]
    if not refused:
        return column
    logger.warning(
        "filters take %s of column '%s' as missing; the first: %s",
        quantity(len(refused), "value"),
        column.name,
        refused[0],
    )
    return column.where(numpy.array([reason is None for reason in reasons]))


def _unstorable(name: str, value: Any) -> str | None:
    """Why metadata cannot hold a value; None if it can."""
    try:
        Document(None, "-", None, {name: value})
    except BadRowError as error:
        return error.reason
    return None


def _of_columns(condition: Condition) -> Condition:
    """A condition in which ``id`` and ``title`` are columns: the rows' ids are their positions."""
    match condition:
        case Not(inner):
            return Not(_of_columns(inner))
        case And(conditions) | Or(conditions):
            return type(condition)(tuple(map(_of_columns, conditions)))
    if condition.field in BUILT_IN_FIELDS:
        return replace(condition, field=metadata_field(condition.field))
    return condition


def _forget(frame: int) -> None:
    """Close and remove the temporary index of a frame, if it has one."""
    if (indexed := _INDEXED.pop(frame, None)) is not None:
        indexed.opened.close()
