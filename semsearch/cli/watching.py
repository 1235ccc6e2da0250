"""``semsearch index --watch``: keep an index up to date with files and folders."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from semsearch.cli.render import note
from semsearch.errors import ArgumentError, MissingExtraError, SemsearchError, with_code


def keep_in_step(corpora: Sequence[str], directory: Path, index_corpus: Callable[[], None]) -> None:
    """Index files and folders, and again after each change, until Ctrl-C.

    Raises:
        ArgumentError: a corpus is not a file or a folder.
        MissingExtraError: the extra ``files`` is not installed.
        SemsearchError: the first indexing fails; later errors are printed, and indexing is tried
            again.
    """
    try:
        from watchfiles import DefaultFilter, watch
    except ImportError:
        raise MissingExtraError("watchfiles", "files", "--watch") from None
    places = [Path(corpus).absolute() for corpus in corpora]
    for place in places:
        if not place.exists():
            raise ArgumentError(f"--watch is for files and folders, and {place} is none")
    # Programs replace files by new ones with the same name, so folders are watched.
    changes = watch(
        *{place if place.is_dir() else place.parent for place in places},
        watch_filter=DefaultFilter(ignore_paths=[directory.absolute()]),
        debounce=500,
        rust_timeout=500,
        yield_on_timeout=True,
        recursive=any(place.is_dir() for place in places),
    )
    try:
        next(changes)  # starts watching, before the files are read
        index_corpus()
        note("watching for changes; stop with Ctrl-C")
        for changed in changes:
            if any(Path(name).is_relative_to(place) for _, name in changed for place in places):
                try:
                    index_corpus()
                except SemsearchError as error:
                    note(f"error: {with_code(error)}; waiting for the next change")
    except KeyboardInterrupt:
        note("stopped watching")
