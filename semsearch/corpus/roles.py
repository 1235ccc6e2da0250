"""The roles of columns (text, id, left, score …), recognised by their names; headers.

One table of names serves all commands: `index` looks for text, title and id; evaluation and
training for pairs with a score or a label, for queries and for judgements. Names are compared
without case, spaces, dashes and underscores (`plain_name`), the preferred one first.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from itertools import islice, product

from semsearch.errors import ColumnNotFoundError

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

_SHOWN_CHARACTERS, _NAMES_SHOWN = 100, 30


def plain_name(name: str) -> str:
    """A normalised column name: ``sentence1`` for ``Sentence_1``."""
    return "".join(letter for letter in name.casefold() if letter.isalnum())


def find_column(columns: Iterable[str], names: Sequence[str]) -> str | None:
    """The column with the first of these names, compared as plain names."""
    return next(iter(matching_columns(columns, names)), None)


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


def check_distinct(name: str, columns: Sequence[str]) -> None:
    """Raise ColumnNotFoundError if two columns of a table have the same name."""
    for column, count in Counter(columns).items():
        if count > 1:
            raise ColumnNotFoundError(
                f"{name}: {count} columns are called '{shortened(column)}'; rename all but one"
            )


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
