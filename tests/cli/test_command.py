"""Wrong command lines: error messages and suggestions."""

from __future__ import annotations

import errno
import os
import re

import click
import pytest
from click.testing import CliRunner

from semsearch import Index
from semsearch.cli import COMMANDS, main
from semsearch.cli.command import Command


def error_of(*arguments):
    result = CliRunner().invoke(main, [*arguments])
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    return result.stderr.splitlines()[-1].removeprefix("Error: ")


def commands(group, context=None):
    """All commands that are not groups, with their paths."""
    context = click.Context(group, context)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            for path, inner in commands(command, context):
                yield [name, *path], inner
        else:
            yield [name], command


ALL = list(commands(main))


def test_all_commands_are_instances_of_command():
    assert len(ALL) > len(COMMANDS)
    assert [path for path, command in ALL if not isinstance(command, Command)] == []


SINGLE_VALUED = [
    (path, option)
    for path, command in ALL
    for option in command.params
    if isinstance(option, click.Option) and not option.is_flag and not option.multiple
]


@pytest.mark.parametrize(
    ("path", "option"),
    SINGLE_VALUED,
    ids=[" ".join([*path, option.name]) for path, option in SINGLE_VALUED],
)
def test_repeated_single_valued_option_is_rejected(path, option):
    values = ["1"] * option.nargs
    for name in option.opts:
        error = error_of(*path, name, *values, option.opts[0], *values)
        assert error == f"{max(option.opts, key=len)} is given 2 times; it takes one value"


@pytest.mark.parametrize(
    ("path", "option"),
    SINGLE_VALUED,
    ids=[" ".join([*path, option.name]) for path, option in SINGLE_VALUED],
)
def test_empty_value_is_rejected(path, option):
    # --index "" used to mean the current folder
    error = error_of(*path, option.opts[0], *[""] * option.nargs)
    if option.nargs == 1:
        assert error == f"{max(option.opts, key=len)} is given an empty value"


@pytest.mark.parametrize(
    "arguments",
    [
        ["index", "nowhere.csv", "--text-column", "a", "--text-column", "b"],
        ["index", "nowhere.csv", "--sync", "--sync"],
    ],
)
def test_flags_and_multiple_options_can_be_repeated(arguments):
    result = CliRunner().invoke(main, arguments)
    assert result.stderr == "Error: no such file: nowhere.csv [corpus-not-found]\n"


def test_environment_variable_does_not_count_as_a_repetition(monkeypatch, tmp_path):
    monkeypatch.setenv("SEMSEARCH_INDEX", str(tmp_path))
    result = CliRunner().invoke(main, ["info", "--index", str(tmp_path / "other")])
    assert "no index at" in result.stderr


