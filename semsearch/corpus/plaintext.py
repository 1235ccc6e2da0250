"""Reads plain text: a file as one document, a folder as one document a file."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from semsearch.corpus.formats import CorpusFormat, format_by_name, without_gz
from semsearch.corpus.frontmatter import split_front_matter
from semsearch.corpus.recognition import binary_likeness, left_out_reason, lines_remark
from semsearch.corpus.sources import identifier_of, open_source, reading, text_of
from semsearch.corpus.table import Row, Table
from semsearch.corpus.textstream import TextStream, encoding_of
from semsearch.encodings import ESCAPED_BYTE, first_escaped
from semsearch.errors import BadRowError, CorpusError, UndecodableError
from semsearch.limits import MAX_ROW_BYTES, size_shown

if TYPE_CHECKING:
    from semsearch.corpus.sources import Progress, Source

_COLUMNS = ("id", "title", "text")
#: Stands before fields of front matter that would be taken for the document's own.
_PREFIX = "front_matter."

#: How far a heading is looked for: a text may have millions of lines, and no heading.
HEADING_WITHIN_CHARACTERS = 1 << 20

#: How many of the files that a folder has besides its texts are named.
LEFT_OUT_NAMED = 5


def read_text(source: Source, encoding: str | None, *, doubted: bool = True) -> Table:
    """The table of a single text: one row, which is called what the file is called.

    Args:
        source: the text.
        encoding: as declared by the user.
        doubted: whether to remark that it seems to hold many texts.
    """
    identifier = identifier_of(source.name)
    head = source.head.decode(encoding_of(source.head, encoding), "replace")
    remark = lines_remark(head) if doubted else ""
    rows = iter((_row(source, identifier, encoding),))
    return Table(source.name, _COLUMNS, rows, announced=False, remark=remark)


def read_folder(folder: Path, encoding: str | None, progress: Progress) -> Table:
    """The table of all texts in a folder: one row a file, called by its path inside the folder.

    Raises:
        CorpusError: when there is none, or later where a file cannot be read.
    """
    remark = _left_out(folder)
    files = text_files(folder)
    first = next(files, None)
    if first is None:
        raise CorpusError(f"{folder} has no .txt or .md files{remark and '; '}{remark}")
    rows = _rows(folder, chain((first,), files), encoding, progress)
    return Table(str(folder), _COLUMNS, rows, announced=False, remark=remark)


def text_files(folder: Path) -> Iterator[Path]:
    """The texts in a folder and the folders in it, in the order of their paths.

    Hidden ones are left out, and so are linked folders, which may lead round in a circle.
    """
    return (path for path, reason in _visible_files(folder) if not reason)


def _visible_files(folder: Path) -> Iterator[tuple[Path, str]]:
    """The files in a folder and the folders in it, each with the reason why it is left out."""
    pending = [folder]
    while pending:
        path = pending.pop()
        with reading(str(path)):
            is_folder = path.is_dir()
            if is_folder and (path == folder or not path.is_symlink()):
                visible = [entry for entry in path.iterdir() if not entry.name.startswith(".")]
                pending.extend(sorted(visible, key=lambda entry: entry.name, reverse=True))
                continue
        if is_folder:
            yield path, "a linked folder"
        else:
            is_text = format_by_name(path) is CorpusFormat.TEXT
            yield path, "" if is_text else left_out_reason(path)


def _left_out(folder: Path) -> str:
    """What to say of the files that are not read; nothing if all are."""
    named, count = [], 0
    for path, reason in _visible_files(folder):
        if reason:
            count += 1
            if count <= LEFT_OUT_NAMED:
                named.append(f"{text_of(path.relative_to(folder).as_posix())} ({reason})")
    if not count:
        return ""
    noun = "file is" if count == 1 else "files are"
    more = f" and {count - LEFT_OUT_NAMED:,} more" if count > LEFT_OUT_NAMED else ""
    return f"{count:,} other {noun} left out: {', '.join(named)}{more}"


def _rows(
    folder: Path, files: Iterator[Path], encoding: str | None, progress: Progress
) -> Iterator[Row | BadRowError]:
    for path in files:
        with open_source(path, progress) as source:
            row = _row(source, text_of(path.relative_to(folder).as_posix()), encoding)
        yield row


def _row(source: Source, identifier: str, encoding: str | None) -> Row | BadRowError:
    found = encoding_of(source.head, encoding)
    if likeness := binary_likeness(source.head, found):
        return BadRowError(source.name, str(likeness), document_id=identifier)
    stream = TextStream(source, encoding, newline=None)
    text = stream.read(MAX_ROW_BYTES + 1)
    if len(text) > MAX_ROW_BYTES:
        reason = f"longer than {size_shown(MAX_ROW_BYTES)}"
        return BadRowError(source.name, reason, document_id=identifier)
    if ESCAPED_BYTE.search(text):
        what = f"text holds {first_escaped(text)}"
        return UndecodableError(source.name, what, stream.not_decoded(), identifier)
    path = without_gz(PurePath(source.name))
    own: dict[str, Any] = {"id": identifier, "title": path.stem, "text": text}
    if path.suffix.lower() != ".md":
        return Row(source.name, own)
    try:
        fields, own["text"] = split_front_matter(text)
    except CorpusError as error:
        return BadRowError(source.name, str(error), document_id=identifier)
    title = fields.pop("title", None)
    own["title"] = title if isinstance(title, str) and title else _heading(own["text"]) or path.stem
    others = {f"{_PREFIX}{name}" if name in own else name: fields[name] for name in fields}
    return Row(source.name, {**own, **others})


def _heading(markdown: str) -> str | None:
    """The first heading of a Markdown text: ``# This`` or a line underlined with ``===``."""
    fence = previous = ""
    for line in map(str.strip, markdown[:HEADING_WITHIN_CHARACTERS].split("\n")):
        if fence:
            fence = "" if line.startswith(fence) else fence
        elif line.startswith(("```", "~~~")):
            fence = line[:3]
        elif previous and line and not line.strip("="):
            return previous
        elif line.startswith("#") and (title := _after_hashes(line)):
            return title
        previous = line
    return None


def _after_hashes(line: str) -> str:
    """``Title`` of ``## Title ##``; nothing if it is no heading (``#hashtag``)."""
    hashes, _, title = line.replace("\t", " ").partition(" ")
    words, _, closing = title.rpartition(" ")
    if hashes.strip("#") or len(hashes) > 6:
        return ""
    return (title if closing.strip("#") else words).strip()
