"""A page about each error, CODE.md in this folder: `semsearch explain` and the documentation."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent


def codes() -> list[str]:
    """The codes of all errors."""
    return sorted(file.stem for file in FOLDER.glob("*.md"))


def page(code: str) -> str:
    """What is said about an error, in Markdown.

    Args:
        code: one of `codes`.
    """
    return (FOLDER / f"{code}.md").read_text("utf-8")


def summary(code: str) -> str:
    """What it means, in a line: the paragraph below the title of its page.

    Args:
        code: one of `codes`.
    """
    return page(code).split("\n\n")[1].replace("\n", " ")
