"""Shared data types: documents, passages, hits."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

from semsearch.errors import BadRowError, shown

if TYPE_CHECKING:
    import pandas

#: How Python's "surrogateescape" represents an undecodable byte (PEP 383).
ESCAPED_BYTE = re.compile("[\udc80-\udcff]")

#: JSON values by field name.
Metadata = Mapping[str, Any]

#: A filter: an expression, or the values that fields must have (of a list, one).
Where = str | Mapping[str, Any]

#: The prefix of a metadata field's name if the bare name has another meaning.
METADATA_PREFIX = "metadata."

#: Fields of every document besides its metadata.
BUILT_IN_FIELDS = ("id", "title")

#: Decimals of scores in JSON; float32 has seven digits.
SCORE_DECIMALS = 6


class Kind(Enum):
    """The kinds of metadata values: JSON's types, and dates among the texts."""

    TEXT = "text"
    DATE = "date"  #: a text such as 2019-05-01 or 2019-05-01T10:00
    NUMBER = "number"
    BOOLEAN = "boolean"
    OBJECT = "object"
    LIST = "list"  #: an empty one, or one in a list
    NULL = "null"


@dataclass(frozen=True, slots=True)
class Document:
    """One text of a corpus, unchanged. It is validated on creation.

    >>> from semsearch import Document
    >>> Document("n1", "The cat dozed.", metadata={"year": 2021}).metadata["year"]
    2021

    Args:
        id: the id in the corpus; None lets the index derive it from the content, so that it does
            not depend on the position in a file.
        text: the text to search; must contain more than white space.
        title: for display; not encoded (name it as a text column to search it, too).
        metadata: JSON values by field name. Numpy scalars, dates and decimals are converted to
            JSON values, NaN to null, and values of other types to their text.
        source: where it was read (``corpus.csv:418``), for messages.

    Raises:
        BadRowError: the document cannot be indexed.
    """

    id: str | None
    text: str
    title: str | None = None
    metadata: Metadata = field(default_factory=dict, hash=False)
    source: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        for name, value in (("text", self.text), ("id", self.id), ("title", self.title)):
            if value is None and name != "text":
                continue
            if not isinstance(value, str):
                raise BadRowError(self.source, f"{name} is not a string but {shown(value)}")
            if name != "title" and not value.strip():
                raise BadRowError(self.source, f"empty {name}")
            if name == "id" and "\0" in value:  # SQLite's lists of ids end there
                raise BadRowError(self.source, "id holds U+0000")
            check_characters(value, name, self.source)
        if not isinstance(self.metadata, Mapping):
            raise BadRowError(self.source, "metadata is not a mapping")
        metadata = {}
        for name, value in self.metadata.items():
            check_characters(str(name), "the name of a metadata field", self.source)
            metadata[str(name)] = _json_value(value, str(name), self.source)
        object.__setattr__(self, "metadata", metadata)


class Passage(NamedTuple):
    """A passage of a document: the characters [start, end) of its text.

    >>> from semsearch import Index
    >>> with Index.create("passages", "hashing") as index:
    ...     _ = index.add({"id": "n1", "text": "The cat dozed."})
    ...     index.search("a cat")[0].passage
    Passage(id=1, document_id='n1', start=0, end=14, text='The cat dozed.')
    """

    id: int
    document_id: str
    start: int
    end: int
    text: str


class HitScores(NamedTuple):
    """The components of `Hit.score`; None if not computed, or not among the best."""

    cosine: float | None = None
    bm25: float | None = None
    reranked: float | None = None  #: by a cross-encoder

    def to_dict(self) -> dict[str, float]:
        """The scores that are not None, rounded to 6 decimals."""
        return {
            name: round(score, SCORE_DECIMALS)
            for name, score in self._asdict().items()
            if score is not None
        }


