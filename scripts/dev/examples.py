"""Runs the examples in README.md, in the pages under docs/ and in those about errors.

Each page runs in an empty folder, as a reader would follow it from top to bottom:

    ```csv title="tickets.csv"     any block with a title is written to that file
    ```bash                        commands, which must succeed
    ```console                     commands after "$ ", with their output
    ```python                      code; a ```text block right after it is its output

A comment above a block keeps it from running, and says why and which test covers it instead:

    <!-- not run: needs a Milvus server (tests/storage/test_congruence.py) -->

`--update` writes the output into the pages. Some pages need files of SEMSEARCH_DATA.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple
from unittest.mock import patch

from click.testing import CliRunner

import semsearch
from semsearch.cli import main as program

ROOT = Path(__file__).parents[2]

#: Pages whose examples have tests of their own.
ELSEWHERE = {"docs/integrations.md": "tests/integrations/test_documentation.py"}

#: Files of SEMSEARCH_DATA that pages need, by the names that the pages use.
FILES = {
    "docs/explanations/from-glove-to-sbert.md": {"glove.txt": "glove/glove.6B.50d.txt"},
    "docs/films.md": {"movies-1960s.json": "corpora/movies/movies-1960s.json"},
}

#: The terminal of the examples.
ENVIRONMENT = {"COLUMNS": "88", "LINES": "40", "TTY_COMPATIBLE": "1", "TERM": "dumb"}

_BLOCK = re.compile(
    r"^(?P<comment>[ ]*<!-- not run: (?P<reason>[^\n]*) -->\n\n?)?"
    r"^(?P<indent>[ ]*)```(?P<language>\w+)(?P<attributes>[^\n]*)\n"
    r"(?P<body>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)
_TITLE = re.compile(r'title="([^"]+)"')
#: Output that differs between runs or machines.
_VOLATILE = re.compile(
    r"\d[\d,.]* documents?/s|\d[\d,.]*(?=\s?(?:s|ms|min|MB|kB|GB|B|[a-z]+/s)\b)"
    r"|\d{4}-\d\d-\d\d[T ]\d\d:\d\d[\d:.+Z]*|\b(?:bf16|fp32)\b"
    r"|(?<=\[Errno )\d+"
)
#: The folder in which pages show that examples are run, where output has an absolute path.
FOLDER = "/srv"
_DECIMAL = re.compile(r"(-?\d+\.\d+)")
#: How far scores may differ between processors that compute in bf16 and those that do not.
TOLERANCE = 0.011


class Block(NamedTuple):
    """A fenced block of a page."""

    language: str
    body: str  #: without the indentation of the block
    title: str | None  #: the file to write
    not_run: str | None  #: the reason
    span: tuple[int, int]  #: of the body in the page
    indent: str
    end: int  #: of the block in the page


class CommandError(Exception):
    """A command failed; the message has its output."""


class Example(NamedTuple):
    """A block that shows output, with the actual output."""

    block: Block
    shown: str
    printed: str


def pages() -> list[Path]:
    """README.md and the handwritten pages under docs/."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(text: str) -> Iterator[Block]:
    """The fenced blocks of a page, in order."""
    for match in _BLOCK.finditer(text):
        indent = match["indent"]
        title = _TITLE.search(match["attributes"])
        yield Block(
            match["language"],
            re.sub(rf"^{indent}", "", match["body"], flags=re.MULTILINE),
            title[1] if title else None,
            match["reason"],
            match.span("body"),
            indent,
            match.end(),
        )


def run(text: str) -> list[Example]:
    """Run a page in the current folder.

    Raises:
        CommandError: a command of a `bash` block failed.
    """
    names: dict[str, object] = {"__name__": "__main__"}
    examples = []
    previous: tuple[Block, str] | None = None  # Python, and what it printed
    with patch.dict(os.environ, ENVIRONMENT):
        for block in blocks(text):
            if block.language == "text" and previous is not None:
                code, printed = previous
                if not text[code.end : block.span[0]].strip().removeprefix("```text"):
                    examples.append(Example(block, block.body, _as_if_in(FOLDER, printed)))
            previous = None
            if block.not_run is not None:
                continue
            if block.title is not None:
                Path(block.title).parent.mkdir(parents=True, exist_ok=True)
                Path(block.title).write_text(block.body, "utf-8")
            elif block.language == "bash":
                for command in _commands(block.body):
                    status, printed = _shell(command)
                    if status:
                        raise CommandError(f"$ {command}\n{printed}")
            elif block.language == "console":
                printed = "\n".join(session(block.body))
                examples.append(Example(block, block.body, _as_if_in(FOLDER, printed)))
            elif block.language == "python":
                previous = block, _python(block.body, names)
    return examples


