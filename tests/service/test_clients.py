"""Clients of other programs: curl as docs/how-to/serve.md shows it, and one that is generated."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import pytest
from birds import running
from click.testing import CliRunner

from scripts.dev.examples import ENVIRONMENT, ROOT, blocks, same, session
from semsearch.cli import main

pytest.importorskip("fastapi", reason="the service needs the extra 'serve'")
from semsearch.service import Settings, create_app

WRITABLE = Settings(writable=True)


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
@pytest.mark.usefixtures("forgetful", "minilm")
def test_curl_prints_what_the_page_shows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    assert CliRunner().invoke(main, ["index", "--sample"]).exit_code == 0
    page = (ROOT / "docs/how-to/serve.md").read_text("utf-8")
    (shown,) = (one.body for one in blocks(page) if "test_clients" in (one.not_run or ""))
    with running({"notes": "indexes/notes"}, WRITABLE) as (_, port):
        monkeypatch.setenv("NOTES", f"http://127.0.0.1:{port}/v1/indexes/notes")
        printed = "\n".join(session(shown))
    assert same(shown, printed), printed


@pytest.mark.nightly
def test_a_generated_client(path, tmp_path, monkeypatch):
    pytest.importorskip("openapi_python_client", reason="generates the client")
    schema = tmp_path / "openapi.json"
    schema.write_text(json.dumps(create_app({}, WRITABLE).openapi()), "utf-8")
    folder = tmp_path / "birds_client"
    generated = subprocess.run(
        [
            *(sys.executable, "-m", "openapi_python_client", "generate", "--meta", "none"),
            *("--path", str(schema), "--output-path", str(folder)),
        ],
        capture_output=True,
        text=True,
    )
    assert generated.returncode == 0, generated.stdout
    assert "WARNING" not in generated.stdout
    monkeypatch.syspath_prepend(tmp_path)
    from birds_client import Client
    from birds_client.api.default import add, delete, documents, search
    from birds_client.models import NewDocument, Problem

    with (
        running({"birds": path}, WRITABLE) as (_, port),
        Client(base_url=f"http://127.0.0.1:{port}") as client,
    ):
        written = add.sync("birds", client=client, body=[NewDocument("a green bird", id="new")])
        assert written["documents"] == [{"id": "new"}]
        found = search.sync("birds", client=client, query="green bird", k=1)
        assert found["hits"][0]["id"] == "new"
        assert documents.sync("birds", client=client, where="year > 2000")["total"] == 2
        assert delete.sync("birds", client=client, id="new")["deleted"] == 1
        refused = documents.sync("birds", client=client, id="new")
        assert isinstance(refused, Problem)
        assert refused.status == 404
