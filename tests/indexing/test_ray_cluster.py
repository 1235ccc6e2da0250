"""Encoding on a real Ray cluster, with each node in its own network namespace."""

from __future__ import annotations

import shlex
import subprocess
import time
from pathlib import Path

import pytest
from ray_cluster import HEAD, Cluster, Node, content, finish, texts_of, write, write_plugin

from scripts.dev.examples import blocks
from semsearch import Index

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.timeout(900),  # a busy machine takes minutes to start the cluster
]

DOCUMENT = Path(__file__).parents[2] / "docs" / "ray.md"
COMMANDS = [
    command
    for block in blocks(DOCUMENT.read_text("utf-8"))
    if block.language == "bash"
    for command in block.body.splitlines()
]
START_HEAD, START_OTHER = (command for command in COMMANDS if "ray start" in command)


@pytest.fixture(scope="module")
def cluster(program, package, tmp_path_factory):
    """A cluster of one node, with the encoder plugin `slow`."""
    program("ip")
    package("ray")
    try:
        Node().remove()
    except subprocess.CalledProcessError as error:
        pytest.skip(f"cannot create network namespaces: {error.stderr}")
    folder = tmp_path_factory.mktemp("ray")
    write_plugin(folder / "site")
    found = Cluster(START_HEAD, START_OTHER, folder, folder / "site")
    yield found
    found.remove()


@pytest.fixture
def run(cluster, tmp_path):
    """Starts `semsearch index … --ray auto` on the head and returns the process."""
    processes = []

    def run(*arguments, on="auto", **options):
        process = cluster.run("index", *arguments, "--ray", on, **options)
        processes.append(process)
        return process

    yield run
    for process in processes:
        if process.poll() is None:
            process.kill()
            process.communicate()


def test_a_node_joins_and_is_killed(cluster, run, tmp_path):
    """The corpus lasts until the node has a batch."""
    if len(cluster.nodes) > 1:
        cluster.nodes[-1].kill()
    texts = [f"Text {number}." for number in range(120_000)]
    corpus = write(tmp_path, texts)
    process = run(corpus, "--encoder", f"slow:{tmp_path / 'log'}", "--index", tmp_path / "x")
    until(lambda: begun(tmp_path), process)
    node = cluster.add()
    until(lambda: set(begun(tmp_path)) & set(node.processes()), process)
    node.kill()
    output = finish(process)
    assert f"node {node.address} is left out" in output
    documents, _, _ = content(tmp_path / "x")
    assert [document.text for document in documents] == texts
    lines = (tmp_path / "log").read_text().splitlines()
    assert sum(int(line.split()[1]) for line in lines) > len(texts)  # its batch was started twice


def begun(tmp_path):
    """The ids of the processes that started a batch, one per batch."""
    log = tmp_path / "log"
    return [int(line.split()[0]) for line in log.read_text().splitlines()] if log.exists() else []


def until(holds, process):
    for _ in range(2400):
        if holds():
            return
        assert process.poll() is None, process.communicate()
        time.sleep(0.1)
    pytest.fail("timed out")


def test_documented_commands(cluster, run):
    write(cluster.folder, texts_of(50))
    for command in COMMANDS:
        program, *words = shlex.split(command.replace("HEAD", HEAD))
        if program == "semsearch":
            assert words[0] == "index"
            assert words[-2:] == ["--ray", f"ray://{HEAD}"]
            finish(run(*words[1:-2], on=words[-1]))
    with Index.open(cluster.folder / "indexes" / "corpus") as index:
        assert all(space.complete for space in index.spaces())
        assert index.count() == 50


def test_other_versions_are_refused(run, tmp_path):
    command = [write(tmp_path, texts_of(3)), "--encoder", "hashing", "--index", tmp_path / "x"]
    for on, package in (("auto", "semsearch"), (f"ray://{HEAD}", "ray")):
        code = f"import {package}; {package}.__version__ = '0.0.1'"
        assert finish(run(*command, on=on, code=code), 1).endswith("[unusable-cluster]\n")
    assert not (tmp_path / "x").exists()
