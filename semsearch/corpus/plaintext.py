"""Reads plain text as one document, with the front matter of Markdown; lines of queries."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import date
from pathlib import Path, PurePath
from typing import Any

from semsearch.corpus.celltypes import column_type, is_missing
from semsearch.corpus.encodings import TextStream
from semsearch.corpus.formats import without_gz
from semsearch.corpus.sources import Progress, Source, open_source, standard_input
from semsearch.corpus.table import COLUMNS, MAX_ROW_CHARACTERS, Row, Table
from semsearch.errors import BadRowError, first_line
from semsearch.records import check_characters

#: Prefix of front matter fields whose names clash with a document's own fields.
_PREFIX = "front_matter."

# Comments and code blocks of Markdown, which hold no headings, and images inside the text.
_HIDDEN = re.compile(
    r"<!--.*?(?:-->|\Z)|^ {0,3}(```+|~~~+).*?(?:^ {0,3}\1|\Z)", re.DOTALL | re.MULTILINE
)
#: A heading of Markdown: ``# This``, or a line underlined with ``===``.
_HEADING = re.compile(
    r"^ {0,3}(?:#{1,6}[ \t]+(.*?\S)(?:[ \t]+#+)?[ \t]*$|(\S.*)\n {0,3}=+[ \t]*$)", re.MULTILINE
)
_IMAGE = re.compile(r"data:[\w/+.-]+;base64,[A-Za-z0-9+/=]+")
#: The longest front matter.
FRONT_MATTER_MAX_CHARACTERS = 1 << 16

_FRONT_MATTER = re.compile(
    r"---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE
)


def read_text(source: Source, identifier: str, encoding: str | None) -> Table:
    """The table of a single text: one row with this id.

    For Markdown, its title is that of the front matter or its first heading.
    """
    text = TextStream(source, encoding, newline=None).read(MAX_ROW_CHARACTERS + 1)
    if len(text) > MAX_ROW_CHARACTERS:
        reason = f"longer than {MAX_ROW_CHARACTERS:,} characters"
        raise BadRowError(source.name, reason, identifier)
    path = without_gz(PurePath(source.name))
    fields: dict[str, Any] = {"id": identifier, "title": path.stem, "text": text}
    remark = ""
    if path.suffix.lower() == ".md":
        fields, remark = _markdown_fields(fields)
    return Table(source.name, COLUMNS, iter((Row(source.name, fields),)), remark=remark)


def read_lines(source: Source, encoding: str | None) -> Table:
    """The table of a text whose lines are documents; blank lines are skipped."""
    lines = enumerate(TextStream(source, encoding, newline=None).lines(), start=1)
    rows = (
        Row(f"{source.name}:{number}", {"text": line.strip()})
        for number, line in lines
        if line.strip()
    )
    return Table(source.name, ("text",), rows)


def _markdown_fields(own: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """The fields of a Markdown text with those of its front matter, and a remark about it."""
    matter, text, remark = split_front_matter(own["text"])
    text = _IMAGE.sub("", text)
    title = matter.get("title")
    if isinstance(title, (str, int, float, date)) and not isinstance(title, bool):
        title = str(matter.pop("title"))
    else:
        heading = _HEADING.search(_HIDDEN.sub("", text))
        title = (heading[1] or heading[2]).strip() if heading else ""
    own = {**own, "title": title or own["title"], "text": text}
    others = {f"{_PREFIX}{name}" if name in own else name: matter[name] for name in matter}
    return {**own, **others}, remark


def split_front_matter(text: str) -> tuple[dict[str, Any], str, str]:
    """Split a Markdown text into the fields of its front matter, the rest, and a remark.

    Front matter is YAML between lines of ``---``. A text that merely begins with a horizontal rule
    has none. Front matter that is not YAML is left out, as the remark says.
    """
    import yaml

    found = _FRONT_MATTER.match(text[:FRONT_MATTER_MAX_CHARACTERS])
    if not found:
        return {}, text, ""
    rest = text[found.end() :].lstrip("\n")
    try:
        fields = _typed(yaml.load(found[1], yaml.BaseLoader)) or {}  # noqa: S506 - only strings
    except (yaml.YAMLError, RecursionError) as error:
        problem = getattr(error, "problem", None) or first_line(error)
        return {}, rest, f"left out: its front matter, which is not YAML ({problem})"
    if not isinstance(fields, dict):
        return {}, text, ""
    return {str(name): value for name, value in fields.items()}, rest, ""


def _typed(value: Any) -> Any:
    """A value whose strings are read as cells of CSV are: times and codes stay text."""
    if isinstance(value, dict):
        return {name: _typed(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_typed(item) for item in value]
    if value is None or value in ("", "~") or is_missing(value):
        return None
    cell_type = column_type([value])
    return value if cell_type is None else cell_type.convert(value)


def text_lines(
    path: Path | None, encoding: str | None = None, longest: int = MAX_ROW_CHARACTERS
) -> Iterator[tuple[int, str]]:
    """The lines of a file, or of standard input for None as they come, with numbers from 1.

    Files may be compressed with gzip, and have a byte order mark.

    Raises:
        CorpusError: the file cannot be read, or a line is too long or cannot be decoded.
    """
    with ExitStack() as stack:
        if path is None:
            source = Source("stdin", None, b"", standard_input(), Progress(), stack)
        else:
            source = stack.enter_context(open_source(path, Progress()))
        lines = TextStream(source, encoding, newline=None).lines(longest)
        for number, line in enumerate(lines, start=1):
            check_characters(line, "the line", f"{source.name}:{number}")
            yield number, line
