"""``semsearch open``: a file or folder in the browser, from an index in the cache."""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import socket
import sys
import webbrowser
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from semsearch import __version__
from semsearch.cli.corpus_options import BadRows, corpora_argument, text_column_option
from semsearch.cli.index_command import opened_index
from semsearch.cli.progress import IndexingProgress
from semsearch.cli.render import note
from semsearch.corpus import Corpus
from semsearch.corpus.documents import SkippedRows, silent
from semsearch.encoders.cache import cache_folder
from semsearch.errors import BadFileError, BadRowError, MissingExtraError, quantity

if TYPE_CHECKING:
    from semsearch.index import Index


@click.command("open")
@corpora_argument("FILE...")
@text_column_option
@click.option("--sheet", metavar="NAME", help="The sheet of a workbook, as for `semsearch index`.")
def open_command(corpora: tuple[str, ...], **columns: Any) -> None:
    """Index FILE, a file or folder, and show it in the browser, until Ctrl-C.

    The index is in the cache. Each call compares it with the file and encodes only what changed;
    `semsearch query TEXT FILE` uses the same index. Rows that cannot be used are left out. The last
    line shows where the index is, and how to keep it. FILE is read as by `semsearch index`, which
    has more options.

    Needs the extra 'serve'.

    \b
    semsearch open survey.xlsx
    semsearch open survey.xlsx --text-column comment
    semsearch open ~/Documents
    semsearch query "refund" survey.xlsx
    """
    if find_spec("fastapi") is None:
        raise MissingExtraError("fastapi", "serve", "the page")
    index = synced_index(corpora, columns)
    name, directory = Corpus(corpora).name, index.path
    index.close()
    import uvicorn

    from semsearch.service import Settings, create_app

    app = create_app({name: directory}, Settings())
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"http://127.0.0.1:{listening.getsockname()[1]}/"
        note(f"{address} shows {name}, until Ctrl-C")
        if _has_browser():
            webbrowser.open(address)  # it waits for the server, which listens already
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False))
        with suppress(KeyboardInterrupt):  # which the server has handled
            server.run(sockets=[listening])
    note(how_to_keep(corpora, directory))


def synced_index(corpora: Sequence[str], columns: dict[str, Any] | None = None) -> Index:
    """The index of files in the cache, equal to their present content.

    Args:
        corpora: files, folders or URLs.
        columns: arguments of `Corpus`, remembered for later calls.
    """
    names = "\n".join([__version__, *(str(Path(name).absolute()) for name in corpora)])
    digest = hashlib.blake2b(names.encode(errors="surrogateescape"), digest_size=4).hexdigest()
    directory = cache_folder() / "indexes" / f"{Corpus(corpora).name}-{digest}"
    with IndexingProgress("documents") as progress:
        is_shown = not directory.exists() or any((columns or {}).values())
        notify = progress.note if is_shown else silent  # later calls do not repeat it
        bad_rows = BadRows(notify)
        corpus = Corpus(corpora, notify=notify, on_bad_row=bad_rows, **columns or {})
        documents = iter(corpus)
        documents.skipped = UnreadFiles(files=documents.files.left_out)
        index, is_new = opened_index(directory, documents, (), None, preload=True)
        try:
            with index.writer(
                on_bad_row=bad_rows,
                on_batch=lambda done: progress.update(done.documents, corpus.fraction_read),
            ) as writer:
                summary = writer.sync(documents, allow_removals=True)
        except BaseException:
            index.close()
            if is_new:
                shutil.rmtree(directory, ignore_errors=True)
            raise
    if not is_new and (summary.encoded or summary.removed):
        note(f"{quantity(summary.encoded, 'text')} encoded, {summary.removed:,} removed")
    return index


class UnreadFiles(SkippedRows):
    """Files that could not be read, whose documents are kept; rows that cannot be used are none."""

    def add(self, error: BadRowError) -> None:
        """Note a file."""
        if isinstance(error, BadFileError):
            super().add(error)


def how_to_keep(corpora: Sequence[str], directory: Path) -> str:
    """Where the index is, and the command that copies it out of the cache."""
    kept = Path("indexes") / Corpus(corpora).name
    command = shlex.join(["semsearch", "copy", str(directory), str(kept)])
    return f"index: {directory}; to keep it: {command}"


def _has_browser() -> bool:
    """Whether a page can be shown beside the terminal, rather than in it."""
    named = {"DISPLAY", "WAYLAND_DISPLAY", "BROWSER"} & os.environ.keys()
    return bool(named) or not sys.platform.startswith("linux")
