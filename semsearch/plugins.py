"""Plugins: encoders and stores of other packages, found by their entry points.

Installed packages are searched only for names unknown to semsearch, and only the plugin with that
name is imported.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

from semsearch.errors import SemsearchError, first_line

logger = logging.getLogger(__name__)


class Plugin(NamedTuple):
    """A loaded entry point."""

    name: str
    package: str  #: its distribution
    load: Any  #: the object that the entry point names

    @contextmanager
    def running(self, doing: str, error: type[SemsearchError]) -> Iterator[None]:
        """Convert exceptions of the plugin's code into an error that names the plugin.

        Args:
            doing: its task, for the message, such as ``reading films.bib``.
            error: the class of the error.
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
    """The plugin with this name; plugins that cannot be imported are logged and ignored.

    Args:
        group: the group of entry points, such as ``semsearch.encoders``.
        name: the name of the entry point.
    """
    from importlib.metadata import entry_points

    for entry in entry_points(group=group, name=name):
        package = entry.dist.name if entry.dist else "unknown"
        try:
            return Plugin(name, package, entry.load())
        except Exception as error:
            logger.warning(
                "plugin '%s' of package %s cannot be loaded and is ignored: %s: %s",
                name,
                package,
                type(error).__name__,
                first_line(error),
            )
    return None
