"""Reads a folder: each file with the reader for its format; reports the files left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, NamedTuple

from semsearch.corpus.conversion import is_readable
from semsearch.corpus.documents import Items, Notify, table_documents
from semsearch.corpus.files import FileState, FolderFiles
from semsearch.corpus.formats import DOCUMENTS, CorpusFormat, format_by_name, without_gz
from semsearch.corpus.readers import read
from semsearch.corpus.roles import (
    TEXT,
    Reading,
    Roles,
    are_ids,
    holds_numbers,
    plain_name,
    resolve,
    shortened,
)
from semsearch.corpus.sources import Progress, Source, open_source, reading, text_of
from semsearch.corpus.table import LeftOut, Table
from semsearch.errors import ArgumentError, BadFileError, BadRowError, CorpusError, quantity
from semsearch.records import Document

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

#: The file in a folder that lists patterns of files to exclude.
IGNORE_FILE = ".semsearchignore"

#: Incremented when the same file yields different documents than before.
READERS_VERSION = 8

#: The most files named per reason for leaving them out.
NAMED = 3

#: Prefix of columns whose names clash with the fields of a row of a file.
_PREFIX = "column."

_EXTRA = "that need the extra 'files': pip install 'semsearch[files]'"


class Folder(NamedTuple):
    """The files of a folder and its subfolders, sorted by path.

    Args:
        path: the folder.
        files: those that are read, by name: the path inside the folder.
        left_out: the names of others by the reason they are left out; hidden ones are not listed.
    """

    path: Path
    files: dict[str, Path]
    left_out: dict[str, list[str]]

    def remark(self) -> str:
        """What is read, and what is left out and why."""
        suffixes = Counter(without_gz(file).suffix.lower()[1:] for file in self.files.values())
        counts = ", ".join(f"{count:,} {name}" for name, count in suffixes.most_common())
        remark = quantity(len(self.files), "file") + (f" ({counts})" if counts else "")
        shown = ", ".join(_counted(reason, names) for reason, names in self.left_out.items())
        return f"{remark}; left out: {shown}" if shown else remark


def find_files(path: Path, exclude: Sequence[str] = ()) -> Folder:
    """The files of a folder and its subfolders, without those that match a .gitignore pattern.

    Hidden files and Office's lock files are skipped. Linked folders, which may form a cycle, are
    left out, and so are links to files outside the folder.

    Raises:
        ArgumentError: a pattern is invalid.
        CorpusError: the folder cannot be read.
    """
    excluded, inside = _spec(path, exclude), path.resolve()
    folder = Folder(path, {}, {})
    readable = cache(is_readable)

    def add(entry: Path) -> None:
        is_folder = entry.is_dir()
        relative = entry.relative_to(path).as_posix()
        reason = ""
        if excluded.match_file(relative + "/" * is_folder):
            reason = "excluded"
        elif entry.is_symlink() and (is_folder or not entry.resolve().is_relative_to(inside)):
            reason = "linked"
        elif is_folder:
            add_all(entry)
            return
        elif entry.exists() and not entry.is_file():
            reason = "not regular"
        elif (found := format_by_name(entry)) is None:
            reason = "in unsupported formats"
        elif not readable(found):
            reason = _EXTRA
        name = text_of(relative).replace("#", "%23")  # "#" is reserved for parts
        if reason:
            folder.left_out.setdefault(reason, []).append(name)
        else:
            folder.files[name] = entry

    def add_all(inner: Path) -> None:
        with reading(str(inner)):
            for entry in sorted(inner.iterdir(), key=lambda entry: entry.name):
                if not entry.name.startswith((".", "~$")):
                    add(entry)

    add_all(path)
    return folder


def folder_documents(
    folder: Folder, how: Reading, files: FolderFiles, progress: Progress, notify: Notify
) -> Items:
    """The documents of a folder, file by file, named by their path inside the folder.

    Says in a line what is read, and in others what is left out, such as tables whose text column
    cannot be guessed.

    Raises:
        CorpusError: there are no files to read.
    """
    remark = folder.remark()
    if not folder.files:
        raise CorpusError(f"{folder.path} has no documents to read: {remark}")
    notify(f"{folder.path}: {remark}")
    files.left_out.update(folder.left_out.get(_EXTRA, ()))
    wanted = how.wanted
    how = how._replace(wanted=Roles(wanted.text, wanted.title, wanted.id or wanted.earlier_id))
    unclear: list[str] = []
    unchanged_before = len(files.unchanged)
    parts_left_out = LeftOut()
    for name, path in folder.files.items():
        try:
            yield from _file_documents(path, name, how, files, progress, notify, parts_left_out)
        except _UnclearError:
            unclear.append(name)
        except BadRowError as error:
            yield BadFileError(error.source, error.reason, name)
        except CorpusError as error:
            yield BadFileError("", str(error), name)
    if unchanged := len(files.unchanged) - unchanged_before:
        notify(f"{folder.path}: {quantity(unchanged, 'file')} unchanged")
    if parts_left_out:
        was_read = len(folder.files) - unchanged
        notify(f"{folder.path}: {quantity(was_read, 'file')} read; {parts_left_out}")
    if unclear:
        files.left_out.update(unclear)
        left_out = _counted("without a clear text column", unclear)
        advice = "to index one: semsearch index FILE --text-column COLUMN"
        notify(f"{folder.path}: left out: {left_out}; {advice}")


def _file_documents(
    path: Path,
    name: str,
    how: Reading,
    files: FolderFiles,
    progress: Progress,
    notify: Notify,
    left_out: LeftOut,
) -> Items:
    """The documents of the file with this name, unless it is unchanged; adds to `left_out`.

    Raises:
        _UnclearError: it is not a table, or its text column cannot be guessed.
        CorpusError: it cannot be read.
    """
    if not is_table(path) and not how.wanted.fit_documents:
        how = how._replace(wanted=Roles((), None, None))
    options = repr((READERS_VERSION, how))
    state = FileState.of(path, options)  # before reading, so that later changes are noticed
    if state.modified and state == files.known(name):
        files.unchanged.append(name)
        progress.end_file(state.size)
        return
    is_complete = True
    with open_source(path, progress) as source:
        for item in _source_documents(source, path, name, how, notify, left_out):
            is_complete = is_complete and isinstance(item, Document)
            yield item
    if is_complete:
        files.to_remember[name] = state


def _source_documents(
    source: Source, path: Path, name: str, how: Reading, notify: Notify, left_out: LeftOut
) -> Items:
    if is_table(path):
        rows, roles = _clear_table(source, how)
        yield from _row_documents(rows, roles, name, notify)
        left_out.update(rows.left_out)
        return
    table = read(source, how, name) if source.head.strip() else None
    if table is None or (
        table.sample and not any(row.fields["text"].strip() for row in table.sample)
    ):
        notify(f"left out: {source.name} is empty")  # or a note with front matter alone
        left_out.add("empty file")
        return
    if source.format is not CorpusFormat.TEXT:
        table.remark = ""  # those of all files would be too many
    yield from table_documents(table, resolve(table, how.wanted), notify)
    left_out.update(table.left_out)


def is_table(path: Path) -> bool:
    """Whether a file is a table, by its name."""
    return format_by_name(path) not in DOCUMENTS


class _UnclearError(CorpusError):
    """A file is not a table, or its text column cannot be guessed."""


def _clear_table(source: Source, how: Reading) -> tuple[Table, Roles]:
    """A table and the roles of its columns, unless a guess of its text may be wrong."""
    try:
        table = read(source, how)
        roles = resolve(table, how.wanted)
    except BadRowError:
        raise
    except CorpusError as error:
        raise _UnclearError(str(error)) from None
    column = roles.text[0]
    # A single record may be settings.
    is_record = source.format is CorpusFormat.JSON and len(table.sample) == 1
    is_doubtful = is_record and plain_name(column) not in TEXT
    if not how.wanted.text and (is_doubtful or holds_numbers(table, column)):
        raise _UnclearError(f"{table.name}: is '{shortened(column)}' the text?")
    if roles.id and not how.wanted.id and not are_ids(table, roles.id, roles.text):
        roles = roles._replace(id=None)
    return table, roles


def _row_documents(table: Table, roles: Roles, file: str, notify: Notify) -> Items:
    """The rows of a table, with ids like ``survey.csv#id=k7`` or ``survey.csv#row=7``."""
    stem = without_gz(PurePath(file)).stem
    for row in table_documents(table, roles, notify, "documents are named by their rows"):
        if isinstance(row, BadRowError):
            if row.document_id is None:
                yield BadFileError(row.source, row.reason, file)
            else:
                row.document_id = f"{file}#id={row.document_id}"
                yield row
            continue
        own: dict[str, object] = {"file": file}
        if row.id is not None:
            title = row.title or f"{stem}, {row.id}"
            name = f"{file}#id={row.id}"
        else:
            # At the end of its source: ``survey.csv:7``, ``films.json, item 7``.
            own["row"] = number = int(row.source[len(row.source.rstrip("0123456789")) :])
            title = f"{stem}, row {number}" + (f": {row.title}" if row.title else "")
            name = f"{file}#row={number}"
        others = {
            f"{_PREFIX}{field}" if field in ("file", "row") else field: value
            for field, value in row.metadata.items()
        }
        yield Document(name, row.text, title, {**own, **others}, row.source)


def _spec(folder: Path, exclude: Sequence[str]) -> GitIgnoreSpec:
    from pathspec import GitIgnoreSpec

    listed = folder / IGNORE_FILE
    with reading(str(listed)):
        lines = listed.read_text("utf-8-sig").splitlines() if listed.is_file() else []
    try:
        return GitIgnoreSpec.from_lines([*lines, *exclude])
    except ValueError as error:
        raise ArgumentError(f"not a valid .gitignore pattern: {error}") from None


def _counted(reason: str, names: Sequence[str]) -> str:
    """``2 linked (a, b)``: how many are left out for a reason, and the first ones."""
    more = ", …" if len(names) > NAMED else ""
    return f"{len(names):,} {reason} ({', '.join(names[:NAMED])}{more})"
