"""Readers that other packages bring; an entry point of `GROUP` is called by the ending of files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import PurePath

from semsearch.corpus.formats import format_by_name, without_gz
from semsearch.corpus.sources import Source
from semsearch.corpus.table import Row, Table
from semsearch.errors import BadRowError, CorpusError
from semsearch.plugins import Plugin, find_plugin

GROUP = "semsearch.readers"


def plugin_table(source: Source) -> Table | None:
    """The table of a file by the plugin for its ending.

    None where there is no such plugin, or semsearch reads such files itself.

    Raises:
        CorpusError: the plugin fails, or later where reading its rows does.
    """
    path = PurePath(source.name)
    ending = without_gz(path).suffix.lower().removeprefix(".")
    if not ending or format_by_name(path) is not None:
        return None
    plugin = find_plugin(GROUP, ending)
    if plugin is None:
        return None
    with plugin.running(source.name, CorpusError):
        table = plugin.load(source)
        if not isinstance(table, Table):
            raise TypeError(f"returned {type(table).__name__}, not a Table")
    return replace(table, rows=_rows(plugin, table))


def _rows(plugin: Plugin, table: Table) -> Iterator[Row | BadRowError]:
    with plugin.running(table.name, CorpusError):
        yield from table.rows
