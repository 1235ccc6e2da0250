"""Reads a folder: its documents, each by the reader of its format, and what is left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from semsearch.corpus.converters import COLUMNS, is_readable, read_document
from semsearch.corpus.files import FileState, FolderFiles
from semsearch.corpus.formats import DOCUMENTS, CorpusFormat, format_by_name, without_gz
from semsearch.corpus.plaintext import text_row
from semsearch.corpus.sources import open_source, reading, text_of
from semsearch.corpus.table import Row, Table
from semsearch.errors import ArgumentError, BadFileError, BadRowError, CorpusError
from semsearch.texts import quantity

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

    from semsearch.corpus.sources import Progress

#: A file of patterns in a folder, each of which leaves files out of it.
IGNORE_FILE = ".semsearchignore"

#: How many files are named that are left out for one reason.
NAMED = 3

_EXCLUDED, _LINKED = "excluded", "linked folders"
_TABLES = "tables, which are indexed when they are named"
_OTHERS = "of formats that are not read"
_EXTRA = "that need the extra 'files': pip install 'semsearch[files]'"


class Folder:
    """The files of a folder and the folders in it, in the order of their paths.

    Hidden ones are left out in silence, and so are linked folders, which may lead round in a
    circle, excluded files, and files that are no documents: these with a word.

    Args:
        path: where it is.
        exclude: patterns as in .gitignore, besides those of its .semsearchignore.

    Raises:
        ArgumentError: one is no pattern.
        CorpusError: the folder cannot be read.
    """

    def __init__(self, path: Path, exclude: Sequence[str] = ()) -> None:
        self.path = path
        self._spec = _spec(path, exclude)
        self._readable: dict[CorpusFormat, bool] = {}

    def documents(self) -> Iterator[Path]:
        """The files that are read."""
        return (path for path, reason in self._entries() if not reason)

    def remark(self, files: FolderFiles) -> str:
        """What is read, what is not opened again, and what is left out and why."""
        formats: Counter[str] = Counter()
        left_out: dict[str, list[str]] = {}
        counts: Counter[str] = Counter()
        unchanged = 0
        for path, reason in self._entries():
            if not reason:
                formats[without_gz(path).suffix.lower().removeprefix(".")] += 1
                unchanged += files.looks_unchanged(self.name_of(path), path)
                continue
            counts[reason] += 1
            if counts[reason] <= NAMED:
                left_out.setdefault(reason, []).append(text_of(str(path.relative_to(self.path))))
        total = formats.total()
        told = [quantity(total, "file")]
        if formats:
            told[0] += f" ({', '.join(f'{count:,} {name}' for name, count in _sorted(formats))})"
        if unchanged:
            told.append(f"{unchanged:,} unchanged and not opened")
        if counts:
            shown = (_reason(count, reason, left_out[reason]) for reason, count in _sorted(counts))
            told.append(f"left out: {', '.join(shown)}")
        return "; ".join(told)

    def name_of(self, path: Path) -> str:
        """What a file is called: its path inside the folder, in which ``#`` begins a part."""
        return text_of(path.relative_to(self.path).as_posix()).replace("#", "%23")

    def _entries(self) -> Iterator[tuple[Path, str]]:
        """The visible files and linked folders, each with the reason why it is left out."""
        pending = [self.path]
        while pending:
            path = pending.pop()
            with reading(str(path)):
                is_folder = path.is_dir()
                is_linked = path != self.path and path.is_symlink()
                relative = path.relative_to(self.path).as_posix() + "/" * is_folder
                excluded = path != self.path and self._spec.match_file(relative)
                if is_folder and not is_linked and not excluded:
                    visible = [entry for entry in path.iterdir() if not entry.name.startswith(".")]
                    pending.extend(sorted(visible, key=lambda entry: entry.name, reverse=True))
                    continue
            if excluded:
                yield path, _EXCLUDED
            elif is_folder:
                yield path, _LINKED
            else:
                yield path, self._reason(format_by_name(path))

    def _reason(self, found: CorpusFormat | None) -> str:
        """Why files of a format are left out; nothing for those that are read."""
        if found is None:
            return _OTHERS
        if found not in DOCUMENTS:
            return _TABLES
        if found not in self._readable:
            self._readable[found] = is_readable(found)
        return "" if self._readable[found] else _EXTRA


def read_folder(
    folder: Folder, encoding: str | None, progress: Progress, files: FolderFiles
) -> Table:
    """The table of all documents in a folder, called by their paths inside the folder.

    Args:
        folder: the folder.
        encoding: of texts and HTML, as declared by the user.
        progress: is updated.
        files: knows which files are unchanged; is told which have been read.

    Raises:
        CorpusError: when it has no documents, or later where a file cannot be read.
    """
    remark = folder.remark(files)
    if next(folder.documents(), None) is None:
        raise CorpusError(f"{folder.path} has no documents to read: {remark}")
    rows = _rows(folder, encoding, progress, files)
    return Table(str(folder.path), COLUMNS, rows, announced=False, remark=remark)


def _rows(
    folder: Folder, encoding: str | None, progress: Progress, files: FolderFiles
) -> Iterator[Row | BadRowError]:
    for path in folder.documents():
        name = folder.name_of(path)
        first = files.met.setdefault(name, path)
        if first != path:
            yield BadFileError(
                text_of(str(path)), f"duplicate id '{name}' (first in {first})", name
            )
            continue
        with reading(str(path)):
            state = FileState.of(path, reading_of(encoding))
        if files.is_unchanged(name, path, state):
            progress.position = state.size
            progress.next_file()
            continue
        found = format_by_name(path)
        with open_source(path, progress) as source, files.reading(name, path, state):
            if found is None or found is CorpusFormat.TEXT:
                yield text_row(source, name, encoding)
            else:
                yield from read_document(source, name, found, encoding).rows


def reading_of(encoding: str | None) -> str:
    """How files are read; what was read in another way is read again."""
    return f"{READERS_VERSION} {encoding or ''}".rstrip()


#: Grows when the same file gives other documents than before.
READERS_VERSION = 1


def _spec(folder: Path, exclude: Sequence[str]) -> GitIgnoreSpec:
    from pathspec import GitIgnoreSpec

    lines = []
    listed = folder / IGNORE_FILE
    with reading(str(listed)):
        if listed.is_file():
            lines = listed.read_text("utf-8", "replace").splitlines()
    for pattern in [*lines, *exclude]:
        try:
            GitIgnoreSpec.from_lines([pattern])
        except ValueError:
            raise ArgumentError(f"{pattern!r} is no pattern as in .gitignore") from None
    return GitIgnoreSpec.from_lines([*lines, *exclude])


def _sorted(counts: Counter[str]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def _reason(count: int, reason: str, names: Sequence[str]) -> str:
    more = ", …" if count > len(names) else ""
    return f"{count:,} {reason} ({', '.join(names)}{more})"
