"""The program and its commands, imported when they are called; errors in one line."""

from __future__ import annotations

import logging
import sys
from importlib import import_module
from typing import Any

import click

from semsearch import __version__
from semsearch.cli.render import visible
from semsearch.errors import ArgumentError, SemsearchError, with_code

#: The exit status after Ctrl-C.
INTERRUPTED_STATUS = 130

#: Commands by name, with a line of help, under the headings of the help.
SECTIONS = {
    "Search": {
        "index": "Encode a corpus into an index.",
        "configure": "Change the spaces and the search of an index.",
        "query": "Search an index by meaning, words or both.",
        "open": "Show a file or folder in the browser, indexed in the cache.",
        "serve": "Serve indexes over HTTP, or to agents (MCP).",
        "info": "Show the contents of an index.",
    },
    "Explore": {
        "pairs": "Find the most similar pairs in a collection.",
        "cluster": "Group the passages of an index by topic.",
        "map": "Lay out the passages of an index in two dimensions.",
        "compare": "Compare the results of several systems side by side.",
        "inspect": "Inspect an encoder: word pieces, ids, token vectors.",
        "export": "Write documents or vectors to files for other programs.",
    },
    "Evaluate and train": {
        "eval": "Measure systems on data sets, with uncertainty.",
        "train": "Train encoders and rerankers: with or without labels, or from scratch.",
        "datasets": "List, locate and download published data sets.",
    },
    "Maintain": {
        "delete": "Remove documents from an index.",
        "compact": "Rewrite an index without deleted data.",
        "verify": "Check an index, and repair it.",
        "copy": "Copy an index to another place or store, without encoding.",
    },
}
COMMANDS = {name: line for section in SECTIONS.values() for name, line in section.items()}
#: The modules of commands that are not in one of their own, ``NAME_command``.
MODULES = {"map": "cluster_command"} | dict.fromkeys(SECTIONS["Maintain"], "maintenance")


class MainGroup(click.Group):
    """Imports a command when it is called, lists all under headings, prints errors in one line."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.commands = {name: click.Command(name) for name in COMMANDS}  # for suggestions

    def list_commands(self, context: click.Context) -> list[str]:
        """The names of all commands."""
        return list(COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        """The command with this name."""
        if name not in COMMANDS:
            return None
        module = import_module(f"semsearch.cli.{MODULES.get(name, f'{name}_command')}")
        command: click.Command = getattr(module, f"{name}_command")
        return command

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands under their headings, without loading them."""
        width = max(map(len, COMMANDS))
        for heading, commands in SECTIONS.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), line) for name, line in commands.items()])

    def invoke(self, context: click.Context) -> Any:
        """Run a command."""
        try:
            return super().invoke(context)
        except SemsearchError as error:
            raise click.ClickException(visible(with_code(error))) from error
        except OSError as error:
            if error.filename is None:  # of the output
                raise
            refused = ArgumentError(f"{error.filename}: {error.strerror}")
            raise click.ClickException(visible(with_code(refused))) from error
        except (KeyboardInterrupt, click.Abort):  # the latter while it asks a question
            click.echo("\nAborted!", err=True)
            context.exit(INTERRUPTED_STATUS)


class _MessageHandler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        # Not click.echo, which writes past a progress bar.
        sys.stderr.write(f"{visible(record.getMessage())}\n")
        sys.stderr.flush()


@click.group(
    cls=MainGroup,
    epilog="Options and examples: semsearch COMMAND --help",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="semsearch", message="%(prog)s %(version)s")
def main() -> None:
    """Search sentences and passages by meaning.

    \b
    semsearch open survey.xlsx                 search a file in the browser
    semsearch query "refund" survey.xlsx       search it in the terminal
    semsearch index corpus.csv                 encode a corpus into indexes/corpus
    semsearch query "ways to save money"       search it
    """
    logger, handler = logging.getLogger("semsearch"), _MessageHandler()
    logger.addHandler(handler)
    click.get_current_context().call_on_close(lambda: logger.removeHandler(handler))
