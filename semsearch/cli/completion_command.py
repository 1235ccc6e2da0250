"""``semsearch completion``: print the completion script for a shell."""

from __future__ import annotations

import click

from semsearch.cli import shells
from semsearch.cli.command import Command

#: The environment variable through which a script requests completions.
COMPLETING = "_SEMSEARCH_COMPLETE"

SHELLS = {"bash": shells.Bash, "zsh": shells.Zsh, "fish": shells.Fish}


@click.command("completion", cls=Command)
@click.argument("shell", type=click.Choice(list(SHELLS)))
def command(shell: str) -> None:
    """Print a script that lets SHELL complete commands, options, indexes, spaces and fields.

    \b
    semsearch completion bash >> ~/.bashrc
    semsearch completion zsh >> ~/.zshrc
    semsearch completion fish > ~/.config/fish/completions/semsearch.fish
    """
    root = click.get_current_context().find_root().command
    click.echo(SHELLS[shell](root, {}, "semsearch", COMPLETING).source())