def _as_if_in(folder: str, printed: str) -> str:
    """Output in which the current folder is another one."""
    return printed.replace(str(Path.cwd()), folder)


def same(shown: str, printed: str) -> bool:
    """Whether output is what a page shows, except for times, sizes and noise in scores."""
    left, right = (_DECIMAL.split(_VOLATILE.sub("N", text).rstrip()) for text in (shown, printed))
    return len(left) == len(right) and all(
        abs(float(a) - float(b)) <= TOLERANCE if place % 2 else _spaces(a) == _spaces(b)
        for place, (a, b) in enumerate(zip(left, right, strict=True))
    )


def updated(text: str, examples: list[Example]) -> str:
    """The page with the actual output."""
    for block, shown, printed in reversed(examples):
        if not same(shown, printed):
            body = re.sub(r"^(?=.)", block.indent, printed.rstrip() + "\n", flags=re.MULTILINE)
            text = text[: block.span[0]] + body + text[block.span[1] :]
    return text


def provide(name: str, data: Path) -> None:
    """Link the files that a page needs into the current folder."""
    for link, source in FILES.get(name, {}).items():
        Path(link).symlink_to((data / source).resolve(strict=True))


def anywhere(printed: str) -> str:
    """Output without the paths of this installation and of the current folder."""
    printed = printed.replace(f"{Path.cwd()}{os.sep}", "")
    return printed.replace(str(Path(semsearch.__file__).parents[1]), "…")


def _spaces(text: str) -> str:
    """Collapse runs of spaces: a time with more digits shifts what follows it."""
    return re.sub(r" +", " ", text)


def _commands(body: str) -> list[str]:
    joined = body.replace("\\\n", "")
    return [line for line in joined.splitlines() if line.strip() and line.lstrip()[0] != "#"]


def session(body: str) -> Iterator[str]:
    """The lines of a console session, with the current output of its commands."""
    lines = body.splitlines()
    for place, line in enumerate(lines):
        if not line.startswith("$ "):
            continue
        yield from [""] if place else []
        command = [line]
        while command[-1].endswith("\\"):
            command.append(lines[place + len(command)])
        yield from command
        _, printed = _shell("".join(part.removesuffix("\\") for part in command)[2:])
        yield printed.rstrip()


def _shell(command: str) -> tuple[int, str]:
    """A command's exit status and output.

    semsearch commands that need no shell run in this process, except services, which may outlive
    it.
    """
    words = shlex.split(command, comments=True)
    unquoted = re.sub(r"'[^']*'|\"[^\"]*\"", "", command)
    in_shell = bool(set("|<>&;$") & set(unquoted)) or words[1:2] == ["serve"]
    if words[0] == "semsearch" and not in_shell:
        result = CliRunner().invoke(program, words[1:], prog_name="semsearch")
        status, printed = result.exit_code, result.output
    else:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["/bin/bash", "-euo", "pipefail", "-c", command],
            env=os.environ | {"PATH": path, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        status, printed = done.returncode, done.stdout
    return status, re.sub(r" +$", "", anywhere(printed), flags=re.MULTILINE)


def _python(code: str, names: dict[str, object]) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(code, "<page>", "exec"), names)  # noqa: S102 - our own
    return printed.getvalue()


def main() -> None:
    stale = 0
    for page in pages():
        name, text = str(page.relative_to(ROOT)), page.read_text("utf-8")
        if name in ELSEWHERE or (name in FILES and "SEMSEARCH_DATA" not in os.environ):
            print(f"{name}: skipped")
            continue
        with TemporaryDirectory() as folder, contextlib.chdir(folder):
            if name in FILES:
                provide(name, Path(os.environ["SEMSEARCH_DATA"]))
            examples = run(text)
        wrong = [example for example in examples if not same(example.shown, example.printed)]
        stale += len(wrong)
        print(f"{name}: {len(examples)} shown, {len(wrong)} differ", flush=True)
        if "--update" in sys.argv:
            page.write_text(updated(text, examples), "utf-8")
        else:
            for example in wrong:
                print(f"--- shown\n{example.shown}\n+++ printed\n{example.printed}")
    sys.exit(1 if stale and "--update" not in sys.argv else 0)


if __name__ == "__main__":
    main()
