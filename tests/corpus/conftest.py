"""Files in a temporary working directory, and a PostgreSQL server."""

from __future__ import annotations

import gzip
import io
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from semsearch.corpus import Corpus
from semsearch.errors import BadRowError, CorpusError
from semsearch.records import Document


def read(paths: object, **options: object) -> tuple[list[Document], list[BadRowError], list[str]]:
    """The documents of a corpus, the errors of its bad rows, and its notices."""
    bad: list[BadRowError] = []
    notices: list[str] = []
    documents = list(Corpus(paths, on_bad_row=bad.append, notify=notices.append, **options))
    return documents, bad, notices


def refused(location: str, **options: object) -> str:
    """The message of the error that reading raises."""
    with pytest.raises(CorpusError) as error:
        list(Corpus(location, **options))
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """A function that writes a file and returns its name, as messages show it."""
    monkeypatch.chdir(tmp_path)

    def write(name: str, content: str | bytes, *, packed: bool = False) -> str:
        stored = content.encode() if isinstance(content, str) else content
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(stored) if packed else stored)
        return name

    return write


@pytest.fixture
def bad_file(write: Callable[..., str]) -> Callable[..., BadRowError]:
    """A function that reads a broken file beside a good one, and returns its only bad row."""

    def bad_file(name: str, content: str | bytes, *, packed: bool = False) -> BadRowError:
        write(name, content, packed=packed)
        documents, [error], _ = read([name, write("good.txt", "Good.")])
        assert [document.id for document in documents] == ["good.txt"]
        assert error.source.startswith(name)
        assert "\n" not in str(error)
        return error

    return bad_file


@pytest.fixture
def stdin(monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], None]:
    """A function that fills standard input."""
    return lambda content: monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


def pdf(*pages: bytes) -> bytes:
    """A PDF with a title, and pages with these content streams."""
    objects = [
        b"<</Type /Catalog /Pages 2 0 R>>",
        b"<</Type /Pages /Kids [%b] /Count %d>>"
        % (b" ".join(b"%d 0 R" % (5 + 2 * n) for n in range(len(pages))), len(pages)),
        b"<</Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding>>",
        b"<</Title (A title)>>",
    ]
    for number, content in enumerate(pages):
        packed = zlib.compress(content)
        objects += [
            b"<</Type /Page /Parent 2 0 R /MediaBox [0 0 72 72] /Contents %d 0 R "
            b"/Resources <</Font <</F 3 0 R>>>>>>" % (6 + 2 * number),
            b"<</Length %d /Filter /FlateDecode>> stream\n%b\nendstream" % (len(packed), packed),
        ]
    body = b"".join(b"%d 0 obj %b endobj\n" % item for item in enumerate(objects, 1))
    return b"%PDF-1.4\n" + body + b"trailer <</Root 1 0 R /Info 4 0 R>>\n%%EOF\n"


def rewritten(content: bytes, member: str, change: Callable[[bytes], bytes]) -> bytes:
    """The archive with one member changed."""
    before, after = zipfile.ZipFile(io.BytesIO(content)), io.BytesIO()
    with zipfile.ZipFile(after, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in before.namelist():
            stored = before.read(name)
            archive.writestr(name, change(stored) if name == member else stored)
    return after.getvalue()


@pytest.fixture(scope="session")
def postgresql(program, missing) -> Iterator[str]:
    """The URL of a PostgreSQL server started for this session, reachable by socket only."""
    found = [shutil.which("initdb"), *sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))]
    programs = [path for path in found if path]
    if not programs:
        missing("postgresql")
    server = Path(programs[-1]).parent
    folder = Path(tempfile.mkdtemp(prefix="pg-"))  # a socket's path must be short
    unprivileged = []
    if os.geteuid() == 0:  # the server refuses to run as root
        unprivileged = [program("runuser"), "-u", "postgres", "--"]
        shutil.chown(folder, "postgres")

    def run(name: str, *arguments: str) -> None:
        command = [*unprivileged, str(server / name), "-D", str(folder / "data"), *arguments]
        subprocess.run(command, cwd="/", check=True, stdout=subprocess.DEVNULL, timeout=120)

    try:
        run("initdb", "--auth=trust", "--username=postgres", "--encoding=UTF8", "--no-sync")
        options = f"-k {folder} -c listen_addresses='' -c fsync=off"
        run("pg_ctl", "-w", "-l", str(folder / "log"), "-o", options, "start")
        try:
            yield f"postgresql://postgres@/postgres?host={folder}"
        finally:
            run("pg_ctl", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder)
