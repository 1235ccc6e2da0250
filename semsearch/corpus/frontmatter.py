"""Parses front matter of Markdown texts, as used by static site generators."""

from __future__ import annotations

import re
import tomllib
from typing import Any

from semsearch.errors import CorpusError, first_line

#: The longest front matter.
MAX_CHARACTERS = 1 << 16

_YAML = re.compile(r"---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_TOML = re.compile(r"\+\+\+[ \t]*\n(.*?)^\+\+\+[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_LIKE_FIELDS = re.compile(r"\s*(?:#.*\n\s*)*[\w\"'-][^\n:]{0,100}:(?:\s|\Z)")

# Times and codes are text: 12:30 is no number to the base of 60, 01234 not octal.
_NO_NUMBER = re.compile(r"[-+]?0[0-9_]|.*:")


def split_front_matter(text: str) -> tuple[dict[str, Any], str]:
    """Split a Markdown text into the fields of its front matter and the rest.

    YAML is enclosed in lines of ``---``, TOML in lines of ``+++``. A text that merely begins with
    a horizontal rule has no front matter.

    Raises:
        CorpusError: the front matter is invalid.
    """
    head = text[:MAX_CHARACTERS]
    if found := _TOML.match(head):
        try:
            fields: Any = tomllib.loads(found[1])
        except (ValueError, RecursionError) as error:
            raise CorpusError(f"its front matter is not TOML: {first_line(error)}") from None
    elif (found := _YAML.match(head)) and (not found[1].strip() or _LIKE_FIELDS.match(found[1])):
        fields = _yaml(found[1]) or {}
    else:
        return {}, text
    if not isinstance(fields, dict):
        return {}, text
    named = {str(name): value for name, value in fields.items()}
    return named, text[found.end() :].lstrip("\n")


def _yaml(text: str) -> Any:
    import yaml

    class Loader(yaml.SafeLoader):  # type: ignore[misc]  # yaml has no annotations
        """YAML without aliases, which can expand to any amount of data."""

        def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
            if self.check_event(yaml.AliasEvent):
                raise yaml.YAMLError("it has aliases")
            return super().compose_node(parent, index)

    def number_or_text(loader: Any, node: yaml.ScalarNode) -> Any:
        if _NO_NUMBER.match(node.value):
            return node.value
        is_int = node.tag.endswith("int")
        return loader.construct_yaml_int(node) if is_int else loader.construct_yaml_float(node)

    for kind in ("int", "float"):
        Loader.add_constructor(f"tag:yaml.org,2002:{kind}", number_or_text)
    try:
        return yaml.load(text, Loader)  # noqa: S506 - a SafeLoader
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: an impossible date
        problem = getattr(error, "problem", None) or first_line(error)
        raise CorpusError(f"its front matter is not YAML: {problem}") from None
