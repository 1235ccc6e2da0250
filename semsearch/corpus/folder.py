"""Reads a folder: each file with the reader for its format; reports the files left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, NamedTuple

from semsearch.corpus.columns import EarlierIds, Roles, are_ids, doubts, resolve
from semsearch.corpus.conversion import is_readable, read_document
from semsearch.corpus.documents import explained, table_documents
from semsearch.corpus.encodings import encoding_of, undecodable
from semsearch.corpus.files import FileState, FolderFiles
from semsearch.corpus.formats import DOCUMENTS, CorpusFormat, format_by_name, is_foreign, without_gz
from semsearch.corpus.plaintext import COLUMNS, read_text
from semsearch.corpus.readers import Reading, read
from semsearch.corpus.roles import TEXT, plain_name, shortened
from semsearch.corpus.sources import open_source, reading, text_of
from semsearch.errors import ArgumentError, BadFileError, BadRowError, CorpusError, quoted
from semsearch.records import Document
from semsearch.texts import ESCAPED_BYTE, quantity

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

    from semsearch.corpus.documents import Notify, OnBadRow
    from semsearch.corpus.sources import Progress, Source
    from semsearch.corpus.table import Table

#: The file in a folder that lists patterns of files to exclude.
IGNORE_FILE = ".semsearchignore"

#: The most files named per reason for leaving them out.
NAMED = 3

#: Prefix of columns whose names clash with the fields of a row of a file.
_PREFIX = "column."

_EXCLUDED, _LINKED, _SPECIAL = "excluded", "linked folder", "special file"
_TABLES = "table"
_OTHERS = "in unsupported formats"
_NOUNS = (_LINKED, _SPECIAL, _TABLES, "more table")
_EXTRA = "that need the extra 'files': pip install 'semsearch[files]'"


def is_hidden(name: str) -> bool:
    """Whether files and folders of this name are skipped silently, as Office's lock files are."""
    return name.startswith((".", "~$"))


class Folder(NamedTuple):
    """The files of a folder and its subfolders, sorted by path.

    Args:
        path: the folder.
        files: those that are read.
        left_out: the others by the reason they are left out; hidden ones are not listed.
    """

    path: Path
    files: list[Path]
    left_out: dict[str, list[Path]]

    def has_tables(self) -> bool:
        """Whether some files are tables."""
        return any(map(_is_table, self.files))

    def remark(self, known: FolderFiles) -> str:
        """What is read, what is unchanged, and what is left out and why."""
        suffixes = Counter(without_gz(file).suffix.lower()[1:] for file in self.files)
        parts = [quantity(len(self.files), "file")]
        if suffixes:
            counts = sorted(suffixes.items(), key=lambda item: (-item[1], item[0]))
            parts[0] += f" ({', '.join(f'{count:,} {name}' for name, count in counts)})"
        if unchanged := sum(known.looks_unchanged(self.name_of(file), file) for file in self.files):
            parts.append(f"{unchanged:,} unchanged and not opened")
        if self.left_out:
            others = sorted(self.left_out.items(), key=lambda item: (-len(item[1]), item[0]))
            shown = (_counted(reason, map(self.name_of, files)) for reason, files in others)
            parts.append(f"left out: {', '.join(shown)}")
        return "; ".join(parts)

    def name_of(self, path: Path) -> str:
        """The name of a file: its path inside the folder; ``#`` is reserved for parts."""
        return text_of(path.relative_to(self.path).as_posix()).replace("#", "%23")


def find_files(path: Path, exclude: Sequence[str] = (), *, with_tables: bool = True) -> Folder:
    """The files of a folder and its subfolders.

    Linked folders, which may form a cycle, are left out.

    Args:
        path: the folder.
        exclude: .gitignore patterns, in addition to those of its .semsearchignore.
        with_tables: whether tables are read as well.

    Raises:
        ArgumentError: a pattern is invalid.
        CorpusError: the folder cannot be read.
    """
    excluded = _spec(path, exclude)
    folder = Folder(path, [], {})
    readable = cache(is_readable)
    pending = [path]
    while pending:
        entry = pending.pop()
        with reading(str(entry)):
            is_folder = entry.is_dir()
            relative = entry.relative_to(path).as_posix() + "/" * is_folder
            if entry != path and excluded.match_file(relative):
                reason = _EXCLUDED
            elif is_folder and (entry == path or not entry.is_symlink()):
                visible = [inner for inner in entry.iterdir() if not is_hidden(inner.name)]
                pending.extend(sorted(visible, key=lambda inner: inner.name, reverse=True))
                continue
            elif is_folder:
                reason = _LINKED
            elif entry.exists() and not entry.is_file():
                reason = _SPECIAL
            elif (found := format_by_name(entry)) is None:
                reason = _OTHERS
            elif found not in DOCUMENTS and not with_tables:
                reason = _TABLES
            else:
                reason = "" if readable(found) else _EXTRA
        if reason:
            folder.left_out.setdefault(reason, []).append(entry)
        else:
            folder.files.append(entry)
    return folder


