"""The examples in README.md, under docs/ and on the error pages print what they show."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import click
import pytest

from scripts.dev.examples import (
    ELSEWHERE,
    ENVIRONMENT,
    ERRORS,
    FILES,
    ROOT,
    CommandError,
    blocks,
    pages,
    pictures,
    provide,
    run,
    same,
    updated,
)
from semsearch.cli import COMMANDS, main

#: Packages that pages need besides those that `scripts/test` installs.
PACKAGES = {"docs/milvus.md": "milvus_lite"}

#: Pictures that the commands of a page make.
MADE = {"docs/explanations/from-glove-to-sbert.md": ["get.svg"]}

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
    for picture in MADE.get(name, []):
        assert picture in pictures(TEXTS[name])


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
    assert re.search(r"\b\d+ passed", output(*test, "-n", "0", "tests/test_texts.py"))


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
            folder = Path("docs/errors") if (ROOT / name).parent == ERRORS else Path(name).parent
            page = ROOT / os.path.normpath(folder / target)
            assert page.exists() or target in GENERATED, f"{name}: {target}"


def test_readme_compares_with_the_pinned_versions():
    pinned = (ROOT / "scripts/constraints.txt").read_text("utf-8")
    for name, package in {"Chroma": "chromadb", "LanceDB": "lancedb", "txtai": "txtai"}.items():
        (shown,) = set(re.findall(rf"{name} (\d+\.\d+\.\d+)", README))
        assert f"\n{package}=={shown}\n" in pinned
        assert f"\n{package} {shown}\n" in TEXTS["docs/comparison.md"]  # scripts/bench/features
    assert f"sentence-transformers {version('sentence-transformers')}" in README


def test_times_and_noise_of_scores_are_ignored():
    assert same("1  0.603  Chilli  in 1.2 s (258 b/s)\n", "1  0.605  Chilli in 12.9 s (9 b/s)")
    assert not same("1  0.603  Chilli", "1  0.403  Chilli")
    assert not same("1  0.603  Chilli", "2  0.603  Chilli")
    assert not same("1  0.603  Chilli", "1  0.603  Soup")
    assert not same("1  0.603", "1  0.603\n2  0.500")


@pytest.mark.skipif(sys.platform == "win32", reason="the pages are written for a POSIX shell")
def test_page_is_run_and_updated(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = "\n".join(
        [
            '```csv title="data/a.csv"\nid,text\n1,red bird\n```',
            "```console\n$ cat data/a.csv \\\n    | wc -l\nold\n\n$ echo $COLUMNS\n```",
            "    ```python\n    print('a')\n    if True:\n\n        print('b')\n    ```",
            "    ```text\n    a\n    ```",
            "```text\nno output\n```",
            "<!-- not run: why (tests/test_readme.py) -->\n```bash\nfalse\n```",
        ]
    )
    examples = run(page)
    assert [example.printed for example in examples] == [
        f"$ cat data/a.csv \\\n    | wc -l\n2\n\n$ echo $COLUMNS\n{ENVIRONMENT['COLUMNS']}",
        "a\nb\n",
    ]
    assert updated(page, examples) == page.replace("\nold\n", "\n2\n").replace(
        "$COLUMNS\n", f"$COLUMNS\n{ENVIRONMENT['COLUMNS']}\n"
    ).replace("    a\n    ```", "    a\n    b\n    ```")
    with pytest.raises(CommandError, match="no such file"):
        run("```bash\nsemsearch index gone.csv\n```")
    assert Path("data/a.csv").exists()
