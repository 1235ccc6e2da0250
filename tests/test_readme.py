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

#: Why blocks are not run, by page; the comment above each also names a test of the same feature.
#: The options of all of them are parsed.
NOT_RUN = {
    "README.md": ["installs packages", "installs packages", "it runs until Ctrl-C"],
    "docs/explanations/from-glove-to-sbert.md": ["needs the network"],
    "docs/films.md": ["needs the network"],
    "docs/how-to/evaluate.md": ["needs published data sets"],
    "docs/how-to/gpu.md": ["installs packages"],
    "docs/how-to/languages.md": ["trains for minutes", "needs published data sets and a model"],
    "docs/how-to/rerank.md": ["needs a cross-encoder", "trains for minutes"],
    "docs/how-to/serve.md": ["it runs until Ctrl-C"],
    "docs/how-to/train.md": ["trains for minutes", "two processes", "trains for minutes"],
    "docs/index.md": ["installs packages", "installs packages"],
    "docs/milvus.md": ["needs a Milvus server"],
    "docs/ray.md": [
        "needs a Ray cluster",
        "starts servers that stay",
        "needs a second machine",
    ],
    "semsearch/explanations/index-busy.md": ["needs another process"],
    "semsearch/explanations/index-changed.md": ["needs a file system that is read-only"],
    "semsearch/explanations/missing-extra.md": ["needs an environment without the package"],
    "semsearch/explanations/store-unreachable.md": ["needs the extra milvus"],
    "semsearch/explanations/training-stopped.md": ["needs Ctrl-C"],
    "semsearch/explanations/unsupported-by-store.md": ["needs the extra milvus"],
    "semsearch/explanations/unusable-cluster.md": ["needs the extra ray"],
}

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
@pytest.mark.slow
@pytest.mark.usefixtures("forgetful", "minilm")
@pytest.mark.parametrize("name", [name for name in TEXTS if name not in ELSEWHERE])
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
@pytest.mark.slow
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


def test_there_are_examples():
    assert len(EXAMPLES) > 10


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_option_in_an_example_exists(example):
    text = example.split("`")[0].split("|")[0].split(" -- ")[0].strip()
    with contextlib.suppress(ValueError):  # prose follows the command
        name, *words = shlex.split(text)
        command = main.get_command(click.Context(main), name)
        while isinstance(command, click.Group):
            name, *words = words
            command = command.get_command(click.Context(command), name)
        known = {option for parameter in command.params for option in parameter.opts}
        known |= {option for parameter in command.params for option in parameter.secondary_opts}
        used = {word for word in words if word.startswith("-") and len(word) > 1}
        assert used <= known, EXAMPLES[example]


@pytest.mark.parametrize("name", TEXTS)
def test_block_that_is_not_run_names_a_test(name):
    """The comment has the reason and, in parentheses, the test; installation commands have none."""
    for block in blocks(TEXTS[name]):
        if block.not_run is None or block.not_run.startswith("installs packages"):
            continue
        _, _, test = block.not_run.removesuffix(")").partition(" (")
        assert (ROOT / test.partition("::")[0]).is_file(), block.not_run


def test_all_other_blocks_are_run():
    found = {name: [block.not_run for block in blocks(text)] for name, text in TEXTS.items()}
    reasons = {
        name: [re.split(r"[;(]", reason)[0].strip() for reason in listed if reason is not None]
        for name, listed in found.items()
        if name not in ELSEWHERE
    }
    assert {name: listed for name, listed in reasons.items() if listed} == NOT_RUN


@pytest.mark.parametrize("name", TEXTS)
def test_commands_are_only_in_blocks(name):
    prose = re.sub(r"^( *)```.*?^\1```$", "", TEXTS[name], flags=re.DOTALL | re.MULTILINE)
    assert not re.findall(r"^ {4,}(?:\$ )?(?:semsearch|python|ray|pip) .*", prose, re.MULTILINE)


def test_links_resolve():
    for name, text in TEXTS.items():
        prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", prose):
            folder = Path("docs/errors") if (ROOT / name).parent == ERRORS else Path(name).parent
            page = ROOT / os.path.normpath(folder / target)
            assert page.exists() or target in GENERATED, f"{name}: {target}"


def test_pages_that_are_tested_elsewhere():
    for name, test in ELSEWHERE.items():
        assert name in TEXTS
        assert Path(name).name in (ROOT / test).read_text("utf-8")


def test_the_readme_is_short():
    assert len(README.split()) <= 1_200


def test_readme_compares_with_the_pinned_versions():
    pinned = (ROOT / "scripts/constraints.txt").read_text("utf-8")
    for name, package in {"Chroma": "chromadb", "LanceDB": "lancedb", "txtai": "txtai"}.items():
        (shown,) = set(re.findall(rf"{name} (\d+\.\d+\.\d+)", README))
        assert f"\n{package}=={shown}\n" in pinned
        assert f"\n{package} {shown}\n" in TEXTS["docs/comparison.md"]  # scripts/bench/features
    assert f"sentence-transformers {version('sentence-transformers')}" in README


def test_speeds_in_the_readme_match_the_results():
    """RESULTS.md has them in the same columns."""
    speed = README.partition("## Speed")[2].partition("\n## ")[0]
    results = (ROOT / "RESULTS.md").read_text("utf-8")
    results = results.partition("\n## Speed, beside other tools")[2].partition("\n##")[0]
    measured = {}
    for row in re.findall(r"^\| (.+) \|$", results, re.MULTILINE):
        name, *cells = row.split(" | ")
        if len(cells) == 5:
            texts = cells[0].partition(" ")[0]
            measured[re.sub(r"\W", "", name)] = [texts, cells[3], cells[4]]
    rows = re.findall(r"^\| (.+) \| ([\d,]+) \| ([\d,]+) \| ([\d.]+) \|$", speed, re.MULTILINE)
    assert len(rows) == 10
    for name, *cells in rows:
        system = re.sub(r"\W", "", name.replace("semsearch", "ours"))
        system = {"oursbf16thedefault": "oursbf16default"}.get(system, system)
        assert measured[system] == cells


def test_ratios_with_avx2_only_match_the_results():
    """Ours and the fastest other system, for passages and sentences, with and without start-up."""
    results = (ROOT / "RESULTS.md").read_text("utf-8")
    section = results.partition("\n### On a processor with AVX2 only")[2].partition("\n##")[0]
    cell = r"([\d.]+) \(([\d.]+)\)"
    rows = re.findall(rf"^\| [^|]+ \| {cell} \| {cell} \|", section, re.MULTILINE)
    ours, *others = (list(map(float, row)) for row in rows)
    fastest = map(max, zip(*others, strict=True))
    ratios = [round(mine / best, 1) for mine, best in zip(ours, fastest, strict=True)]
    assert ratios == [1.4, 1.0, 1.7, 1.1]
    assert "indexing is 1.4 to 1.7 times as fast as the fastest alternative" in README


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
