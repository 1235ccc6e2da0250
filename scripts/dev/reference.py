"""Reference pages: commands, from click, and the HTTP API, from its OpenAPI schema."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

import click

from semsearch.cli import main
from semsearch.service.app import create_app
from semsearch.service.settings import Settings

DOCS = Path(__file__).parents[2] / "docs"

#: The pages that explain commands.
PAGES = {
    "index": "how-to/csv.md",
    "query": "how-to/filters.md",
    "serve": "how-to/serve.md",
    "info": "how-to/sync.md",
    "pairs": "how-to/alike.md",
    "cluster": "how-to/alike.md",
    "map": "how-to/serve.md",
    "compare": "how-to/evaluate.md",
    "inspect": "explanations/word-pieces.md",
    "export": "integrations.md",
    "eval": "how-to/evaluate.md",
    "train": "how-to/train.md",
    "train pretrain": "explanations/pre-training.md",
    "datasets": "how-to/evaluate.md",
    "delete": "how-to/sync.md",
    "compact": "how-to/sync.md",
    "verify": "how-to/sync.md",
    "copy": "milvus.md",
}


def commands_page() -> str:
    """All commands with their options, in Markdown."""
    lines = [
        "# Commands",
        "",
        "`semsearch COMMAND --help` prints the same. Options take one value each unless their "
        "description says that they may be repeated.",
        "",
    ]
    context = click.Context(main, info_name="semsearch")
    for name in main.list_commands(context):
        lines += _command(main.get_command(context, name), context, f"semsearch {name}", level=2)
    return "\n".join(lines)


def _command(command: Any, parent: click.Context, path: str, level: int) -> Iterator[str]:
    context = click.Context(command, parent, info_name=path)
    yield from [f"{'#' * level} {path}", "", *_help(command.help or ""), ""]
    usage = " ".join(command.collect_usage_pieces(context))
    yield from ["```text", f"{path} {usage}", "```", ""]
    if page := PAGES.get(path.removeprefix("semsearch ")):
        yield from [f"See [{_title(page)}](../{page}).", ""]
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            yield from _command(inner, context, f"{path} {name}", level + 1)
        return
    formatter = Records()
    command.format_options(context, formatter)
    for heading, records in formatter.sections:
        yield from [f"| {heading} | |", "|---|---|"]
        for option, description in records:
            yield f"| {_code(option)} | {_cell(description)} |"
        yield ""


def _title(page: str) -> str:
    """The heading of a page under docs/."""
    return (DOCS / page).read_text("utf-8").partition("\n")[0].removeprefix("# ")


class Records(click.HelpFormatter):
    """Records the options of a command as its help lists them, by section."""

    def __init__(self) -> None:
        super().__init__()
        self.sections: list[tuple[str, list[tuple[str, str]]]] = []

    def write_heading(self, heading: str) -> None:
        """Begin a section."""
        self.sections.append((heading, []))

    def write_dl(self, rows: Any, col_max: int = 30, col_spacing: int = 2) -> None:
        """Record options with their descriptions."""
        del col_max, col_spacing
        self.sections[-1][1].extend(rows)


def _help(text: str) -> Iterator[str]:
    """The paragraphs of a help text; those that click must not wrap are shown as code."""
    for paragraph in re.split(r"\n\s*\n", inspect.cleandoc(text).partition("\f")[0].strip()):
        if paragraph.startswith("\b"):
            yield from ["```text", paragraph.removeprefix("\b").strip("\n"), "```", ""]
        else:
            yield from [paragraph.replace("<", "&lt;"), ""]


def http_schema() -> dict[str, Any]:
    """The OpenAPI schema of a writable service."""
    return create_app({}, Settings(writable=True)).openapi()


def http_page(schema: Mapping[str, Any]) -> str:
    """All requests with their parameters and responses, in Markdown."""
    lines = [
        "# HTTP",
        "",
        "`semsearch serve` answers these requests; try them out at its `/docs`. "
        "The whole schema is [openapi.json](openapi.json). Errors are problem details "
        "(`application/problem+json`, RFC 9457); their `code`, where semsearch itself refuses "
        "something, is explained under [Errors](errors.md). With a token (`SEMSEARCH_TOKEN`), "
        "requests must carry `Authorization: Bearer TOKEN`.",
        "",
    ]
    for path, operations in schema["paths"].items():
        for method, operation in operations.items():
            lines += _operation(schema, f"{method.upper()} {path}", operation)
    return "\n".join(lines)


def _operation(schema: Mapping[str, Any], name: str, operation: Mapping[str, Any]) -> Iterator[str]:
    yield from [f"## {_code(name)}", "", f"{operation.get('summary', '')}.", ""]
    fields = [
        (parameter["name"], parameter["in"], parameter["schema"], parameter.get("description", ""))
        for parameter in operation.get("parameters", [])
    ]
    for kind, content in operation.get("requestBody", {}).get("content", {}).items():
        body = _resolved(schema, content["schema"])
        fields += [
            (field, kind, value, value.get("description", ""))
            for field, value in body.get("properties", {}).items()
        ]
    fields.sort(key=lambda field: field[1] != "path")
    for place, group in groupby(fields, key=lambda field: field[1]):
        where = {"path": "In the path", "query": "In the query"}.get(place, f"Body ({place})")
        yield from [f"| {where} | Type | Default | |", "|---|---|---|---|"]
        for field, _, value, description in group:
            default = value.get("default")
            shown = "" if default in (None, "", [], {}) else _code(default)
            kind = _cell(_type(schema, value))
            yield f"| {_code(field)} | {kind} | {shown} | {_cell(description)} |"
        yield ""
    responses = [
        f"{status} ({response['description']})"
        for status, response in operation["responses"].items()
    ]
    yield from [f"Responses: {', '.join(responses)}.", ""]


def _type(schema: Mapping[str, Any], value: Mapping[str, Any]) -> str:
    """A short name for a JSON schema."""
    value = _resolved(schema, value)
    if "anyOf" in value:
        kinds = [_type(schema, kind) for kind in value["anyOf"] if kind.get("type") != "null"]
        return " or ".join(dict.fromkeys(kinds))
    if "enum" in value:
        return ", ".join(map(str, value["enum"]))
    if value.get("type") == "array":
        return f"list of {_type(schema, value.get('items', {}))}"
    return str(value.get("type", "any"))


def _resolved(schema: Mapping[str, Any], value: Mapping[str, Any]) -> Mapping[str, Any]:
    if "$ref" not in value:
        return value
    found: Any = schema
    for part in value["$ref"].removeprefix("#/").split("/"):
        found = found[part]
    return found


def _code(value: object) -> str:
    """The value as code; a bar within backticks would end a table cell."""
    return f"`{value}`" if "|" not in str(value) else _cell(f"<code>{value}</code>")


def _cell(text: str) -> str:
    """The text of a table cell: no bars, and no brackets that would become links."""
    return " ".join(text.split()).replace("|", "&#124;").replace("[", "&#91;")