LONG_NAME = "x" * 300


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["train", "siamese", "--data", LONG_NAME, "--output", "o"], LONG_NAME),
        (["export", f"{LONG_NAME}.csv", "--index", "birds"], f"{LONG_NAME}.csv"),
        (["index", "t.csv", "--index", LONG_NAME, "--encoder", "hashing"], LONG_NAME),
    ],
)
def test_a_path_that_the_system_refuses(arguments, name, tmp_path, monkeypatch):
    """A name that is too long stands for a folder that cannot be read: root reads them all."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("id,text\n1,a red bird\n")
    Index.create("birds", "hashing").close()
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 1
    reason = os.strerror(errno.ENAMETOOLONG)
    refused = f"Error: {name}: {reason} [invalid-argument]"
    # `Path.exists` raises no error in Python 3.13, so that the index refuses the name.
    later = f"Error: {reason}: {name} [unusable-index]"
    assert result.stderr.splitlines()[-1] in (refused, later)


def test_an_unknown_command_with_a_long_name():
    assert error_of(LONG_NAME).startswith(f"No such command '{LONG_NAME}'. (commands: index")


def test_help_takes_precedence_over_errors():
    result = CliRunner().invoke(main, ["query", "-k", "1", "-k", "2", "--help"])
    assert result.exit_code == 0
    assert "Usage:" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("query ways to save money", 'quote the query: main query "ways to save money"'),
        ("query ways to save -k 3 money", 'quote the query: main query "ways to save money"'),
        ("compare ways to save money", 'quote the query: main compare "ways to save money"'),
        ("inspect a word", 'quote the query: main inspect "a word"'),
        ("compare --sentence a b --sentence c d", 'quote each sentence: --sentence "…"'),
        ("query x --where year = 1990", 'quote the filter: --where "year …"'),
        ("query --where year = 1990 x", 'quote the filter: --where "year …"'),
        ("query x --where genres IN ('a')", 'quote the filter: --where "genres …"'),
        ("info films", "unexpected argument films; name an index with: --index films"),
        ("verify a b", "unexpected argument a"),
        ("qeury x", "No such command 'qeury'. Did you mean 'query'?"),
        ("Query x", "No such command 'Query'. Did you mean 'query'?"),
        ("train siames", "No such command 'siames'. Did you mean 'siamese'?"),
        ("datasets lst", "No such command 'lst'. Did you mean 'list'?"),
        ("datasets xyzzy", "No such command 'xyzzy'. (commands: fetch, list, path)"),
        ("index nowhere.csv --text-column ", "--text-column is given an empty value"),
        ("index a.csv ", "CORPUS is given an empty value"),
        ("export ", "OUTPUT is given an empty value"),
        ("pull milvus:x ", "INDEX is given an empty value"),
        ("serve --index a --index ", "--index is given an empty value"),
        ("query x -index y", "No such option '-index'. Did you mean '--index'?"),
        ("query x -queries=y", "No such option '-queries'. Did you mean '--queries'?"),
        ("query x --k 3", "No such option '--k'. Did you mean '-k'?"),
        ("query x -z", "No such option '-z'."),
        ("query x --qeuries y", "Did you mean one of: '--queries', '--where'?)"),
    ],
)
def test_suggestions(arguments, message):
    assert error_of(*arguments.split(" ")).endswith(message)


def test_a_query_without_its_command():
    error = error_of("ways to save money")
    assert error.endswith('To search: semsearch query "ways to save money"')


def test_a_file_without_its_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my corpus.csv").write_text("text\na\n")
    (tmp_path / "corpus.csv").write_text("text\na\n")
    assert error_of("corpus.csv").endswith("To index a file: semsearch index corpus.csv")


@pytest.mark.parametrize("command", ["index", "pairs", "train adapt"])
@pytest.mark.parametrize(
    ("corpus", "place"),
    [
        ('[{"text": "a"}, {"text": " "}]', ", item 2"),
        ("text\na\n \n", ":3"),
        ("id,text\na,b,c\n", ":2"),
    ],
)
def test_bad_row_suggests_skip_bad_rows(tmp_path, monkeypatch, command, corpus, place):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "corpus").write_text(corpus)
    encoder = ["--encoder", "hashing"] if command != "train adapt" else []
    result = CliRunner().invoke(main, [*command.split(" "), "corpus", *encoder])
    assert result.exit_code == 1
    error = result.stderr.splitlines()[-1]
    assert error.startswith(f"Error: corpus{place}: ")
    assert error.endswith("; --skip-bad-rows leaves such rows out [bad-row]")


def test_skip_bad_rows_is_not_suggested_if_given(tmp_path):
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text("{bad\n" * 3)
    index = ["--index", str(tmp_path / "x"), "--encoder", "hashing:8"]
    result = CliRunner().invoke(main, ["index", str(corpus), *index, "--skip-bad-rows"])
    assert result.exit_code == 1
    assert "corpus.jsonl:1: not JSON" in result.stderr
    assert "--skip-bad-rows" not in result.stderr


GROUPS = [[], ["eval"], ["train"], ["datasets"]]


def help_of(*path):
    result = CliRunner().invoke(main, [*path, "--help"], prog_name="semsearch")
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.parametrize("path", [*GROUPS, *(path for path, _ in ALL)], ids=" ".join)
def test_help_ends_with_another_help_of_the_installed_program(path):
    _, _, command = help_of(*path).splitlines()[-1].partition(": ")
    program, *other, option = command.split()
    assert (program, option) == ("semsearch", "--help")
    assert other == ([*path, "COMMAND"] if path in GROUPS else path[:-1])


def test_help_groups_commands():
    sections = help_of().partition("\nSearch:\n")[2].split("\n\n")
    names = [re.findall(r"^  (\w+)  ", section, re.MULTILINE) for section in sections]
    assert names[:3] == [
        ["index", "query", "serve", "mcp", "info"],
        ["pairs", "cluster", "map", "compare", "inspect", "export"],
        ["eval", "train", "datasets"],
    ]
    assert names[3][:3] == ["delete", "compact", "verify"]
    assert [name for section in names for name in section] == list(COMMANDS)


def test_help_of_queries_has_advanced_options_last():
    options, _, advanced = help_of("query").partition("\nAdvanced:\n")
    expected = ["--fusion", "--dense-weight", "--mmr", "--also", "--unlike", "--rerank-depth"]
    assert re.findall(r"^  (--[\w-]+)", advanced, re.MULTILINE) == expected
    assert "\n  -h, --help " in options
