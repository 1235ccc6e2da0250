"""What README.md shows is what the program does."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from pathlib import Path

import click
import pytest

from semsearch.cli import COMMANDS, main

README = (Path(__file__).parent.parent / "README.md").read_text("utf-8")
EXAMPLES = re.findall(rf"(?<![-\w/])semsearch ((?:{'|'.join(COMMANDS)})\b[^#\n]*)", README)


def test_the_python_example_runs(tmp_path, monkeypatch, minilm):
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(code, "README.md", "exec"), names)  # noqa: S102 - our own
    assert printed.getvalue().startswith("n1 0.32 The cat dozed")
    assert [hits[0].document_id for hits in names["many"]] == ["n1", "n2"]


def test_there_are_examples():
    assert len(EXAMPLES) > 10


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_option_in_it_exists(example):
    text = example.split("`")[0].split("|")[0].strip()
    with contextlib.suppress(ValueError):  # prose goes on behind the command
        name, *words = shlex.split(text)
        command = main.get_command(click.Context(main), name)
        while isinstance(command, click.Group):
            name, *words = words
            command = command.get_command(click.Context(command), name)
        known = {option for parameter in command.params for option in parameter.opts}
        used = {word for word in words if word.startswith("-") and len(word) > 1}
        assert used <= known
