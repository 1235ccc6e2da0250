"""Encoders, readers and stores of other packages, found by their entry points.

Installed packages are looked through only for a name that semsearch does not know itself, and only
the plugin of that name is imported.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from semsearch.errors import SemsearchError, first_line

if TYPE_CHECKING:
    from importlib.metadata import Distribution, EntryPoint

logger = logging.getLogger(__name__)


class Plugin(NamedTuple):
    """What an entry point names."""

    name: str
    package: str  #: the distribution that brings it
    load: Any  #: the object

    @contextmanager
    def running(self, doing: str, error: type[SemsearchError]) -> Iterator[None]:
        """Turn what its code raises, unless it is an error of ours, into one that names it.

        Args:
            doing: what it is asked to do, such as ``reading films.bib``.
            error: of which kind.
        """
        try:
            yield
        except SemsearchError:
            raise
        except Exception as reason:
            raise error(
                f"{doing}: plugin '{self.name}' of package {self.package} failed: "
                f"{type(reason).__name__}: {first_line(reason)}"
            ) from reason


@cache
def find_plugin(group: str, name: str) -> Plugin | None:
    """The plugin of a name; one that cannot be imported is logged, and counts as not installed.

    Args:
        group: the group of entry points, such as ``semsearch.encoders``.
        name: the name of the entry point.
    """
    from importlib.metadata import distributions

    for distribution in distributions():
        for entry in _entries(distribution, group, name):
            try:
                return Plugin(name, distribution.name, entry.load())
            except Exception as error:
                _warn(f"'{name}' of package {distribution.name}", error)
    return None


def _entries(distribution: Distribution, group: str, name: str) -> Iterator[EntryPoint]:
    try:
        yield from distribution.entry_points.select(group=group, name=name)
    except Exception as error:
        if group in (distribution.read_text("entry_points.txt") or ""):
            _warn(f"list of package {distribution.name}", error)


def _warn(what: str, error: Exception) -> None:
    kind = type(error).__name__
    logger.warning("plugin %s is broken and left out: %s: %s", what, kind, first_line(error))
