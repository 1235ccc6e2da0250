"""``semsearch index --watch``: keep an index up to date with files and folders."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from semsearch.cli.render import visible
from semsearch.corpus.folder import is_hidden
from semsearch.corpus.sources import is_url
from semsearch.errors import (
    ArgumentError,
    CorpusError,
    MissingExtraError,
    SemsearchError,
    with_code,
)

if TYPE_CHECKING:
    from watchfiles import Change

#: How long changes are collected before they are indexed, and the polling interval.
_COLLECT_MILLISECONDS, _WAIT_MILLISECONDS = 500, 500


def keep_in_step(
    corpora: Sequence[str],
    directory: Path,
    index_corpus: Callable[[tuple[str, ...]], None],
    encoders: tuple[str, ...],
) -> None:
    """Index a corpus, and again after each change, until Ctrl-C.

    Args:
        corpora: files and folders.
        directory: the index, whose own changes are ignored.
        index_corpus: indexes the corpus, given the encoders of a new index.
        encoders: the encoders for the first call.

    Raises:
        ArgumentError: a corpus is not a file or a folder.
        MissingExtraError: the extra ``files`` is not installed.
        CorpusError: there is no such file.
        SemsearchError: the first indexing fails; later errors are printed, and indexing is tried
            again.
    """
    changes = _changes(corpora, directory)
    try:
        next(changes)  # starts watching
        index_corpus(encoders)
        click.echo("watching for changes; stop with Ctrl-C", err=True)
        for _ in changes:
            try:
                index_corpus(())
            except SemsearchError as error:
                message = with_code(error)
                click.echo(visible(f"error: {message}; waiting for the next change"), err=True)
    except KeyboardInterrupt:
        click.echo("stopped watching", err=True)


def _changes(corpora: Sequence[str], directory: Path) -> Iterator[None]:
    """Yield once watching has begun, and after each change of the corpora."""
    try:
        from watchfiles import watch
    except ImportError:
        raise MissingExtraError("watchfiles", "files", "--watch") from None
    if any(corpus == "-" or is_url(corpus) for corpus in corpora):
        raise ArgumentError("--watch is for files and folders")
    places = [Path(corpus).absolute() for corpus in corpora]
    for place in places:
        if not place.exists():
            raise CorpusError(f"no such file: {place}")
    folders = {place for place in places if place.is_dir()}
    # Programs replace files by new ones with the same name, so folders are watched.
    parents = {place.parent for place in places if place not in folders}
    is_first = True
    for changed in watch(
        *folders,
        *parents,
        watch_filter=_filter({*places} - folders, folders, directory.absolute()),
        debounce=_COLLECT_MILLISECONDS,
        rust_timeout=_WAIT_MILLISECONDS,
        yield_on_timeout=True,
        recursive=bool(folders),
    ):
        if changed or is_first:
            is_first = False
            yield


def _filter(files: set[Path], folders: set[Path], index: Path) -> Callable[[Change, str], bool]:
    """Whether a change is one of these files, or in these folders; not one of the index."""

    def counts(change: Change, name: str) -> bool:
        del change
        path = Path(name)
        if path.is_relative_to(index):
            return False
        return path in files or any(
            path.is_relative_to(folder)
            and not any(is_hidden(part) for part in path.relative_to(folder).parts)
            for folder in folders
        )

    return counts
