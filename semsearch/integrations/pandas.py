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
from typing import Any, NamedTuple, Unpack
from weakref import finalize

import pandas

from semsearch.corpus import frame_documents, frame_text_columns
from semsearch.encoders import DEFAULT_ENCODER
from semsearch.errors import BadRowError, quantity
from semsearch.index import Index
from semsearch.protocols import Encoder
from semsearch.search.options import SearchOptions
from semsearch.search.queries import Query

logger = logging.getLogger(__name__)

#: A temporary column of row numbers.
_ROW = "semsearch row"


class _Indexed(NamedTuple):
    """A copy of an encoded frame, how it was encoded, its temporary index, and how that ends."""

    frame: pandas.DataFrame
    options: tuple[Any, ...]
    temporary: Index
    forget: finalize[[], pandas.DataFrame]


#: By the `id` of a live frame; an accessor is created for each use.
_INDEXED: dict[int, _Indexed] = {}


@pandas.api.extensions.register_dataframe_accessor("semsearch")
class SemsearchAccessor:
    """Searches the rows of a DataFrame."""

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
        the frame, the columns and the encoder are unchanged. Rows without a text, or with values
        that JSON lacks, are not found. An existing column ``score`` becomes ``metadata.score``.

        Args:
            query: a text, several texts, or a vector.
            k: the number of rows.
            text_columns: the column to search, or several; by default, guessed by name.
            encoder: a spec such as ``minilm``, or an encoder.
            options: of `SearchOptions`. A row is named by its position: in ``like``, ``"0"`` is the
                first; in filters, ``id`` is the position, and a column of that name
                ``metadata.id``.

        Raises:
            CorpusError: the frame has no rows, a column does not exist, or the text column cannot
                be guessed.
        """
        columns = [text_columns] if isinstance(text_columns, (str, int)) else list(text_columns)
        hits = _index(self._frame, columns, encoder).search(query, k, **options)
        rows = self._frame.iloc[[int(hit.document_id) for hit in hits]]
        rows = rows.rename(columns={"score": "metadata.score"})
        rows.insert(0, "score", [hit.score for hit in hits])
        return rows


def _index(frame: pandas.DataFrame, columns: list[str | int], encoder: str | Encoder) -> Index:
    """The temporary index of a frame, with the positions of rows as ids."""
    options = (columns, encoder)
    known = _INDEXED.get(id(frame))
    if known and known.options == options and known.frame.equals(frame):
        return known.temporary
    if known:
        known.forget()
    texts = frame_text_columns(frame, columns)  # errors do not list the temporary column
    rows = frame.assign(**{_ROW: range(len(frame))})
    skipped: list[BadRowError] = []
    found = frame_documents(rows, id_column=_ROW, text_columns=texts, on_bad_row=skipped.append)
    temporary = tempfile.TemporaryDirectory(prefix="semsearch-", ignore_cleanup_errors=True)
    with ExitStack() as undo:
        index = undo.enter_context(Index.create(undo.enter_context(temporary), encoder))
        index.add(found)
        undo.callback(_INDEXED.pop, id(frame))
        forget = finalize(frame, undo.pop_all().close)
    _INDEXED[id(frame)] = _Indexed(frame.copy(), options, index, forget)
    if skipped:
        first = str(skipped[0])  # its traceback would keep the frame alive where logs are kept
        logger.warning("not searched: %s; the first: %s", quantity(len(skipped), "row"), first)
    return index
