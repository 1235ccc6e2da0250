"""The examples in README.md, under docs/ and on the error pages print what they show."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from scripts.dev.examples import ELSEWHERE, FILES, ROOT, blocks, pages, provide, run, same
from semsearch.cli import COMMANDS, main

#: Packages that pages need besides those that `scripts/test` installs.
PACKAGES = {"docs/milvus.md": "milvus_lite"}

#: Pages that scripts/dev/site.py generates.
GENERATED = {"results.md", "changelog.md", "contributing.md"}

TEXTS = {str(page.relative_to(ROOT)): page.read_text("utf-8") for page in pages()}
README = TEXTS["README.md"]
EXAMPLES = {
    example: name
    for name, text in TEXTS.items()
    for example in re.findall(
        rf"(?<![-\w/])semsearch ((?:{'|'.join(COMMANDS)})(?=[\s`])[^#\n]*)", text
    )
}


@pytest.mark.skipif(sys.platform == "win32", reason="the pages are written for a POSIX shell")
@pytest.mark.usefixtures("forgetful", "minilm")
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name == "README.md" else pytest.mark.nightly)
        for name in TEXTS
        if name not in ELSEWHERE
    ],
)
def test_the_examples_of_a_page_print_what_it_shows(name, package, request, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SEMSEARCH_INDEX", raising=False)
    if name in PACKAGES:
        package(PACKAGES[name])
    if name in FILES:
        provide(name, request.getfixturevalue("data"))
    for example in run(TEXTS[name]):
        assert same(example.shown, example.printed), example.printed


@pytest.fixture
def clone(tmp_path):
    """A clean clone of the last commit; deleted afterwards, because its environment takes 2 GB."""
    if not (ROOT / ".git").exists():
        pytest.skip("an sdist has no commits")
    folder = tmp_path / "semsearch"
    subprocess.run(["git", "clone", "--quiet", ROOT, folder], check=True)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.skipif(
    "SEMSEARCH_INTEGRATION_REQUIRED" not in os.environ,
    reason="downloads packages for minutes; .ci/run runs it",
)
@pytest.mark.timeout(3_600)
def test_the_first_commands_set_up_a_clean_clone(clone, tmp_path):
    """In an empty environment, except for pip's own configuration: a mirror may be the only way."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if name.startswith(("PIP_", "SSL_")) or name.lower().endswith("_proxy")
    }
    environment.pop("PIP_CACHE_DIR", None)
    ours = str(Path(sys.prefix) / "bin")
    environment["PATH"] = os.pathsep.join(path for path in os.get_exec_path() if path != ours)
    environment["HOME"] = str(tmp_path)
    environment.setdefault("XDG_CONFIG_HOME", str(Path.home() / ".config"))

    def output(*command):
        done = subprocess.run(
            command,
            cwd=clone,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout

    install = (clone / "README.md").read_text("utf-8").partition("\n## Install\n")[2]
    lines = next(blocks(install)).body.splitlines()
    demo, test = (shlex.split(line, comments=True) for line in lines)
    answer = r"too spicy\"\n +score +title\n1 +\d\.\d+ +Cooling a chilli burn"
    assert re.search(answer, output(*demo))
    assert (clone / ".venv").exists()
    assert re.search(r"\b\d+ passed", output(*test, "-n", "0", "tests/corpus/test_splitting.py"))


def test_commands_and_their_options_exist():
    assert len(EXAMPLES) > 10
    for example, page in EXAMPLES.items():
        text = example.split("`")[0].split("|")[0].split(" -- ")[0].strip()
        with contextlib.suppress(ValueError):  # prose follows the command
            name, *words = shlex.split(text)
            command = main.get_command(click.Context(main), name)
            while isinstance(command, click.Group):
                name, *words = words
                command = command.get_command(click.Context(command), name)
            known = {
                name for option in command.params for name in [*option.opts, *option.secondary_opts]
            }
            used = {word for word in words if word.startswith("-") and len(word) > 1}
            assert used <= known, page


def test_block_that_is_not_run_names_a_test():
    """The comment has the reason and, in parentheses, the test; installation commands have none."""
    for text in TEXTS.values():
        for block in blocks(text):
            if block.not_run is None or block.not_run.startswith("installs packages"):
                continue
            _, _, test = block.not_run.removesuffix(")").partition(" (")
            assert (ROOT / test.partition("::")[0]).is_file(), block.not_run


def test_links_resolve():
    for name, text in TEXTS.items():
        prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", prose):
            page = ROOT / os.path.normpath(Path(name).parent / target)
            assert page.exists() or target in GENERATED, f"{name}: {target}"
