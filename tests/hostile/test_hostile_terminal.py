"""Contents of documents, queries, databases and file names cannot control a terminal."""

from __future__ import annotations

import csv
import io
import json
import os
import sqlite3
import subprocess
import sys
import unicodedata
from contextlib import closing, suppress

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from semsearch import Document, Index
from semsearch.cli import main
from tests.cli.conftest import invoke

pytestmark = pytest.mark.slow

deterministic = settings(
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

#: Unicode's marks that reorder the text between them (UAX #9).
REORDERING = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
EVIL = "\x1b[2J\x1b]0;owned\x07\x9b31m\x90q\x9c\x08\x7f\r\x00\x85\u2028\u202eevil\u2066"

CHARACTERS = st.one_of(
    st.characters(categories=["Cc", "Cf", "Zl", "Zp"]),
    st.sampled_from(["\x1b[31m", "\x9b2J", *REORDERING]),
    st.characters(exclude_categories=["Cs"]),
)
TEXT = st.lists(CHARACTERS, min_size=1, max_size=12).map("".join)
NAMES = TEXT.filter(lambda text: "\0" not in text)
IDS = NAMES.filter(str.strip)


def run(*arguments: object, code: int = 0) -> str:
    """What a command prints, on both streams."""
    return invoke(*arguments, code=code).output


def control_characters(output: str) -> str:
    """The characters of an output that control a terminal."""
    return "".join(
        letter
        for letter in output
        if letter in REORDERING or (unicodedata.category(letter) == "Cc" and letter != "\n")
    )


@settings(deterministic, max_examples=25)
@given(
    st.lists(
        st.builds(
            Document,
            IDS,
            TEXT.map("needle {}".format),
            st.none() | TEXT,
            st.fixed_dictionaries({"seen": TEXT | st.lists(TEXT, max_size=2) | st.none()}),
        ),
        min_size=1,
        max_size=6,
        unique_by=lambda document: document.id,
    ),
    NAMES,
    TEXT,
)
def test_table_format(tmp_path_factory, documents, name, query):
    path = tmp_path_factory.mktemp("terminal")
    documents.append(Document("named", "needle", metadata={name: query}))
    with Index.create(path / "index", ["hashing"]) as index:
        index.add(documents)
    place = ["--index", path / "index"]
    for show in ([], ["--show", "seen", "--show", name]):
        output = run("query", "needle", *place, *show)
        assert "score" in output
        assert control_characters(output) == ""
    line = " ".join(query.replace("\0", "").split())
    if line.strip("\ufeff \x1c\x1d\x1e\x1f"):
        (path / "queries").write_text(line + "\n", "utf-8", newline="\n")
        output = run("query", "--queries", path / "queries", *place)
        assert control_characters(output) == ""
    assert control_characters(run("info", *place)) == ""


@pytest.fixture
def index(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Index.create(tmp_path / "indexes" / "one", ["hashing"]) as index:
        index.add([Document("1", "One.", EVIL, {f"a{EVIL}".replace("\0", ""): EVIL})])
    return tmp_path / "indexes" / "one"


@pytest.mark.parametrize(
    "arguments",
    [
        ["query", EVIL + "x", "--where", f"b = '{EVIL}'"],
        ["query", "x", "--where", EVIL],
        ["query", "x", "--where", f'"{EVIL[:-20]}" = 1'],
        ["query", "x", "--where", f"like = '{EVIL}"],
        ["query", "x", "--show", EVIL.replace("\0", "")],
        ["query", "x", "--space", EVIL],
        ["query", "x", "--encoder", EVIL],
        ["query", "x", "--index", f"no{EVIL}".replace("\0", "")],
        ["query", "--queries", f"no{EVIL}".replace("\0", "")],
        ["query", "caf\udce9"],
        ["delete", EVIL],
        ["index", f"no{EVIL}.csv".replace("\0", "")],
        ["index", "--add-space", EVIL],
        ["index", "--drop-space", EVIL],
        ["index", "caf\udce9.csv"],
    ],
)
def test_arguments_in_messages(index, arguments):
    output = run(*arguments, code=1)
    assert output.startswith("Error: ")
    assert output.count("\n") == 1
    assert control_characters(output) == ""


COMMANDS = [
    ["query", "--mode", "bm25", "One.", "--format"],
    ["pairs", "--index", "indexes/one", "--format"],
    ["cluster", "-n", "1", "--examples", "3", "--format"],
]


@pytest.fixture
def hostile(index):
    """An index whose texts, ids and metadata are full of control characters."""
    with Index.open(index) as opened:
        opened.add(
            [
                Document(f"2{EVIL}".replace("\0", ""), f"One. {EVIL}\t{EVIL}", EVIL, {"b": [EVIL]}),
                Document("3", f"One. {EVIL}\nTwo."),
            ]
        )


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
@pytest.mark.parametrize("format_name", ["csv", "jsonl"])
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_machine_readable_formats_on_a_terminal(hostile, command, format_name):
    import pty

    master, slave = pty.openpty()
    whole = [sys.executable, "-m", "semsearch", *command, format_name]
    with subprocess.Popen(whole, stdout=slave, stderr=subprocess.PIPE) as process:
        os.close(slave)
        blocks = []
        with suppress(OSError):  # raised by Linux at the end of the output
            while block := os.read(master, 1 << 16):
                blocks.append(block)
        messages = process.stderr.read().decode()
    os.close(master)
    assert process.returncode == 0, messages
    output = b"".join(blocks).decode().replace("\r\n", "\n")
    assert "owned" in output
    assert control_characters(output) == ""


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_machine_readable_formats_are_exact_in_a_pipe(hostile, command):
    """Piped output is exactly what was indexed; only JSON adds its own escapes."""
    stored = f"One. {EVIL}\nTwo."

    def piped(format_name):
        result = CliRunner().invoke(main, [*command, format_name])
        assert result.exit_code == 0, result.output
        return result.stdout

    lines = piped("jsonl")
    assert control_characters(lines) == ""
    assert stored in strings([json.loads(line) for line in lines.split("\n") if line])
    assert stored in strings(list(csv.reader(io.StringIO(piped("csv"), newline=""))))


def strings(value: object) -> set[str]:
    """All strings in a JSON value."""
    if isinstance(value, str):
        return {value}
    if isinstance(value, dict):
        value = value.values()
    return set().union(*map(strings, value)) if hasattr(value, "__iter__") else set()


@pytest.mark.parametrize(
    "content",
    [
        f"id,tex{EVIL}\n1,One.\n".replace("\r", ""),
        f"id,text,a{EVIL}\n1,One.,x\n".replace("\r", ""),
        f'"id","text","a{EVIL}"\n"{EVIL}","One.","x"\n"{EVIL}","Two.",""\n'.replace("\0", ""),
        f'"id","text"\n"{EVIL}",""\n'.replace("\0", ""),
        json.dumps({"text": "x", "id": EVIL}),
        json.dumps({"text": {EVIL: EVIL}}),
        json.dumps({"text": "x", EVIL: 1e999}),
        '{"text": ' + EVIL,
        '[{"text": "x"}, ' + EVIL,
        f"{EVIL}{{",
    ],
)
@pytest.mark.parametrize("suffix", ["csv", "jsonl", "json", ""])
def test_file_contents_in_messages(index, tmp_path, content, suffix):
    file = tmp_path / f"corpus.{suffix}".rstrip(".")
    file.write_text(content, "utf-8", newline="\n")
    for options in ([], ["--skip-bad-rows"], ["--text-column", f"x{EVIL}"]):
        command = ["index", file, "--index", "indexes/one", *options]
        result = CliRunner().invoke(main, [str(argument) for argument in command])
        assert result.exit_code in (0, 1)
        assert not result.exception or isinstance(result.exception, SystemExit)
        assert control_characters(result.output) == ""


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE snapshots SET file = ?",
        "UPDATE spaces SET name = ?",
        "UPDATE spaces SET spec = ?",
        "UPDATE spaces SET fingerprint = ?",
        "UPDATE spaces SET dtype = ?",
        "UPDATE documents SET metadata = ?",
        "UPDATE documents SET title = x'1b5b324aff' || ?",
        "UPDATE settings SET value = ?",
        "UPDATE chunks SET text = ?",
        "UPDATE vectors SET vector = ?",
        "INSERT INTO fields (name, kind, in_list, documents) VALUES (?, 'text', 0, 1)",
    ],
)
def test_forged_database(index, statement):
    with closing(sqlite3.connect(index / "index.sqlite")) as connection, connection:
        connection.execute(statement, [EVIL])
    (index / EVIL.replace("\0", "")).write_text("a file beside it")
    for arguments in (
        ["query", "One."],
        ["query", "One.", "--mode", "bm25", "--where", "id = '1'"],
        ["query", "One.", "--space", "no"],
        ["query", "One.", "--show", "no"],
        ["info"],
        ["verify"],
        ["verify", "--repair"],
        ["compact"],
    ):
        result = CliRunner().invoke(main, arguments)
        assert not result.exception or isinstance(result.exception, SystemExit)
        assert control_characters(result.output) == ""
