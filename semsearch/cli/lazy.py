"""Groups of commands that load a command's module when that command is called."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import click

from semsearch.cli.command import Group


class LazyGroup(Group):
    """Loads a command when it is called, and lists all of them without loading any.

    Args:
        lazy: the module of each command, in which it is called ``command``, and the line that
            help has for it; by name, in the order in which help lists them.
    """

    def __init__(self, *args: Any, lazy: dict[str, tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._lazy = lazy

    def list_commands(self, context: click.Context) -> list[str]:
        """The names of all commands."""
        return list(self._lazy)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        """The command of that name."""
        if name not in self._lazy:
            return None
        command: click.Command = import_module(self._lazy[name][0]).command
        return command

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without loading them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in self._lazy.items()])