class Explanation(NamedTuple):
    """Why a document is a hit."""

    first_rank: int  #: before reranking and removal of other hits
    first_score: float
    dense_rank: int | None = None
    bm25_rank: int | None = None
    words: tuple[str, ...] = ()  #: words of the query in the passage, as BM25 reads them
    #: The sentence of the passage nearest to the query: characters [start, end) of the document.
    sentence: tuple[int, int] | None = None


class Stage(NamedTuple):
    """The time of one stage of a search, for all queries of a call."""

    name: str
    milliseconds: float


class Hit(NamedTuple):
    """A hit of a query: a document, with its best passage.

    >>> from semsearch import Index
    >>> with Index.create("notes", "hashing") as index:
    ...     _ = index.add({"id": "n1", "text": "The cat dozed.", "year": 2021})
    ...     hit = index.search("a cat")[0]
    >>> hit.id, hit.text, hit["year"]
    ('n1', 'The cat dozed.', 2021)

    ``rank`` counts from 1; a higher ``score`` is better (the cosine, for semantic search);
    ``text`` is the passage, and ``passage`` has its position in the document. ``scores`` are the
    components of the score; ``duplicates`` are the ids of near-duplicates dropped for this hit.
    """

    rank: int
    score: float
    document_id: str
    passage: Passage
    text: str
    metadata: Metadata
    title: str | None = None
    scores: HitScores = HitScores()
    duplicates: tuple[str, ...] = ()
    explanation: Explanation | None = None

    @property
    def id(self) -> str:
        """The id of the document."""
        return self.document_id

    def __getitem__(self, name: Any) -> Any:
        """The metadata field with this name: ``hit["year"]``; other keys as for a tuple.

        Raises:
            KeyError: the document has no such field.
        """
        return self.metadata[name] if isinstance(name, str) else tuple.__getitem__(self, name)

    def to_dict(self) -> dict[str, Any]:
        """JSON values: rank, score (6 decimals), scores, id, title, text, start, end, metadata.

        The text is the passage, the characters [start, end) of the document. Duplicates and
        explanation are included if there are any.
        """
        found = {
            "rank": self.rank,
            "score": round(self.score, SCORE_DECIMALS),
            "scores": self.scores.to_dict(),
            "id": self.document_id,
            "title": self.title,
            "text": self.text,
            "start": self.passage.start,
            "end": self.passage.end,
            "metadata": dict(self.metadata),
        }
        if self.duplicates:
            found["duplicates"] = list(self.duplicates)
        if self.explanation is not None:
            first_score = round(self.explanation.first_score, SCORE_DECIMALS)
            found["explanation"] = self.explanation._asdict() | {"first_score": first_score}
        return found

    def to_json(self) -> str:
        """`to_dict` as JSON."""
        return json.dumps(self.to_dict(), ensure_ascii=False)


