"""``semsearch index --watch``: keep an index up to date with files and folders."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import click

from semsearch.cli.render import note
from semsearch.errors import ArgumentError, MissingExtraError, SemsearchError, with_code


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
        SemsearchError: the first indexing fails; later errors are printed, and indexing is tried
            again.
    """
    try:
        from watchfiles import Change, DefaultFilter, watch
    except ImportError:
        raise MissingExtraError("watchfiles", "files", "--watch") from None
    places = [Path(corpus).absolute() for corpus in corpora]
    for place in places:
        if not place.exists():
            raise ArgumentError(f"--watch is for files and folders, and {place} is none")

    def is_relevant(change: Change, name: str) -> bool:
        path = Path(name)
        return without_index(change, name) and any(map(path.is_relative_to, places))

    without_index = DefaultFilter(ignore_paths=[directory.absolute()])
    # Programs replace files by new ones with the same name, so folders are watched.
    folders = {place if place.is_dir() else place.parent for place in places}
    changes = watch(
        *folders,
        watch_filter=is_relevant,
        debounce=500,
        rust_timeout=500,
        yield_on_timeout=True,
        recursive=any(place.is_dir() for place in places),
    )
    try:
        next(changes)  # starts watching, before the files are read
        index_corpus(encoders)
        click.echo("watching for changes; stop with Ctrl-C", err=True)
        for changed in changes:
            if not changed:
                continue
            try:
                index_corpus(())
            except SemsearchError as error:
                note(f"error: {with_code(error)}; waiting for the next change")
    except KeyboardInterrupt:
        click.echo("stopped watching", err=True)
