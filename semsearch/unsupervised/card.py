"""The README.md of a model that was made here."""

from __future__ import annotations

from collections.abc import Mapping

from semsearch.version import __version__


def model_card(name: str, story: str, facts: Mapping[str, object]) -> str:
    """README.md of a model: what was done, and a table of what was set and measured."""
    rows = "\n".join(f"| {key} | {_cell(value)} |" for key, value in facts.items())
    return (
        f"# {_cell(name)}\n\n{story}\n\n| | |\n|---|---|\n{rows}\n\n"
        f"Made by semsearch {__version__}.\n"
    )


def _cell(value: object) -> str:
    return " ".join(str(value).split()).replace("|", "\\|")