class Hits(list[Hit]):
    """The hits of one query, best first.

    >>> from semsearch import Index
    >>> with Index.create("hits", "hashing") as index:
    ...     _ = index.add(["The cat dozed.", "Interest rates rose."])
    ...     hits = index.search("a cat")
    >>> hits.query, [hit.rank for hit in hits], hits[0].text
    ('a cat', [1, 2], 'The cat dozed.')

    ``reranked`` is the number of passages that a cross-encoder scored; ``stages`` are timings of
    the search, with ``explain=True``.
    """

    def __init__(
        self, query: str, hits: Iterable[Hit] = (), *, reranked: int | None = None
    ) -> None:
        super().__init__(hits)
        self.query = query
        self.reranked = reranked
        self.stages: tuple[Stage, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """JSON values: query and hits; reranked and stages if present."""
        found: dict[str, Any] = {"query": self.query, "hits": [hit.to_dict() for hit in self]}
        if self.reranked is not None:
            found["reranked"] = self.reranked
        if self.stages:
            found["stages"] = [stage._asdict() for stage in self.stages]
        return found

    def to_json(self) -> str:
        """`to_dict` as JSON."""
        return json.dumps(self.to_dict(), ensure_ascii=False)

    def parts(self) -> list[str]:
        """The names of the components of `Hit.score`; none if every score has only one."""
        held = {name for hit in self for name in hit.scores.to_dict()}
        return [name for name in HitScores._fields if name in held] if len(held) > 1 else []

    def to_frame(self) -> pandas.DataFrame:
        """One row per hit: rank, score (and its components), id, title, text, metadata fields.

        A metadata field with one of these names is in the column ``metadata.NAME``.
        """
        import pandas

        columns = ["rank", "score", *self.parts(), "id", "title", "text"]
        rows = [hit.to_dict() | hit.scores.to_dict() for hit in self]
        frame = pandas.DataFrame(rows, columns=columns)
        metadata = pandas.DataFrame([hit.metadata for hit in self], index=frame.index)
        return frame.join(metadata.rename(columns=lambda name: column_name(name, columns)))

    def _repr_html_(self) -> str:
        """An HTML table for notebooks."""
        html: str = self.to_frame().to_html(index=False, float_format="{:.3f}".format)
        return html


def column_name(field: str, taken: Collection[str]) -> str:
    """The column name of a metadata field, given the names of other columns (`taken`)."""
    clashes = field in taken or field.startswith(METADATA_PREFIX)
    return f"{METADATA_PREFIX}{field}" if clashes else field


def metadata_field(name: str) -> str:
    """The name of a metadata field in conditions: ``year``, but ``metadata.id``."""
    return column_name(name, BUILT_IN_FIELDS)


def metadata_name(field: str) -> str:
    """The name of a metadata field, given its name in conditions."""
    return field.removeprefix(METADATA_PREFIX)


class SearchMode(Enum):
    """How documents are ranked.

    >>> from semsearch import SearchMode
    >>> SearchMode("hybrid")
    <SearchMode.HYBRID: 'hybrid'>
    """

    SEMANTIC = "semantic"  #: by the cosine of the best passage with the query
    BM25 = "bm25"  #: by the words shared with the query
    HYBRID = "hybrid"  #: by both, fused


def check_characters(text: str, name: str, source: str) -> None:
    """Refuse text that UTF-8 cannot encode: undecoded bytes and unpaired surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        character = text[error.start]
        what = f"U+{ord(character):04X}, which is no character"
        if ESCAPED_BYTE.match(character):
            what = f"{first_escaped(character)}, which is not UTF-8"
        raise BadRowError(source, f"{name} holds {what}") from None


def _json_value(value: Any, name: str, source: str) -> Any:
    """Convert a metadata value to JSON (numpy, pandas and date types included)."""
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, str):
        check_characters(value, name, source)
        return value
    if isinstance(value, float):
        if math.isinf(value):
            raise BadRowError(source, f"{name} is infinite, which JSON cannot hold")
        return None if math.isnan(value) else value
    if isinstance(value, Mapping):
        for key in value:
            check_characters(str(key), name, source)
        return {str(key): _json_value(item, name, source) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_json_value(item, name, source) for item in value]
    return _json_value(_plain_value(value), name, source)


def _plain_value(value: Any) -> Any:
    """Convert a value of a library's type to a built-in type; its text if there is no better."""
    if type(value).__name__ in ("NaTType", "NAType"):  # how pandas writes "missing"
        return None
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=str)
    if hasattr(value, "tolist"):  # numpy scalars and arrays
        kind = str(getattr(value, "dtype", ""))
        if kind.endswith("[ns]"):  # NumPy makes dates of microseconds, but numbers of nanoseconds
            value = value.astype(kind.replace("[ns]", "[us]"))
        return value.tolist()
    if hasattr(value, "isoformat"):  # dates and times
        return value.isoformat()
    if hasattr(value, "as_tuple"):  # decimal.Decimal
        return None if value.is_nan() else float(value)  # no float is a signalling NaN
    return str(value)


def first_escaped(text: str) -> str:
    """The first undecodable byte of a text that has one: ``byte 0xe9``."""
    return f"byte 0x{ord(ESCAPED_BYTE.findall(text)[0]) - 0xDC00:02x}"
