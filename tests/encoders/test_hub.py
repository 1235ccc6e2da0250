"""Models from the hub, tested with a small local server."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from semsearch import Document, Index
from tests.conftest import serving

NAME = "someone/tiny"
FIRST = "0123456789abcdef0123456789abcdef01234567"
SECOND = "89abcdef0123456789abcdef0123456789abcdef"
FILES = {
    "config.json": b'{"model_type": "bert"}',
    "modules.json": b'[{"type": "sentence_transformers.models.Transformer", "path": ""}]',
    "1_Pooling/config.json": b'{"pooling_mode_mean_tokens": true}',
    "model.safetensors": b"weights",
    "pytorch_model.bin": b"a pickle",
    "onnx/model.onnx": b"another runtime's",
    "README.md": b"a card",
}
ADDRESS = re.compile(rf"(?:/api/models)?/{NAME}/(revision|tree|resolve)/([^/?]+)/?([^?]*)")
WANTED = {"config.json", "modules.json", "1_Pooling/config.json", "model.safetensors"}


def sha1(content):
    return hashlib.sha1(content, usedforsecurity=False).hexdigest()


class Hub(BaseHTTPRequestHandler):
    """The API that huggingface_hub uses: the list of a model's files, and the files."""

    asked: list[str]
    revisions: dict[str, str]  # revision: commit
    commits: dict[str, dict[str, bytes]]  # commit: files

    def do_GET(self):
        self.asked.append(self.path)
        found = ADDRESS.match(self.path)
        kind, revision, file = found.groups() if found else ("", "", "")
        commit = self.revisions.get(revision, revision)
        files = self.commits.get(commit)
        if files is None:
            status, body = 404, b""
            headers = {"X-Error-Code": "RevisionNotFound" if found else "RepoNotFound"}
        else:
            status, body = 200, self.body(kind, commit, files, file)
            headers = {"ETag": f'"{hashlib.sha256(body).hexdigest()}"', "X-Repo-Commit": commit}
        self.send_response(status)
        for name, value in (headers | {"Content-Length": str(len(body))}).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def do_HEAD(self):
        self.do_GET()

    def body(self, kind, commit, files, file):
        if kind == "resolve":
            return files[file]
        if kind == "tree":
            tree = [
                {"type": "file", "path": name, "size": len(body), "oid": sha1(body)}
                for name, body in files.items()
            ]
            return json.dumps(tree).encode()
        listed = [{"rfilename": name} for name in files]
        return json.dumps({"id": NAME, "sha": commit, "siblings": listed}).encode()


@pytest.fixture
def hub():
    Hub.asked = []
    Hub.revisions = {"main": FIRST}
    Hub.commits = {FIRST: FILES}
    with serving(Hub) as address:
        yield address


FIND = """
import sys
from semsearch.encoders.model_folder import find_model
from semsearch.errors import SemsearchError
for spec in sys.argv[1:]:
    try: print(find_model(spec).path)
    except SemsearchError as error: print(f"{type(error).__name__}: {error}")
"""

USE = """
import sys
from semsearch import Document, Index, SemsearchError
for use in (lambda index: index.search('a'), lambda index: index.add([Document('2', 'b')])):
    try: use(Index.open(sys.argv[1]))
    except SemsearchError as error: print(error.code)
"""


def run(arguments, endpoint, cache):
    """Run Python with this hub, and this cache of its client, which reads settings only once."""
    environment = os.environ | {"HF_ENDPOINT": endpoint, "HF_HOME": str(cache)}
    environment |= {"HF_HUB_OFFLINE": "0", "HF_HUB_DISABLE_XET": "1"}
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def find(endpoint, cache, *specs):
    return run(["-c", FIND, *specs], endpoint, cache).stdout.splitlines()


def read(folder):
    files = (file for file in folder.rglob("*") if file.is_file())
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in files}


def test_a_model_is_fetched_once_and_without_pickles(hub, tmp_path):
    specs = (NAME, NAME, "someone/nothing", f"{NAME}@v2")
    found, again, unknown, revision = find(hub, tmp_path, *specs)
    assert read(Path(found)) == {name: FILES[name] for name in WANTED}
    assert again == found
    fetched = [path for path in Hub.asked if path.endswith("model.safetensors")]
    assert len(fetched) == 2  # its size, then its content
    assert unknown.startswith("ModelNotFoundError: no model 'someone/nothing'")
    assert revision.startswith("ModelNotFoundError: no model 'someone/tiny@v2'")
    offline = find("http://127.0.0.1:9", tmp_path, NAME, "someone/other")  # nobody listens there
    assert offline[0] == found
    assert offline[1].startswith("ModelNotFoundError: no model 'someone/other'")


def test_an_index_is_pinned_to_its_commit(hub, write_bert, tmp_path):
    """The hub is contacted for models that users name, never for those that indexes name."""
    Hub.commits = {FIRST: read(write_bert([*"abcdef"]))}
    (tmp_path / "corpus.jsonl").write_text('{"text": "a b c"}\n{"text": "d e f"}\n')
    path = tmp_path / "index"

    def semsearch(*arguments):
        Hub.asked.clear()
        done = run(["-m", "semsearch", *arguments, "--index", path], hub, tmp_path / "cache")
        assert done.returncode == 0, done.stderr
        return done.stdout, bool(Hub.asked)

    assert semsearch("index", tmp_path / "corpus.jsonl", "--encoder", NAME)[1]
    with Index.open(path) as index:
        assert index.space().spec == f"{NAME}@{FIRST}"
        assert index.space().name == "tiny"
        assert index.space().description["commit"] == FIRST
    before, asked = semsearch("query", "a b c", "--format", "jsonl")
    assert not asked
    Hub.revisions["main"] = SECOND
    assert semsearch("query", "a b c", "--format", "jsonl") == (before, False)


def test_an_index_with_an_untrusted_spec(hub, tmp_path, hashing):
    """The Python interface does not contact the hub either, however an index is opened."""
    path = tmp_path / "index"
    with Index.create(path, [hashing]) as index:
        index.add([Document("1", "a b c")])
        with index._store.database.writing() as connection, connection.begin():
            connection.exec_driver_sql("UPDATE spaces SET spec = 'evil/tracker'")
    done = run(["-c", USE, path], hub, tmp_path / "cache")
    assert done.stdout.splitlines() == ["model-not-found"] * 2, done
    assert Hub.asked == []
