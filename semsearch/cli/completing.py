"""What the shell offers to complete: names of indexes, spaces and fields, and codes of errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from semsearch.cli.places import existing_index, indexes_here
from semsearch.errors import SemsearchError

if TYPE_CHECKING:
    from semsearch.index import Index


def complete_index(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """The indexes under indexes/; where none begins so, any directory."""
    del context, parameter
    items = [
        CompletionItem(str(path)) for path in indexes_here() if str(path).startswith(incomplete)
    ]
    return items or [CompletionItem(incomplete, type="dir")]


def complete_space(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """The spaces of the index."""
    del parameter
    return _names(context, incomplete, lambda index: [space.name for space in index.spaces()])


def complete_field(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """The metadata fields of the index."""
    del parameter
    return _names(context, incomplete, lambda index: ["id", "title", *index.fields()])


def complete_code(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """The codes of errors, with what they mean where a shell shows that."""
    from semsearch.explanations import codes, summary

    del context, parameter
    return [
        CompletionItem(code, help=summary(code)) for code in codes() if code.startswith(incomplete)
    ]


def _names(
    context: click.Context, incomplete: str, names: Callable[[Index], list[str]]
) -> list[CompletionItem]:
    """Names that begin so; none where there is no index to ask."""
    from semsearch.index import Index

    try:
        with Index.open(existing_index(context.params.get("directory"))) as index:
            known = names(index)
    except SemsearchError:
        return []
    return [CompletionItem(name) for name in known if name.startswith(incomplete)]
