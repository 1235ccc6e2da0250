"""Documents are converted in a child process with limits; if it fails, one file is a bad row."""

from __future__ import annotations

import sys
import zlib
from pathlib import Path

import pytest

from semsearch.corpus import Corpus, conversion

if sys.platform != "linux":
    pytest.skip("memory is limited on Linux only", allow_module_level=True)


@pytest.fixture(autouse=True)
def own_child():
    """A new child process, with the limits of this test."""
    conversion._close_idle()
    yield
    conversion._close_idle()


def pdf(content: bytes) -> bytes:
    """A PDF of one page with this content stream."""
    packed = zlib.compress(content)
    objects = [
        b"<</Type /Catalog /Pages 2 0 R>>",
        b"<</Type /Pages /Kids [3 0 R] /Count 1>>",
        b"<</Type /Page /Parent 2 0 R /MediaBox [0 0 72 72] /Contents 4 0 R "
        b"/Resources <</Font <</F 5 0 R>>>>>>",
        b"<</Length %d /Filter /FlateDecode>> stream\n%b\nendstream" % (len(packed), packed),
        b"<</Type /Font /Subtype /Type1 /BaseFont /Helvetica>>",
    ]
    body = b"".join(b"%d 0 obj %b endobj\n" % item for item in enumerate(objects, 1))
    return b"%PDF-1.4\n" + body + b"trailer <</Root 1 0 R>>\n%%EOF\n"


GOOD = pdf(b"BT /F 12 Tf (Good text.) Tj ET")


def reasons(*names: str) -> list[str]:
    """Why each file but the last, which is read, is a bad row."""
    bad = []
    *_, last = Corpus(names, on_bad_row=bad.append)
    assert (last.id, last.text) == ("good.pdf#page=1", "Good text.")
    assert [error.file for error in bad] == list(names[:-1])
    return [error.reason for error in bad]


def test_memory_limit(write, monkeypatch):
    monkeypatch.setattr(conversion, "MAX_CONVERSION_BYTES", 100 << 20)
    bomb = pdf(b" " * (150 << 20))
    assert len(bomb) < 200_000
    files = write("bomb.pdf", bomb), write("good.pdf", GOOD)
    assert reasons(*files) == [
        "needs more than 100 MiB of memory to be converted, or crashes the converter"
    ]


def test_time_limit(write, monkeypatch):
    content = b"BT /F 1 Tf (a) Tj ET\n" * 2_000_000
    files = write("good.pdf", GOOD), write("slow.pdf", pdf(content))
    assert len(list(Corpus("good.pdf"))) == 1  # a busy machine needs long to start the child
    monkeypatch.setattr(conversion, "MAX_CONVERSION_SECONDS", 1.0)
    bad = []
    assert len(list(Corpus(files, on_bad_row=bad.append))) == 1
    assert [error.reason for error in bad] == ["takes longer than 1 s to convert"]


def test_a_child_that_died_is_replaced(write):
    write("good.pdf", GOOD)
    reasons("good.pdf")
    [child] = conversion._idle
    child._process.kill()
    child._process.wait()
    reasons("good.pdf")
    assert conversion._idle != [child]


def test_corpora_read_at_once_have_children_of_their_own(write):
    write("good.pdf", GOOD)
    write("page.html", "<h1>One</h1><p>a</p><h1>Two</h1><p>b</p>")
    corpora = [iter(Corpus(name)) for name in ("page.html", "good.pdf", "page.html")]
    first = [next(corpus).id for corpus in corpora]
    assert first == ["page.html#section=1", "good.pdf#page=1", "page.html#section=1"]
    assert [len(list(corpus)) for corpus in corpora] == [1, 0, 1]
    assert len(conversion._idle) == 1


def test_modules_beside_the_documents_are_not_run(write):
    """The child starts in the working directory, which may hold untrusted files."""
    for module in ("json", "semsearch", "pypdfium2", "signal"):
        write(f"{module}.py", "open('it-was-run', 'w')")
    reasons(write("good.pdf", GOOD))
    assert not Path("it-was-run").exists()
