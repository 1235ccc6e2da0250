"""Documents are converted in a child process with limits; if it fails, one file is a bad row."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from semsearch.corpus import Corpus, conversion
from tests.corpus.conftest import pdf, read

if sys.platform != "linux":
    pytest.skip("memory is limited on Linux only", allow_module_level=True)


GOOD = pdf(b"BT /F 12 Tf (Good text.) Tj ET")


def test_memory_limit(bad_file, monkeypatch):
    monkeypatch.setattr(conversion, "MAX_CONVERSION_BYTES", 100 << 20)
    bomb = pdf(b" " * (150 << 20))
    assert len(bomb) < 200_000
    reason = "needs more than 100 MiB of memory to be converted, or crashes the converter"
    assert bad_file("bomb.pdf", bomb).reason == reason


def test_time_limit(write, monkeypatch):
    content = b"BT /F 1 Tf (a) Tj ET\n" * 2_000_000
    files = write("good.pdf", GOOD), write("slow.pdf", pdf(content))
    monkeypatch.setattr(conversion, "MAX_CONVERSION_SECONDS", 1.0)
    [document], [error], _ = read(files)
    assert (document.id, error.document_id) == ("good.pdf#page=1", "slow.pdf")
    assert error.reason == "takes longer than 1 s to convert"


def test_a_process_that_died_is_replaced(write):
    write("good.pdf", GOOD)
    documents = iter(Corpus(["good.pdf"] * 2))
    next(documents)
    os.kill(conversion.converter.pid, signal.SIGKILL)
    assert [document.text for document in documents] == ["Good text."]


def test_a_script_without_a_main_guard_runs_once(write):
    write("good.pdf", GOOD)
    lines = "from semsearch import Corpus", "open('runs', 'a').write('x')"
    script = "\n".join([*lines, "print(*(one.text for one in Corpus('good.pdf')))"])
    assert run_script(write("script.py", script)) == "Good text."
    assert Path("runs").read_text() == "x"


def test_modules_beside_the_documents_are_not_run(write):
    """Processes start in the working directory, which may hold untrusted files."""
    write("good.pdf", GOOD)
    for module in ("json", "semsearch", "pypdfium2", "signal"):
        write(f"{module}.py", "open('it-was-run', 'w')")
    script = "from semsearch import Corpus\nprint(*(one.text for one in Corpus('good.pdf')))"
    assert run_script(write("scripts/script.py", script)) == "Good text."
    assert not Path("it-was-run").exists()


def run_script(path):
    """The output of a script in a new interpreter, which no other test has used."""
    command = [sys.executable, path]
    done = subprocess.run(command, stdout=subprocess.PIPE, timeout=120, check=True)
    return done.stdout.decode().strip()
