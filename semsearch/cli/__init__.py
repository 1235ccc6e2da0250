"""The command line: parse, call, render. One file a command; none is imported before it is used."""

from __future__ import annotations

import gc
import logging
import os
import sys
from contextlib import suppress
from typing import Any, NoReturn

import click

from semsearch.cli.lazy import LazyGroup
from semsearch.errors import SemsearchError
from semsearch.version import __version__

__all__ = ["main", "run"]

#: Commands by name, with a line of help, in the order in which help lists them.
COMMANDS = {
    "index": "Encode a corpus into an index.",
    "query": "Find what is meant.",
    "serve": "Serve indexes over HTTP.",
    "mcp": "Let agents search indexes (Model Context Protocol).",
    "pairs": "Find the most similar pairs of a collection.",
    "map": "Lay the passages of an index out in two dimensions.",
    "cluster": "Group the passages of an index by what they are about.",
    "compare": "Show what several systems find, side by side.",
    "eval": "Measure systems on data sets, with uncertainty.",
    "inspect": "Open an encoder: word pieces, ids, token vectors.",
    "train": "Train encoders and rerankers: with labels, without, from scratch.",
    "info": "Tell what an index holds.",
    "delete": "Remove documents from an index.",
    "compact": "Rewrite an index without what was deleted.",
    "verify": "Check an index, and repair it.",
    "completion": "Print the completion script of a shell.",
    "datasets": "Published data sets: list, find, fetch.",
}


class MainGroup(LazyGroup):
    """Says our errors in one line; without a command, what is here and what can be done."""

    def main(self, *args: Any, **options: Any) -> Any:
        """Run the program, or tell a shell what can be completed."""
        if "_SEMSEARCH_COMPLETE" in os.environ:
            import semsearch.cli.shells  # noqa: F401 - click finds what it registers
        return super().main(*args, **options)

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        """Fill the context's parameters from the command line."""
        if not args and not context.resilient_parsing:
            from semsearch.cli.overview import show_overview

            show_overview()
            context.exit()
        return super().parse_args(context, args)

    def invoke(self, context: click.Context) -> Any:
        """Run a command."""
        try:
            return super().invoke(context)
        except SemsearchError as error:
            from semsearch.cli.render import visible

            raise click.ClickException(visible(str(error))) from error


class _MessageHandler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        from semsearch.cli.render import visible

        click.echo(visible(record.getMessage()), err=True)


@click.group(
    cls=MainGroup,
    lazy={name: (f"semsearch.cli.{name}_command", line) for name, line in COMMANDS.items()},
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="semsearch", message="%(prog)s %(version)s")
def main() -> None:
    """Search sentences and passages by what they mean.

    \b
    semsearch index corpus.csv                 encode a corpus into indexes/corpus
    semsearch query "ways to save money"       search it
    semsearch COMMAND --help                   options and examples of a command
    """
    logger, handler = logging.getLogger("semsearch"), _MessageHandler()
    logger.addHandler(handler)
    click.get_current_context().call_on_close(lambda: logger.removeHandler(handler))


def run() -> NoReturn:
    """The program `semsearch`: the command, and then the end of the process at once.

    Python would first take apart what it has imported, which takes a quarter as long as a query.
    """
    gc.set_threshold(200_000)  # imports make much and drop little: collecting so often is in vain
    status: object
    try:
        status = main.main(prog_name="semsearch")
    except SystemExit as leaving:
        status = leaving.code
    except OSError as error:  # of the output; files of ours raise errors of ours
        _tell(error)
        status = 1
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError as error:  # a full disk, or a reader that has gone
        _tell(error)
        status = 1
    os._exit(status if isinstance(status, int) else 0)


def _tell(error: OSError) -> None:
    with suppress(OSError):
        os.write(2, f"Error: the output cannot be written: {error.strerror}\n".encode())
