"""Shell completion for options written as ``--name=value`` and for names with spaces."""

from __future__ import annotations

import os
import re
from typing import Any

from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ZshComplete,
    add_completion_class,
)

COMPINIT = "(( $+functions[compdef] )) || { autoload -Uz compinit && compinit }"


@add_completion_class
class Bash(BashComplete):
    """Bash treats ``=`` as a word, and inserts completions without quoting them."""

    def get_completion_args(self) -> tuple[list[str], str]:
        """The words before the cursor, and the incomplete one."""
        words, incomplete = super().get_completion_args()
        return [word for word in words if word != "="], "" if incomplete == "=" else incomplete

    def format_completion(self, item: CompletionItem[Any]) -> str:
        """The line of a completion for the script."""
        typed = os.environ["COMP_WORDS"].split("\n")[int(os.environ["COMP_CWORD"])]
        if item.type == "plain" and not typed.startswith(("'", '"')):
            # The script reads two backslashes as one.
            item.value = re.sub(r"([^\w%+,./:=@-])", r"\\\\\1", item.value)
        return super().format_completion(item)


@add_completion_class
class Zsh(ZshComplete):
    """Zsh replaces the whole word, and needs `compinit` to have been run."""

    def source(self) -> str:
        """The script."""
        tag, _, script = super().source().partition("\n")
        return f"{tag}\n{COMPINIT}\n{script}"

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem[str]]:
        """The completions of a word."""
        return _with_option(incomplete, super().get_completions(args, incomplete))


@add_completion_class
class Fish(FishComplete):
    """Fish replaces the whole word."""

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem[str]]:
        """The completions of a word."""
        return _with_option(incomplete, super().get_completions(args, incomplete))


def _with_option(incomplete: str, items: list[CompletionItem[str]]) -> list[CompletionItem[str]]:
    """The completions, each after the ``--name=`` that was typed."""
    option, equals, _ = incomplete.partition("=")
    if equals and option.startswith("--"):
        for item in items:
            if item.type == "plain":
                item.value = f"{option}={item.value}"
    return items
