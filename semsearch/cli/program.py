"""The program's commands as one group: its errors, its messages, its help."""

from __future__ import annotations

import logging
import os
from typing import Any

import click

from semsearch.cli.lazy import LazyGroup
from semsearch.errors import SemsearchError, with_code
from semsearch.version import __version__

#: Commands by name, with a line of help, in the order in which help lists them.
COMMANDS = {
    "index": "Encode a corpus into an index.",
    "query": "Search an index.",
    "serve": "Serve indexes over HTTP.",
    "mcp": "Let agents search indexes (Model Context Protocol).",
    "pairs": "Find the most similar pairs of a collection.",
    "map": "Lay the passages of an index out in two dimensions.",
    "cluster": "Group the passages of an index by what they are about.",
    "compare": "Show what several systems find, side by side.",
    "eval": "Measure systems on data sets, with uncertainty.",
    "inspect": "Open an encoder: word pieces, ids, token vectors.",
    "train": "Train encoders and rerankers: with labels, without, from scratch.",
    "info": "Show what an index holds.",
    "export": "Write documents or vectors into files of other programs.",
    "delete": "Remove documents from an index.",
    "compact": "Rewrite an index without what was deleted.",
    "verify": "Check an index, and repair it.",
    "push": "Copy an index to Milvus, without encoding.",
    "pull": "Copy an index from Milvus, without encoding.",
    "completion": "Print the completion script of a shell.",
    "datasets": "Published data sets: list, find, fetch.",
    "explain": "Explain an error by its code.",
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

            raise click.ClickException(visible(with_code(error))) from error


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
