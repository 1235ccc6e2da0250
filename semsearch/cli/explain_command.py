"""``semsearch explain``: what an error means, and what to do about it."""

from __future__ import annotations

import difflib
import re
import textwrap

import click

from semsearch.cli.command import Command
from semsearch.cli.options import complete_code
from semsearch.errors import ArgumentError
from semsearch.explanations import codes, page, summary

_COMMENT = re.compile(r"<!--.*?-->\n\n?", re.DOTALL)
_BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[([^\]]+)\]\(\.\./([^)]+)\)")


@click.command("explain", cls=Command)
@click.argument("code", required=False, shell_complete=complete_code)
def command(code: str | None) -> None:
    """Explain the error with this CODE, which follows its message in brackets.

    Without CODE, list all codes. To see why a hit was found: semsearch query TEXT --explain

    \b
    semsearch explain column-not-found
    semsearch explain
    """
    known = codes()
    if code is None:
        formatter = click.get_current_context().make_formatter()
        formatter.write_dl([(name, summary(name)) for name in known])
        click.echo(formatter.getvalue(), nl=False)
        return
    if code not in known:
        nearest = difflib.get_close_matches(code.lower(), known, n=1)
        remedy = f"nearest: {nearest[0]}" if nearest else "semsearch explain lists them all"
        raise ArgumentError(f"no error has the code {code!r}; {remedy}")
    click.echo(_plain(page(code)), nl=False)


def _plain(text: str) -> str:
    """Markdown as text: blocks of code indented, links as paths within the documentation."""
    text = _BLOCK.sub(_indented, _COMMENT.sub("", text))
    text = _LINK.sub(r"\1 (docs/\2)", text)
    return text.removeprefix("# ")


def _indented(block: re.Match[str]) -> str:
    language, file, body = block.groups()
    heading = f"{file}:\n\n" if file else ""
    return heading + textwrap.indent(body, "    $ " if language == "bash" else "    ").rstrip("\n")
