"""``semsearch completion``: what a shell needs to complete commands."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from semsearch.cli.command import Command

SHELLS = ("bash", "zsh", "fish")


@click.command("completion", cls=Command)
@click.argument("shell", type=click.Choice(SHELLS))
def command(shell: str) -> None:
    """Print a script with which SHELL completes commands, options, indexes, spaces and fields.

    \b
    semsearch completion bash >> ~/.bashrc
    semsearch completion zsh >> ~/.zshrc
    semsearch completion fish > ~/.config/fish/completions/semsearch.fish
    """
    script = get_completion_class(shell)
    if script is not None:  # one of these
        root = click.get_current_context().find_root()
        click.echo(script(root.command, {}, "semsearch", "_SEMSEARCH_COMPLETE").source())