def folder_documents(
    folder: Folder,
    reading_files: Reading,
    wanted: Roles,
    files: FolderFiles,
    progress: Progress,
    on_bad_row: OnBadRow,
    notify: Notify,
) -> Iterator[Document]:
    """The documents of a folder, file by file, named by their path inside the folder.

    Tables whose text column cannot be guessed are left out and reported at the end.

    Args:
        folder: the folder.
        reading_files: how files are read.
        wanted: the columns of tables.
        files: tracks which files are unchanged and which have been read.
        progress: updated while reading.
        on_bad_row: called with the error of each bad row or file.
        notify: called with one line about what is read, and others about what is left out.

    Raises:
        CorpusError: there are no files to read.
    """
    remark = folder.remark(files)
    if not folder.files:
        raise CorpusError(f"{folder.path} has no documents to read: {remark}")
    notify(f"{folder.path}: {remark}")
    files.left_out.update(map(folder.name_of, folder.left_out.get(_EXTRA, ())))
    left_out: list[tuple[str, str]] = []
    for path in folder.files:
        name = folder.name_of(path)
        first = files.met.setdefault(name, path)
        if first != path:
            reason = f"duplicate id '{name}' (first in {first})"
            on_bad_row(BadFileError(text_of(str(path)), reason, name))
            continue
        file = _File(path, name, reading_files, wanted)
        try:
            yield from file.documents(files, progress, on_bad_row, notify)
        except _UnclearError as error:
            left_out.append((name, str(error)))
            files.left_out.add(name)
        except BadFileError as error:
            on_bad_row(BadFileError(error.source, error.reason, name))
        except CorpusError as error:
            on_bad_row(BadFileError("", str(error), name))
    _report(left_out, notify)


def fits_documents(wanted: Roles) -> bool:
    """Whether documents have all of the wanted columns."""
    return set(wanted.names) <= set(COLUMNS)


def _is_table(path: Path) -> bool:
    return format_by_name(path) not in DOCUMENTS


@dataclass(frozen=True)
class _File:
    """A file of a folder.

    Args:
        path: its path.
        name: its name in the folder.
        reading_files: how files are read.
        wanted: the columns of tables.
    """

    path: Path
    name: str
    reading_files: Reading
    wanted: Roles

    def documents(
        self, files: FolderFiles, progress: Progress, on_bad_row: OnBadRow, notify: Notify
    ) -> Iterator[Document]:
        """Its documents, unless it is unchanged.

        Raises:
            _UnclearError: it is not a table, or its text column cannot be guessed.
            CorpusError: it cannot be read.
        """
        applies = _is_table(self.path) or fits_documents(self.wanted)
        columns = self.wanted if applies else Roles((), None, None)
        with reading(str(self.path)):
            state = FileState.of(self.path, _reading_of(self.reading_files, columns))
        if files.is_unchanged(self.name, self.path, state):
            progress.position = state.size
            progress.next_file()
            return
        encoding = self.reading_files.encoding
        with open_source(self.path, progress) as source, files.reading(self.name, self.path, state):
            on_bad_row = explained(source, encoding, on_bad_row)
            found = format_by_name(self.path)
            if found not in DOCUMENTS:
                yield from self._rows(source, on_bad_row, notify)
                return
            if not source.head.strip():
                notify(f"left out: {source.name} is empty")
                return
            if found is CorpusFormat.TEXT:
                if foreign := is_foreign(source.head, found):
                    raise CorpusError(f"{source.name}: {foreign}")
                table = read_text(source, self.name, encoding)
            else:
                table = replace(read_document(source, self.name, found, encoding), remark="")
            yield from table_documents(table, columns, on_bad_row, notify)

    def _rows(self, source: Source, on_bad_row: OnBadRow, notify: Notify) -> Iterator[Document]:
        """The rows of a table, with ids like ``survey.csv#id=k7`` or ``survey.csv#row=7``."""
        command = f"semsearch index {quoted(source.name)} --text-column COLUMN"
        try:
            table = read(source, self.reading_files._replace(format=None))
        except BadRowError:
            raise
        except CorpusError as error:
            raise _UnclearError(str(error)) from None
        try:
            roles = resolve(table, self.wanted)
        except CorpusError as error:
            raise _UnclearError(f"{error} ({command})") from None
        if not self.wanted.text and (doubt := _doubt(table, roles, source.format)):
            raise _UnclearError(f"{doubt} ({command})")
        identifier = roles.id
        if identifier and not self.wanted.id and not are_ids(table.sample, identifier, roles.text):
            identifier = None
        wanted = self.wanted._replace(earlier_ids=EarlierIds(identifier or "", "the folder"))

        def bad_row(error: BadRowError) -> None:
            if error.document_id is None or isinstance(error, BadFileError):
                on_bad_row(BadFileError(error.source, error.reason, self.name))
            else:
                error.document_id = self._id_of(error.document_id, error.source)
                on_bad_row(error)

        rows = "documents are named by their rows"
        for document in table_documents(table, wanted, bad_row, notify, without_ids=rows):
            yield self._renamed(document)

    def _renamed(self, document: Document) -> Document:
        stem = without_gz(PurePath(self.name)).stem
        own: dict[str, object] = {"file": self.name}
        if document.id is not None:
            title = document.title or f"{stem}, {document.id}"
        else:
            own["row"] = row = _row_number(document.source)
            title = f"{stem}, row {row}" + (f": {document.title}" if document.title else "")
        others = {
            f"{_PREFIX}{name}" if name in ("file", "row") else name: value
            for name, value in document.metadata.items()
        }
        identifier = self._id_of(document.id, document.source)
        return Document(identifier, document.text, title, {**own, **others}, document.source)

    def _id_of(self, identifier: str | None, source: str) -> str:
        if identifier is None:
            return f"{self.name}#row={_row_number(source)}"
        return f"{self.name}#id={identifier}"


