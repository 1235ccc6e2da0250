"""Search in a DataFrame: importing this module gives every frame ``.semsearch``.

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
from dataclasses import dataclass
from pathlib import Path
from typing import Unpack
from weakref import finalize

import pandas

from semsearch.corpus import frame_documents
from semsearch.encoders import DEFAULT_ENCODER
from semsearch.errors import BadRowError
from semsearch.index import Index
from semsearch.protocols import Encoder
from semsearch.records import column_name
from semsearch.search.queries import Query, SearchOptions

logger = logging.getLogger(__name__)

#: The column that numbers rows while they are read.
_ROW = "semsearch row"


@dataclass(frozen=True)
class _Indexed:
    """What a frame was when it was encoded, how that was, and the temporary index."""

    frame: pandas.DataFrame
    columns: list[str]
    encoder: str | Encoder
    index: Index
    opened: ExitStack

    def is_of(self, frame: pandas.DataFrame, columns: list[str], encoder: str | Encoder) -> bool:
        """Whether a frame is as it was then, and is to be encoded so."""
        return (self.columns, self.encoder) == (columns, encoder) and self.frame.equals(frame)


#: By the `id` of the frame, as long as it lives: accessors are made anew for each use.
_INDEXED: dict[int, _Indexed] = {}


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
        text_columns: str | Sequence[str] = (),
        encoder: str | Encoder = DEFAULT_ENCODER,
        **options: Unpack[SearchOptions],
    ) -> pandas.DataFrame:
        """The rows that are nearest to a query, best first, with their scores in a first column.

        The first search encodes the frame into a temporary index, which later ones use while the
        frame, the columns and the encoder stay the same. Rows without a text are not found. A
        column ``score`` of the frame's own is called ``metadata.score``.

        Args:
            query: a text, several texts, or a vector.
            k: how many rows.
            text_columns: the column that is searched, or several; guessed where it is plain.
            encoder: a spec such as ``minilm``, or an encoder.
            options: see `SearchOptions`; filters are over the other columns.

        Raises:
            CorpusError: the frame has no rows, no such column, or none that is plainly the text.
            ArgumentError: the query is empty, or `k` is below 1.
            FilterError: the filter cannot be used.
        """
        columns = [text_columns] if isinstance(text_columns, str) else list(text_columns)
        hits = self._index(columns, encoder).search(query, k, **options)
        rows = self._frame.iloc[[int(hit.document_id) for hit in hits]]
        rows = rows.rename(
            columns=lambda name: column_name(name, ("score",)) if isinstance(name, str) else name
        )
        rows.insert(0, "score", [hit.score for hit in hits])
        return rows

    def _index(self, columns: list[str], encoder: str | Encoder) -> Index:
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


def _fill(index: Index, frame: pandas.DataFrame, columns: list[str]) -> None:
    """Add the rows of a frame; they are called by their places."""
    skipped: list[BadRowError] = []
    numbered = frame.assign(**{_ROW: range(len(frame))})
    index.add(
        frame_documents(numbered, id_column=_ROW, text_columns=columns, on_bad_row=skipped.append)
    )
    if skipped:
        rows = "1 row is" if len(skipped) == 1 else f"{len(skipped):,} rows are"
        logger.warning("%s not searched; the first: %s", rows, skipped[0])


def _forget(frame: int) -> None:
    """Remove the temporary index of a frame, if it has one."""
    if (indexed := _INDEXED.pop(frame, None)) is not None:
        indexed.opened.close()
