"""Models from the hub: against a small hub of our own on this machine."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

NAME = "someone/tiny"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
FILES = {
    "config.json": b'{"model_type": "bert"}',
    "modules.json": b'[{"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"}]',
    "1_Pooling/config.json": b'{"pooling_mode_mean_tokens": true}',
    "model.safetensors": b"weights",
    "pytorch_model.bin": b"a pickle",
    "onnx/model.onnx": b"another runtime's",
    "README.md": b"a card",
}
WANTED = {"config.json", "modules.json", "1_Pooling/config.json", "model.safetensors"}


def sha1(content):
    return hashlib.sha1(content, usedforsecurity=False).hexdigest()


class Hub(BaseHTTPRequestHandler):
    """What huggingface_hub asks of a hub: the list of a model's files, and the files."""

    asked: list[str]

    def do_GET(self):
        self.answer(with_body=True)

    def do_HEAD(self):
        self.answer(with_body=False)

    def answer(self, *, with_body):
        self.asked.append(self.path)
        files = f"/{NAME}/resolve/{COMMIT}/"
        if self.path.startswith(f"/api/models/{NAME}/revision/main"):
            listed = [{"rfilename": file} for file in FILES]
            body = json.dumps({"id": NAME, "sha": COMMIT, "siblings": listed}).encode()
        elif self.path.startswith(f"/api/models/{NAME}/tree/{COMMIT}"):
            tree = [
                {"type": "file", "path": file, "size": len(body), "oid": sha1(body)}
                for file, body in FILES.items()
            ]
            body = json.dumps(tree).encode()
        elif self.path.startswith(files) and self.path.removeprefix(files) in FILES:
            body = FILES[self.path.removeprefix(files)]
        else:
            self.send_response(404)
            self.send_header("X-Error-Code", "RepoNotFound")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("ETag", f'"{hashlib.sha256(body).hexdigest()}"')
        self.send_header("X-Repo-Commit", COMMIT)
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def log_message(self, *arguments):
        pass


@pytest.fixture
def hub():
    Hub.asked = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def find(spec, endpoint, cache):
    """What `find_model` prints in a process of its own: the client reads its settings once."""
    code = (
        "import sys\n"
        "from semsearch.encoders.model_folder import find_model\n"
        "from semsearch.errors import SemsearchError\n"
        "try: print(find_model(sys.argv[1]).path)\n"
        "except SemsearchError as error: sys.exit(f'{type(error).__name__}: {error}')\n"
    )
    environment = os.environ | {"HF_ENDPOINT": endpoint, "HF_HOME": str(cache)}
    environment |= {"HF_HUB_OFFLINE": "0", "HF_HUB_DISABLE_XET": "1"}
    return subprocess.run(
        [sys.executable, "-c", code, spec],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )


def files_below(folder):
    return {file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()}


def test_a_model_is_fetched_once_and_without_pickles(hub, tmp_path):
    done = find(NAME, hub, tmp_path)
    assert done.returncode == 0, (done.stderr, Hub.asked)
    folder = Path(done.stdout.strip())
    assert files_below(folder) == WANTED
    assert (folder / "model.safetensors").read_bytes() == b"weights"
    fetched = [path for path in Hub.asked if path.endswith("model.safetensors")]
    again = find(NAME, hub, tmp_path)
    assert again.stdout == done.stdout
    assert [path for path in Hub.asked if path.endswith("model.safetensors")] == fetched


def test_what_was_fetched_serves_without_the_hub(hub, tmp_path):
    done = find(NAME, hub, tmp_path)
    offline = find(NAME, "http://127.0.0.1:9", tmp_path)  # nobody listens there
    assert done.returncode == 0
    assert offline.stdout == done.stdout


def test_a_model_that_the_hub_has_not(hub, tmp_path):
    done = find("someone/nothing", hub, tmp_path)
    assert done.stderr.startswith("ModelNotFoundError: no model 'someone/nothing': neither")
    assert done.stderr.count("\n") == 1


def test_no_hub(tmp_path):
    done = find(NAME, "http://127.0.0.1:9", tmp_path)
    assert done.stderr.startswith("ModelNotFoundError: no model 'someone/tiny': it is no folder")
    assert "hub cannot be reached" in done.stderr