def _row_number(source: str) -> int:
    """The number at the end of a row's source: ``survey.csv:7``, ``films.json, item 7``."""
    return int(source[len(source.rstrip("0123456789")) :])


class _UnclearError(CorpusError):
    """A file is not a table, or its text column cannot be guessed."""


def _report(left_out: Sequence[tuple[str, str]], notify: Notify) -> None:
    """Report the first left-out tables in a line each, the others together."""
    for _, reason in left_out[:NAMED]:
        notify(f"left out: {reason}")
    if others := [name for name, _ in left_out[NAMED:]]:
        more = _counted("more table", others)
        notify(f"left out: {more}; index one with: semsearch index FILE --text-column COLUMN")


def _doubt(table: Table, roles: Roles, found: CorpusFormat | None) -> str | None:
    """Why the guessed text column may be wrong."""
    # A single record may be settings.
    is_single = found is CorpusFormat.JSON and len(table.sample) == 1
    if is_single and plain_name(roles.text[0]) not in TEXT:
        return f"{table.name}: is '{shortened(roles.text[0])}' the text?"
    return next(iter(doubts(table, roles)), None)


def _reading_of(reading_files: Reading, columns: Roles) -> str:
    """The options a file is read with; a file read with other options is read again."""
    parts = [str(READERS_VERSION), reading_files.encoding or ""]
    if columns.names or reading_files.header is not None:
        parts.append(repr((*columns, reading_files.header)))
    return " ".join(parts).rstrip()


#: Incremented when the same file yields different documents than before.
READERS_VERSION = 5


def _spec(folder: Path, exclude: Sequence[str]) -> GitIgnoreSpec:
    from pathspec import GitIgnoreSpec

    lines = []
    listed = folder / IGNORE_FILE
    with reading(str(listed)):
        if listed.is_file():
            content = listed.read_bytes()
            lines = content.decode(encoding_of(content, None), "surrogateescape").splitlines()
    if undecoded := next(filter(ESCAPED_BYTE.search, lines), None):
        raise CorpusError(f"{listed}: {undecodable(undecoded, option=None)}")
    for pattern in [*lines, *exclude]:
        try:
            GitIgnoreSpec.from_lines([pattern])
        except ValueError:
            raise ArgumentError(f"{pattern!r} is not a valid .gitignore pattern") from None
    return GitIgnoreSpec.from_lines([*lines, *exclude])


def _counted(reason: str, names: Iterable[str]) -> str:
    """``2 linked folders (a, b)``: how many are left out for a reason, and the first ones."""
    listed = list(names)
    count = len(listed)
    counted = quantity(count, reason) if reason in _NOUNS else f"{count:,} {reason}"
    return f"{counted} ({', '.join(listed[:NAMED])}{', …' if count > NAMED else ''})"
