"""Options shared by several commands, and the indexes that they name."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from semsearch.cli.progress import IndexingProgress
from semsearch.cli.render import visible
from semsearch.errors import IndexNotFoundError

if TYPE_CHECKING:
    from semsearch.indexing.removal import Allowance, Removal

#: The default folder of indexes.
INDEXES = Path("indexes")
#: The variable that names an index, for most commands.
INDEX_VARIABLE = "SEMSEARCH_INDEX"
#: Adds options to a command.
Decorator = Callable[[Any], Any]

#: The type of names and files, which are completed as files.
NAME_OR_FILE = click.Path()
FILE = click.Path(path_type=Path)


class Place(click.Path):
    """A directory, or the address of an index (`semsearch.storage.address`)."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Parse the location."""
        from semsearch.storage.address import place

        return place(str(value))


def indexes_here() -> list[Path]:
    """The indexes under indexes/, by name; not those whose creation failed.

    Raises:
        IndexNotFoundError: there is none.
    """
    files = INDEXES.glob("*/index.sqlite")
    found = sorted(file.parent for file in files if file.exists() and file.stat().st_size)
    if not found:
        raise IndexNotFoundError(
            f"no index under {INDEXES}/; make one with: semsearch index CORPUS, "
            "or name one with --index"
        )
    return found


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
    if len(found) > 1:
        names = ", ".join(map(str, found))
        raise IndexNotFoundError(f"several indexes here ({names}); name one with --index")
    return found[0]


def is_given(name: str) -> bool:
    """Whether the command line gives a parameter, rather than its default or a variable."""
    return click.get_current_context().get_parameter_source(name) is ParameterSource.COMMANDLINE


def together(*options: Decorator) -> Decorator:
    """Combine several options into one decorator; help lists them in this order."""

    def decorate(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def repeated_option(flag: str, name: str, metavar: str, description: str, **more: Any) -> Decorator:
    """An option that may be repeated, passed to the command as `name`."""
    kind = NAME_OR_FILE if "SPEC" in metavar or "NAME|" in metavar else None  # completed as files
    return click.option(
        flag, name, metavar=metavar, type=kind, multiple=True, help=description, **more
    )


def directory_option(description: str, **more: Any) -> Decorator:
    """``--index DIR``, passed to the command as `directory`."""
    return click.option(
        "--index", "directory", metavar="DIR", type=Place(), help=description, **more
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


def precision_option(default: str | None, description: str) -> Decorator:
    """``--precision``."""
    kinds = click.Choice(["auto", "fp32", "bf16", "int8"])
    return click.option(
        "--precision", type=kinds, default=default, show_default=True, help=description
    )


_any_index_option = partial(
    directory_option,
    "The index directory; optional if there is only one index under indexes/. "
    f"[env: {INDEX_VARIABLE}]",
    envvar=INDEX_VARIABLE,
)
#: ``--index DIR`` of commands that need an index.
index_option = _any_index_option(
    callback=lambda context, _, given: None if context.resilient_parsing else existing_index(given)
)
#: ``--index DIR`` of commands that may do without, and call `existing_index` otherwise.
optional_index_option = _any_index_option()
space_option = click.option(
    "--space", metavar="NAME", help="The embedding space of the index.  [default: the first]"
)
where_option = click.option(
    "--where", metavar="EXPR", help="Only documents whose metadata match this filter."
)

encoder_precision_option = precision_option(
    None,
    "The precision of the encoder: auto is bf16 if the processor supports it, else int8 where it "
    "has VNNI and int8 finds 95 % of the nearest ten of fp32, else fp32.  "
    "[default: auto, or the index's own]",
)

#: Judged queries: ``--queries FILE`` and ``--qrels FILE``.
judged_options = together(
    click.option(
        "--queries",
        metavar="FILE",
        type=FILE,
        help="Your own queries: JSON lines with _id and text, or a table of id and text.",
    ),
    click.option(
        "--qrels",
        metavar="FILE",
        type=FILE,
        help="TREC's 'query 0 document relevance', or a table of query-id, document-id, relevance.",
    ),
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
