"""Options shared by several commands, and the indexes that they name."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import click
from click.core import ParameterSource

from semsearch.arguments import place
from semsearch.cli.progress import IndexingProgress
from semsearch.cli.render import visible
from semsearch.errors import ArgumentError, IndexNotFoundError

if TYPE_CHECKING:
    from semsearch.indexing.removal import Allowance, Removal

#: The default folder of indexes.
INDEXES = Path("indexes")
#: The variable that names an index, for most commands.
INDEX_VARIABLE = "SEMSEARCH_INDEX"


def indexes_here() -> list[Path]:
    """The indexes under indexes/, by name; not those whose creation failed."""
    files = INDEXES.glob("*/index.sqlite")
    return sorted(file.parent for file in files if file.exists() and file.stat().st_size)


def existing_index(directory: Path | None) -> Path:
    """The index given by `--index`, or the only one under indexes/.

    ``notes`` is also the name of ``indexes/notes``, if there is no ``notes``.

    Raises:
        IndexNotFoundError: none is given, and there is none or more than one.
    """
    if directory is not None:
        known = INDEXES / directory
        is_name = (known / "index.sqlite").exists() and not directory.exists()
        return known if is_name else directory
    found = indexes_here()
    if len(found) == 1:
        return found[0]
    if not found:
        raise _no_index()
    names = ", ".join(map(str, found))
    raise IndexNotFoundError(f"several indexes here ({names}); name one with --index")


def index_to_change(directory: Path | None) -> Path:
    """As `existing_index`, for commands whose `--index` has no variable: it comes second."""
    named = os.environ.get(INDEX_VARIABLE)
    return existing_index(place(named) if directory is None and named else directory)


def is_given(name: str) -> bool:
    """Whether the command line gives a parameter, rather than its default or a variable."""
    return click.get_current_context().get_parameter_source(name) is ParameterSource.COMMANDLINE


def all_indexes(directories: Sequence[Path]) -> dict[str, Path]:
    """The given indexes, or all under indexes/, by name.

    Raises:
        ArgumentError: two indexes have the same name.
        IndexNotFoundError: none is given, and there is none.
    """
    found: dict[str, Path] = {}
    for directory in map(existing_index, directories or indexes_here()):
        name = directory.resolve().name
        if name in found:
            raise ArgumentError(f"two indexes are named '{name}'; rename one of the directories")
        found[name] = directory
    if not found:
        raise _no_index()
    return found


def _no_index() -> IndexNotFoundError:
    return IndexNotFoundError(
        f"no index under {INDEXES}/; make one with: semsearch index CORPUS, "
        "or name one with --index"
    )


#: Completes files and folders.
complete_file = click.Path().shell_complete

_Command = TypeVar("_Command", bound=Callable[..., Any])


class Decorator(Protocol):
    """A decorator that adds options to a command."""

    def __call__(self, command: _Command, /) -> _Command:
        """Add the options."""


class Place(click.Path):
    """A directory, or the address of an index (`semsearch.arguments.Address`)."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Parse the location."""
        return place(str(value))


def together(*options: Decorator) -> Decorator:
    """Combine several options into one decorator; help lists them in this order."""

    def decorate(command: _Command) -> _Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def directory_option(description: str, envvar: str | None = None) -> Decorator:
    """``--index DIR``, passed to the command as `directory`."""
    return click.option(
        "--index",
        "directory",
        metavar="DIR",
        type=Place(),
        envvar=envvar,
        help=description,
    )


def judged_option(beginning: str) -> Decorator:
    """``--queries FILE`` and ``--qrels FILE``; `beginning` starts the help of `--queries`."""
    file = click.Path(path_type=Path)
    return together(
        click.option(
            "--queries",
            metavar="FILE",
            type=file,
            help=f"{beginning}JSON lines with _id and text, or a table of id and text.",
        ),
        click.option(
            "--qrels",
            metavar="FILE",
            type=file,
            help="TREC's 'query 0 document relevance', or a table of query-id, document-id, "
            "relevance.",
        ),
    )


def format_option(*names: str, description: str) -> Decorator:
    """``--format``, passed to the command as `format_name`; the first name is the default."""
    return click.option(
        "--format",
        "format_name",
        type=click.Choice(names),
        default=names[0],
        show_default=True,
        help=description,
    )


def systems_option(default: str | None, description: str, shown_default: str = "") -> Decorator:
    """``--system SPEC``, which may be repeated, passed to the command as `systems`."""
    return click.option(
        "--system",
        "systems",
        metavar="SPEC",
        shell_complete=complete_file,
        multiple=True,
        default=None if default is None else [default],
        show_default=not shown_default,
        help=f"{description}; several are compared."
        + (f"  [default: {shown_default}]" if shown_default else ""),
    )


index_option = directory_option(
    "The index directory; optional if there is only one index under indexes/. "
    f"[env: {INDEX_VARIABLE}]",
    envvar=INDEX_VARIABLE,
)

space_option = click.option(
    "--space",
    metavar="NAME",
    help="The embedding space of the index.  [default: the first]",
)

where_option = click.option(
    "--where",
    metavar="EXPR",
    help="Only documents whose metadata match this filter.",
)


precision_option = click.option(
    "--precision",
    type=click.Choice(["auto", "fp32", "bf16", "int8"]),
    help="The precision of the encoder: auto is bf16 if the processor supports it; int8 needs "
    "VNNI (on x86), the extra 'int8' and the data set scifact, and is refused if it loses too "
    "much on it.  [default: auto, or the index's own]",
)

eval_precision_option = click.option(
    "--precision",
    type=click.Choice(["auto", "fp32", "bf16", "int8"]),
    default="fp32",
    show_default=True,
    help="The precision of models: fp32 as in published results, auto as in an index; an existing "
    "index has its own.",
)


class Duration(click.ParamType[float]):
    """A time in seconds, such as ``300ms``, ``2s`` or ``30m``."""

    name = "TIME"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Parse the time, in seconds."""
        found = re.fullmatch(r"(\d+(?:\.\d+)?) ?(ms|[smh])", str(value))
        if not found:
            self.fail(f"'{value}' is not a time such as 300ms, 2s or 30m", param, ctx)
        return float(found[1]) * {"ms": 0.001, "s": 1, "m": 60, "h": 3600}[found[2]]


report_option = click.option(
    "--report",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Also write a page with tables and plots: DIR/index.html.  [needs the extra 'plot']",
)


indexes_option = click.option(
    "--index",
    "directories",
    metavar="DIR",
    multiple=True,
    type=Place(),
    help=f"An index directory; may be repeated.  [default: all under {INDEXES}/]",
)

removals_option = click.option(
    "--allow-removals",
    is_flag=True,
    help="Allow removing more than ten documents and a tenth of the index, without asking.",
)

dry_run_option = click.option(
    "--dry-run", is_flag=True, help="Only report what would be done; nothing is written."
)


def allowance(allowed: bool, progress: IndexingProgress | None = None) -> Allowance:
    """Whether many documents may be removed: by the option or, on a terminal, by a question."""
    if allowed or not (sys.stdin and sys.stdin.isatty() and sys.stderr.isatty()):
        return allowed

    def ask(removal: Removal) -> bool:
        if progress:
            progress.stop()
        return click.confirm(visible(f"Remove {removal}?"), err=True)

    return ask
