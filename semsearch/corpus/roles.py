"""The roles of columns (text, id, left, score …), recognised by name or content; headers.

One table of names serves all commands: `index` looks for text, title and id; evaluation and
training for pairs with a score or a label, for queries and for judgements. Names are compared
without case, spaces, dashes and underscores (`plain_name`), the preferred one first.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches
from itertools import islice, product
from statistics import fmean
from typing import Any, NamedTuple
from unicodedata import normalize

from semsearch.corpus.table import COLUMNS, Table, nested_texts
from semsearch.errors import ArgumentError, ColumnNotFoundError, check_text, check_texts

TEXT = (
    *("text", "content", "body", "abstract", "extract", "passage", "sentence", "description"),
    *("summary", "document", "review", "comment", "message", "question"),
)
TITLE = ("title", "name", "headline", "heading", "subject")
ID = ("id", "docid", "documentid", "uuid", "key")

#: Both texts of a pair, where the data sets of one author name them alike.
SIDES = (
    ("sentence1", "sentence2"),
    ("sentencea", "sentenceb"),
    ("left", "right"),
    ("text1", "text2"),
    ("texta", "textb"),
    ("question1", "question2"),
    ("1string", "2string"),
    ("premise", "hypothesis"),
    ("s1", "s2"),
    ("a", "b"),
)
_LEFT = ("anchor", "query", *(left for left, _ in SIDES[:-2]), "question")
_RIGHT = ("positive", *(right for _, right in SIDES[:-2]), "answer", "passage", "paraphrase")
#: A query with its answer, else names of one author, else any left and any right text.
PAIRS = (
    *product(("anchor", "query", "question"), ("positive", "answer", "passage")),
    *SIDES,
    *product(_LEFT, _RIGHT),
)
NEGATIVE = ("negative",)
SCORE = (
    *("score", "gold", "goldscore", "similarity", "similarityscore", "relatedness"),
    *("relatednessscore", "rating"),
)
LABEL = (
    *("label", "goldlabel", "quality", "isduplicate", "duplicate", "isparaphrase", "paraphrase"),
    *("entailmentjudgment", "entailmentlabel", "relation"),
)

QUERY_ID = ("queryid", "qid", "id", "topic")  # "id" may be a row number beside another one
QUERY = ("query", "question", "querytext", "claim")
PASSAGE = ("passage", "document", "doc", "text", "passagetext", "answer", "abstract")
DOCUMENT_ID = ("corpusid", "documentid", "docid", "docno", "doc", "document", "id")
#: Names of relevance only, and with those that also name a score or a label.
GRADE = ("relevance", "relevant", "rel", "grade")
RELEVANCE = (*GRADE, "score", "label")

_ALL = (TEXT, TITLE, ID, _LEFT, _RIGHT, SCORE, LABEL, GRADE, QUERY_ID, DOCUMENT_ID)
#: Names by which the header of a table is recognised.
USUAL = {name for names in _ALL for name in names} | {
    *("author", "category", "class", "date", "labels", "sentiment", "tags", "type", "url", "year")
}

#: The rows from which a header is recognised.
HEADER_ROWS = 100
#: Numbers, dates, times, amounts: ``3.5``, ``2024-01-05``, ``10:30``, ``-7 %``, ``$1,000``.
NUMBER = re.compile(r"[-+$€£]{0,2}\d[\d.,:/ -]*[%€$£]?")
_SENTENCE_END = re.compile(r"\w[.!?]['\")\]]?$|[。！？।؟۔]$")
# Scripts without spaces between words: Thai, Lao, Khmer, Japanese and Chinese.
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
_PROSE_WORDS, _PROSE_UNSPACED = 4, 8
#: A column without a usual name is the text if this share of its cells is prose and as much of that
#: is distinct, and if its cells are on average so many times as long as those of any other such
#: column.
MOSTLY_PROSE, MOSTLY_DISTINCT, CLEARLY_LONGER = 2 / 3, 0.8, 3

_SHOWN_CHARACTERS, _NAMES_SHOWN = 100, 30


def plain_name(name: str) -> str:
    """A normalised column name: ``sentence1`` for ``Sentence_1``."""
    return "".join(letter for letter in name.casefold() if letter.isalnum())


def find_column(
    columns: Iterable[str], names: Sequence[str], but: Collection[str] = ()
) -> str | None:
    """The column with the first of these names, compared as plain names; `but` none of those."""
    return next((one for one in matching_columns(columns, names) if one not in but), None)


def matching_columns(columns: Iterable[str], names: Sequence[str]) -> list[str]:
    """All columns with one of these names, in the order of the names."""
    plain = [(plain_name(column), column) for column in columns]
    return [column for name in names for spelled, column in plain if spelled == name]


def has_header(rows: Iterable[Sequence[str]], wanted: Collection[str] = ()) -> bool:
    """Whether the first of these rows names the columns.

    It does if it has a usual name (`USUAL`). Otherwise it is data if one of its cells is a number
    or date, if one occurs again in its column, or if all of them are prose.

    Args:
        rows: the first rows of a file; at least one.
        wanted: names given by the user; a row with one of them is a header.
    """
    first, *below = ([cell.strip() for cell in row] for row in islice(rows, HEADER_ROWS))
    # Concatenated files repeat their header in the middle.
    below = [row for row in below if len(row) == len(first) and row != first]
    columns = list(zip(*below, strict=True)) or [()] * len(first)
    once = [cell for cell, column in zip(first, columns, strict=True) if cell not in column]
    if any(plain_name(cell) in USUAL for cell in once):
        return True
    if any(name in first for name in wanted if not name.isdecimal()):
        return True
    named = [cell for cell in first if cell]
    recurs = not all(cell in once for cell in named)
    return not (recurs or any(map(NUMBER.fullmatch, named)) or all(map(is_prose, named)))


def is_prose(cell: str) -> bool:
    """Whether a cell has several words, or ends like a sentence."""
    words = cell.count(" ") + 1
    return (
        words >= _PROSE_WORDS
        or (words > 1 and _SENTENCE_END.search(cell) is not None)
        or len(_UNSPACED.findall(cell)) >= _PROSE_UNSPACED
    )


def find_pair(columns: Sequence[str]) -> tuple[str, str] | None:
    """The columns of the two texts of a pair."""
    for names in PAIRS:
        left, right = (find_column(columns, [name]) for name in names)
        if left is not None and right is not None:
            return left, right
    return None


def at_position(columns: Sequence[str], wanted: str) -> str | None:
    """The column with this name, or else at this position, counted from 1."""
    if wanted in columns:
        return wanted
    is_position = wanted.isascii() and wanted.isdecimal() and len(wanted) < 8
    return columns[int(wanted) - 1] if is_position and 0 < int(wanted) <= len(columns) else None


def numbered(names: Iterable[str]) -> list[str]:
    """The names of columns, with a number where one is repeated: ``Comment``, ``Comment_2``."""
    unique: dict[str, None] = {}
    for name in names:
        different, number = name, 2
        while different in unique:
            different, number = f"{name}_{number}", number + 1
        unique[different] = None
    return list(unique)


def shortened(text: str, characters: int = _SHOWN_CHARACTERS) -> str:
    """A text in printable characters, truncated."""
    shown = text if len(text) <= characters else f"{text[:characters]}…"
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in shown)


def listed(columns: Sequence[str]) -> str:
    """The names of columns in a message."""
    shown = ", ".join(map(shortened, columns[:_NAMES_SHOWN])) or "none"
    more = len(columns) - _NAMES_SHOWN
    return f"{shown} and {more} more" if more > 0 else shown


def quoted_names(columns: Iterable[str]) -> str:
    """``'title', 'body'``."""
    return ", ".join(f"'{shortened(column)}'" for column in columns)


class Roles(NamedTuple):
    """The columns of a table that are not metadata.

    Args:
        text: the columns to search, joined in this order; empty to guess.
        title: the column that is shown as the title, if any.
        id: the column that identifies documents, if any.
        earlier_id: the id column of the documents that an index has, which no other may replace;
            empty if their ids are derived from their texts, None if it has none.
    """

    text: tuple[str, ...]
    title: str | None
    id: str | None
    earlier_id: str | None = None

    @classmethod
    def wanted(cls, text: str | Iterable[str], title: str | None, id: str | None) -> Roles:  # noqa: A002
        """The columns named by a caller; a single text column may be a string.

        Raises:
            ArgumentError: a name is not a string.
        """
        names = [text] if isinstance(text, str) else check_texts("text_columns", text)
        for argument, name in (("title_column", title), ("id_column", id)):
            if name is not None:
                check_text(argument, name)
        return cls(tuple(names), title, id)

    @property
    def names(self) -> list[str]:
        """All column names."""
        return [name for name in (*self.text, self.title, self.id) if name is not None]

    @property
    def fit_documents(self) -> bool:
        """Whether documents, unlike tables, have all of these columns."""
        return set(self.names) <= set(COLUMNS)


class Reading(NamedTuple):
    """How a file is read, as in `Corpus`; None means detected or guessed."""

    wanted: Roles = Roles((), None, None)
    encoding: str | None = None
    header: bool | None = None
    records: str | None = None
    sheet: str | None = None
    sql: str | None = None
    lines: bool | None = None
    delimiter: str | None = None
    skip_lines: int | None = None
    decimal: str | None = None
    dates: str | None = None


def name_columns(rows: Sequence[Sequence[str]], reading: Reading) -> tuple[list[str], bool]:
    """The names of columns by the first rows, and whether the first row is a header.

    It is if `reading` says so, or else by `has_header`. The columns of a table without a header
    are ``column 1``, ``column 2`` …
    """
    header = reading.header
    if has_header(rows, reading.wanted.names) if header is None else header:
        # R and pandas write the row names under an empty header.
        named = (cell.strip() or f"column_{number}" for number, cell in enumerate(rows[0], 1))
        return numbered(named), True
    return [f"column {number}" for number in range(1, len(rows[0]) + 1)], False


def resolve(table: Table, wanted: Roles) -> Roles:
    """The columns named by the user, and guesses for the others.

    Raises:
        CorpusError: a named column does not exist, two columns have the same name, or the text
            column cannot be told.
        ArgumentError: another id column is named than an index has ids from.
    """
    for column, count in Counter(table.columns).items():
        if count > 1:
            what = f"{count} columns are called '{shortened(column)}'"
            raise ColumnNotFoundError(f"{table.name}: {what}; rename all but one")
    for column in wanted.names:
        if "." in column and column not in table.columns:
            table.derive(column)
    named = tuple(dict.fromkeys(_column(table, column) for column in wanted.text))
    is_only = len(table.columns) == 1
    usual = table.columns if is_only else matching_columns(table.columns, TEXT)
    text = named or tuple(usual[:1]) or _longest_text(table)
    if not text:
        nested = path_of_text(row.fields for row in table.sample)
        raise ColumnNotFoundError(
            f"{table.name}: cannot tell which column holds the text ({_columns(table)}); "
            f"name it with --text-column {nested}".rstrip()
        )
    title = None if wanted.title is None else _column(table, wanted.title)
    if title is None:
        # A title column that is also searched is still shown as the title.
        title = find_column(table.columns, TITLE, but=text if len(text) == 1 else ())
    return Roles(text, title, _id_column(table, wanted, text))


def _id_column(table: Table, wanted: Roles, text: Sequence[str]) -> str | None:
    identifier = None if wanted.id is None else _column(table, wanted.id)
    earlier = wanted.earlier_id
    if earlier is None:
        return identifier or find_column(table.columns, ID, but=text)
    if identifier not in (None, earlier):
        how = f"with ids from '{shortened(earlier)}'" if earlier else "without an id column"
        raise ArgumentError(
            f"{table.name}: the index was made {how}; for ids from '{shortened(identifier)}', "
            "delete it and start again, or use another --index"
        )
    return _column(table, earlier) if earlier else None


def are_ids(table: Table, column: str, text: Sequence[str]) -> bool:
    """Whether the values of a column are distinct, and present in each row of the sample."""
    rows = [row.fields for row in table.sample if any(map(row.fields.get, text))]
    values = {str(row.get(column) or "").strip() for row in rows}
    return len(values) == len(rows) > 0 and "" not in values


def describe(table: Table, roles: Roles, without_ids: str) -> str:
    """One line about how the columns are used; `without_ids` is said if there is no id column."""
    parts = [f"text from {quoted_names(roles.text)}"]
    if roles.title is not None:
        parts.append(f"title from {quoted_names([roles.title])}")
    parts.append(f"id from {quoted_names([roles.id])}" if roles.id is not None else without_ids)
    if roles.id is not None and (alike := _alike(table, roles.id)):
        parts.append(f"ids {quoted_names(alike)} differ only in blanks or their Unicode form")
    line = f"{table.name}: {', '.join(parts)}"
    if metadata := [column for column in table.columns if column not in roles.names]:
        line += f"; metadata: {listed(metadata)}"
    return f"{line}; {table.remark}" if table.remark else line


def _alike(table: Table, column: str) -> list[str]:
    """Two values of the first rows that look the same."""
    seen: dict[str, str] = {}
    for value in map(str, _filled_cells(table, column)):
        first = seen.setdefault(normalize("NFC", " ".join(value.split())), value)
        if first != value:
            return [first, value]
    return []


def holds_numbers(table: Table, column: str) -> bool:
    """Whether a column holds numbers, which are no texts to search, as far as the sample shows."""
    cells = _filled_cells(table, column)
    return bool(cells) and all(NUMBER.fullmatch(str(cell).strip()) for cell in cells)


def _column(table: Table, wanted: str) -> str:
    """The column with this name, or else at this position, counted from 1."""
    column = at_position(table.columns, wanted)
    if column is None:
        folded = {name.lower(): name for name in table.columns}
        nearest = get_close_matches(wanted.lower(), folded, n=1)
        advice = f"; nearest: {shortened(folded[nearest[0]])}" if nearest else ""
        raise ColumnNotFoundError(f"{table.name}: no column {wanted!r} ({_columns(table)}){advice}")
    return column


def _columns(table: Table) -> str:
    """``columns: id, plot; sheet 'A'``."""
    remark = f"; {table.remark}" if table.remark else ""
    return f"columns: {listed(table.columns)}{remark}"


def _longest_text(table: Table) -> tuple[str, ...]:
    """The column whose cells are clearly the texts; empty if none is, or more than one could be."""
    texts = {column: _filled_cells(table, column) for column in table.columns}
    lengths = {
        column: fmean(len(str(cell)) for cell in cells)
        for column, cells in texts.items()
        if sum(map(_is_text, cells)) >= MOSTLY_PROSE * len(cells) > 0
    }
    longest, *others = sorted(lengths, key=lambda column: -lengths[column]) or [""]
    is_clear = all(CLEARLY_LONGER * lengths[other] <= lengths[longest] for other in others)
    cells = texts.get(longest, [])
    is_distinct = len(set(cells)) >= MOSTLY_DISTINCT * len(cells) > 0
    return (longest,) if is_clear and is_distinct else ()


def path_of_text(values: Iterable[Any]) -> str:
    """The path of the texts in nested objects: one with a usual name, or of the longest texts."""
    lengths = Counter[str]()
    for value in values:
        for path, text in nested_texts(value):
            lengths[path] += len(text) if "." in path else 0
    usual = [path for path in lengths if plain_name(path.rpartition(".")[2]) in TEXT]
    best = max(usual or lengths, key=lambda path: lengths[path], default="")
    return best if lengths[best] else ""


def _filled_cells(table: Table, column: str) -> list[Any]:
    return [cell for row in table.sample if (cell := row.fields.get(column))]


def _is_text(cell: Any) -> bool:
    """Whether a cell is prose, rather than JSON or a printed list."""
    return isinstance(cell, str) and is_prose(cell) and not cell.startswith(("{", "["))
