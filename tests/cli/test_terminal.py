"""The output in processes: contents cannot control a terminal; pipes get exact UTF-8."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
import unicodedata

import pytest
from click.testing import CliRunner

from semsearch import Document, Index
from semsearch.cli import main

#: Unicode's marks that reorder the text between them (UAX #9).
REORDERING = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
EVIL = "\x1b[2J\x1b]0;owned\x07\x9b31m\x90q\x9c\x08\x7f\r\x85\u2028\u202eevil\u2066"
TEXT = f"One. {EVIL}\nTwo."


def control_characters(output):
    """The characters of an output that control a terminal."""
    return "".join(
        letter
        for letter in output
        if letter in REORDERING or (unicodedata.category(letter) == "Cc" and letter != "\n")
    )


@pytest.fixture
def hostile(tmp_path):
    """An index whose texts, ids and metadata are full of control characters."""
    with Index.create("indexes/one", ["hashing", "hashing:8"]) as index:
        index.add([Document(f"1{EVIL}", TEXT, EVIL, {f"a{EVIL}": EVIL, "b": [EVIL]})])
        index.add([Document("2", TEXT)])
    (tmp_path / f"bad{EVIL}.csv").write_text(f"id,text,{EVIL}\n{EVIL},\n", "utf-8")


@pytest.mark.parametrize(
    "arguments",
    [
        ["query", "one", "--show", f"a{EVIL}", "--explain"],
        ["query", EVIL, "--where", f"b = '{EVIL}'"],
        ["query", "x", "--where", EVIL],
        ["query", "caf\udce9"],
        ["info"],
        ["pairs"],
        ["compare", "one"],
        ["inspect", EVIL, "--encoder", "hashing"],
        ["index", f"bad{EVIL}.csv", "--encoder", "hashing", "--skip-bad-rows"],
        ["datasets", "fetch", EVIL],
    ],
)
def test_contents_and_arguments_do_not_control_a_terminal(hostile, arguments):
    result = CliRunner().invoke(main, arguments)
    assert not result.exception or isinstance(result.exception, SystemExit)
    assert result.output.strip()
    assert control_characters(result.output) == ""


def test_formats_for_programs_are_exact(hostile):
    command = ["query", "--mode", "bm25", "One.", "--format"]
    lines = CliRunner().invoke(main, [*command, "jsonl"]).stdout
    assert json.loads(lines)["hits"][0]["text"] == TEXT
    assert control_characters(lines) == ""
    table = CliRunner().invoke(main, [*command, "csv"]).stdout
    assert next(csv.DictReader(io.StringIO(table, newline="")))["text"] == TEXT


@pytest.mark.parametrize("encoding", ["cp1252", None])
def test_any_character_is_printed(tmp_path, encoding):
    """Files are UTF-8; a terminal, or the user's choice, has escapes for what it lacks."""
    with Index.create(tmp_path / "x", "hashing") as index:
        index.add([Document("1", "hello 日本語")])
    environment = os.environ | {"PYTHONUTF8": "0", "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"}
    if encoding is not None:
        environment["PYTHONIOENCODING"] = encoding
    command = [sys.executable, "-m", "semsearch", "query", "hello", "--index", "x"]
    done = subprocess.run(command, capture_output=True, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    shown = "日本語" if encoding is None else r"\u65e5\u672c\u8a9e"
    assert shown in done.stdout.decode("utf-8" if encoding is None else encoding)
