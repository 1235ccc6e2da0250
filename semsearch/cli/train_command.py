"""``semsearch train``: models made or improved; one file a subcommand."""

from __future__ import annotations

from importlib import import_module

import click

__all__ = ["command"]

#: Subcommands by name, in the order in which help lists them.
COMMANDS = {
    "pretrain": "Pre-train a BERT on a corpus.",
    "adapt": "Fit an encoder to a corpus, without labels.",
    "distil": "Make a faster student of an encoder.",
}


class _TrainGroup(click.Group):
    def list_commands(self, context: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        command: click.Command = import_module(f"semsearch.cli.train_{name}").command
        return command

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group("train", cls=_TrainGroup)
def command() -> None:
    """Train a model.

    \b
    semsearch train pretrain corpus.csv --size tiny --minutes 10
    semsearch train adapt corpus.csv --encoder minilm
    semsearch train distil minilm --static
    semsearch train COMMAND --help             options and examples of a command
    """
