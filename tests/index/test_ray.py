"""Encoding on a real Ray cluster, with each node in its own network namespace."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy
import pytest
from click.testing import CliRunner
from ray_cluster import HEAD, Cluster, Node

from scripts.dev.examples import blocks
from semsearch import Index
from semsearch.cli import main
from semsearch.errors import ArgumentError, ClusterError
from semsearch.index.cluster import workers_on
from semsearch.index.cluster.connection import Head, connect

pytestmark = pytest.mark.timeout(900)  # a busy machine takes minutes to start the cluster

DOCUMENT = Path(__file__).parents[2] / "docs" / "ray.md"
COMMANDS = [
    command
    for block in blocks(DOCUMENT.read_text("utf-8"))
    if block.language == "bash"
    for command in block.body.splitlines()
]
START_HEAD, START_OTHER = (command for command in COMMANDS if "ray start" in command)

#: An encoder that takes a second per batch, and kills its process if a text says so.
PLUGIN = """
import os, pathlib, signal, time
from semsearch import load_encoder

class Slow:
    def __init__(self, spec):
        self._encoder = load_encoder("hashing:32")
        self.spec, self.fingerprint = spec, "slow"
        self.log = pathlib.Path(spec.partition(":")[2])

    def __getattr__(self, name):
        return getattr(self._encoder, name)

    def encode_documents(self, texts):
        if texts == ["."]:
            return self._encoder.encode_documents(texts)
        with self.log.open("a") as file:
            file.write(f"{os.getpid()} {len(texts)}\\n")
        for text in texts:
            once = self.log.with_suffix(".once")
            if text == "die always" or text == "die once" and not once.exists():
                once.touch()
                os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(1)
        return self._encoder.encode_documents(texts)
"""


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
    site = folder / "site"
    made = site / "slow-1.dist-info"
    made.mkdir(parents=True)
    (made / "METADATA").write_text("Metadata-Version: 2.1\nName: slow\nVersion: 1\n")
    (made / "entry_points.txt").write_text("[semsearch.encoders]\nslow = slow:Slow\n")
    (site / "slow.py").write_text(PLUGIN)
    (folder / "hidden").mkdir()
    found = Cluster(START_HEAD, START_OTHER, folder, site)
    yield found
    found.remove()


@pytest.fixture
def second(cluster):
    """A second node, which cannot see the content of the folder `hidden`."""
    if len(cluster.nodes) == 1 or not cluster.nodes[-1].processes():
        cluster.add(hidden=cluster.folder / "hidden")
    return cluster.nodes[-1]


@pytest.fixture
def run(cluster, tmp_path):
    """Starts `semsearch index … --on ray` on the head and returns the process."""
    processes = []

    def run(*arguments, on="ray", **options):
        process = cluster.run("index", *arguments, "--on", on, **options)
        processes.append(process)
        return process

    yield run
    for process in processes:
        if process.poll() is None:
            process.kill()
            process.communicate()


def finish(process, status=0):
    output, errors = process.communicate(timeout=300)
    assert process.returncode == status, output + errors
    assert "Traceback" not in errors
    return output + errors


def write(folder, texts, name="corpus.csv"):
    lines = [f"{number},{text}" for number, text in enumerate(texts)]
    (folder / name).write_text("\n".join(["id,text", *lines]) + "\n")
    return folder / name


def slow(tmp_path):
    return f"slow:{tmp_path / 'log'}"


def content(place):
    """Everything that determines results: documents, passages and vectors, in order."""
    with Index.open(place) as index, index.writer() as writer:
        assert writer.verify() == []
        passages = index.passages()
        return list(index), passages[:4], passages.vectors


def same(left, right):
    for one, other in zip(left[1], right[1], strict=True):
        assert numpy.array_equal(one, other)
    numpy.testing.assert_allclose(left[2], right[2], atol=1e-6)
    return left[0] == right[0]


def texts_of(count):
    """Short and long texts, some of them repeated."""
    sentences = [f"Sentence {number} tells of bird {number % 7}." for number in range(400)]
    return [
        " ".join(sentences[: number % 90 + 1]) if number % 5 == 0 else sentences[number % 300]
        for number in range(count)
    ]


#: The command splits files into small parts and cannot read them itself.
READ_ELSEWHERE = """
from semsearch.corpus import elsewhere, parts
parts.PART_BYTES = 5000
del elsewhere.read_here
"""
#: The nodes see another version of each file.
OTHER_VERSION = """
from semsearch.corpus import parts
parts.PART_BYTES = 1000
present = parts.Version.of
parts.Version.of = lambda path: present(path)._replace(modified=1)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("encoder", "count"), [("hashing", 2000), ("minilm", 60)])
def test_index_equals_a_local_one(second, run, tmp_path, encoder, count, minilm):
    corpus = write(tmp_path, texts_of(count))
    options = [corpus, "--encoder", encoder, "--precision", "fp32"]
    output = finish(run(*options, "--index", tmp_path / "there", code=READ_ELSEWHERE))
    assert re.search(r"written in [\d.]+ s on [12] nodes? \(", output)
    here = ["index", *options, "--index", tmp_path / "here"]
    assert CliRunner().invoke(main, list(map(str, here))).exit_code == 0
    assert same(content(tmp_path / "there"), content(tmp_path / "here"))


@pytest.mark.slow
def test_into_milvus(run, package, tmp_path):
    package("pymilvus")
    package("milvus_lite")
    texts, address = texts_of(600), f"milvus-lite:{tmp_path}/file.db/one"
    finish(run(write(tmp_path, texts), "--encoder", "hashing", "--index", address))
    with Index.open(address) as index, index.writer() as writer:
        assert writer.verify() == []
        assert [document.text for document in index] == texts


#: Starts a Milvus server, which runs until standard input is closed.
MILVUS = """
import pathlib, sys
from milvus_server import Server
folder = pathlib.Path(sys.argv[1])
# It is not restarted, and on a busy machine its components renew their sessions late.
server = Server(folder, folder / "lock", **{"common.session.ttl": 60})
server.start()
print(server.port, flush=True)
sys.stdin.read()
server.stop()
"""


@pytest.fixture(scope="module")
def milvus(cluster, package, tmp_path_factory):
    """The port of a Milvus server on the head."""
    package("pymilvus")
    package("milvus")
    stores = str(Path(__file__).parents[1] / "stores")
    path = os.pathsep.join([cluster.environment["PYTHONPATH"], stores])
    folder = tmp_path_factory.mktemp("milvus")
    server = subprocess.Popen(
        cluster.head.command(sys.executable, "-c", MILVUS, folder),
        env=cluster.environment | {"PYTHONPATH": path},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    yield server.stdout.readline().strip()
    server.communicate(timeout=60)


#: Sends Ctrl-C after the first batch was committed.
INTERRUPTED = """
import os, signal
from semsearch.index.writer import Summary
plus = Summary.plus
def interrupted(*arguments):
    os.kill(os.getpid(), signal.SIGINT)
    return plus(*arguments)
Summary.plus = interrupted
"""
#: The command cannot write on behalf of nodes that fail to.
ALONE = "from semsearch.stores.milvus.writer import MilvusWriter; del MilvusWriter.write_share"


@pytest.mark.slow
def test_nodes_write_to_milvus(cluster, second, milvus, run, tmp_path):
    """One node is killed while it has a batch, after it has written another one."""
    texts = [f"Text {number} tells of bird {number % 7}." for number in range(5000)]
    corpus, address = write(tmp_path, texts), f"milvus://{HEAD}:{milvus}/killed"
    process = run(corpus, "--encoder", slow(tmp_path), "--index", address, code=ALONE)
    until(lambda: sum(one in second.processes() for one in begun(tmp_path)) > 1, process)
    second.kill()
    output = finish(process)
    assert f"node {second.address} is left out: it is gone" in output
    assert f"({len(texts):,} added)" in output
    compare_with_plain(cluster, address, corpus, tmp_path)


@pytest.mark.slow
def test_ctrl_c_and_a_node_that_cannot_reach_milvus(
    cluster, second, milvus, run, tmp_path, interruptible, monkeypatch
):
    monkeypatch.setitem(cluster.environment, "SEMSEARCH_MILVUS_TIMEOUT", "10")
    texts = [f"Text {number} tells of bird {number % 7}." for number in range(6000)]
    corpus, address = write(tmp_path, texts), f"milvus://127.0.0.1:{milvus}/interrupted"
    command = [corpus, "--encoder", slow(tmp_path), "--index", address]
    output = finish(run(*command, code=INTERRUPTED), 130)
    safe = int(re.search(r"interrupted; ([\d,]+) documents saved", output)[1].replace(",", ""))
    assert 0 < safe < len(texts)
    output = finish(run(*command))
    assert f"({len(texts) - safe:,} added, {safe:,} unchanged)" in output
    assert (
        f"node {second.address} cannot write to the index, this command writes for it: Milvus "
        f"does not answer at http://127.0.0.1:{milvus}"
    ) in output
    compare_with_plain(cluster, address, corpus, tmp_path)


def compare_with_plain(cluster, address, corpus, folder):
    """Check that an index on Milvus equals one that a single process wrote to a directory."""
    finish(cluster.run("verify", "--index", address))
    finish(cluster.run("pull", address, folder / "pulled"))
    plain = ["index", corpus, "--encoder", "hashing:32", "--index", folder / "plain"]
    assert CliRunner().invoke(main, list(map(str, plain))).exit_code == 0
    assert same(content(folder / "pulled"), content(folder / "plain"))
    query = ["query", "bird 3 tells", "-k", 50, "--format", "csv", "--index"]
    found = CliRunner().invoke(main, [*map(str, query), str(folder / "plain")])
    lines = [line.split(",")[:3] for line in found.stdout.splitlines()]
    output, _ = cluster.run(*query, address).communicate()
    assert [line.split(",")[:3] for line in output.splitlines()] == lines
    assert len(lines) == 51


@pytest.mark.slow
def test_a_node_joins_and_is_killed(cluster, run, tmp_path):
    """The corpus is fed until the node has a batch."""
    if len(cluster.nodes) > 1:
        cluster.nodes[-1].kill()
    command = ["-", "--encoder", slow(tmp_path), "--index", tmp_path / "x"]
    process = run(*command, stdin=subprocess.PIPE)
    texts, killed = [], threading.Event()

    def feed():
        process.stdin.write("id,text\n")
        while not killed.is_set() and len(texts) < 100_000:
            new = [f"Text {len(texts) + number}." for number in range(100)]
            lines = [f"{len(texts) + number},{text}\n" for number, text in enumerate(new)]
            process.stdin.write("".join(lines))
            process.stdin.flush()
            texts.extend(new)
            time.sleep(0.1)

    feeding = threading.Thread(target=feed, daemon=True)
    feeding.start()
    until(lambda: begun(tmp_path), process)
    node = cluster.add(hidden=cluster.folder / "hidden")
    until(lambda: set(begun(tmp_path)) & set(node.processes()), process)
    node.kill()
    killed.set()
    feeding.join()
    output = finish(process)
    assert f"node {node.address} is left out: it is gone" in output
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


@pytest.mark.slow
def test_an_actor_that_dies_is_replaced(run, tmp_path):
    texts = [*texts_of(300), "die once", "The last one."]
    corpus = write(tmp_path, texts)
    command = [corpus, "--encoder", slow(tmp_path), "--index", tmp_path / "x"]
    output = finish(run(*command, code=OTHER_VERSION))
    assert output.count("text from 'text'") == 1
    assert re.search(
        rf"^node .* cannot read {corpus}, this command reads it$", output, re.MULTILINE
    )
    assert "its actor died; another one is started" in output
    documents, _, _ = content(tmp_path / "x")
    assert [document.text for document in documents] == texts


@pytest.mark.slow
def test_a_batch_that_kills_every_actor_is_an_error(run, tmp_path):
    corpus = write(tmp_path, [*texts_of(300), "die always"])
    output = finish(run(corpus, "--encoder", slow(tmp_path), "--index", tmp_path / "x"), 1)
    assert re.search(
        r"^Error: node 10\.77\.\d\.\d: 3 actors died of one batch; .+$", output, re.MULTILINE
    )
    assert not (tmp_path / "x").exists()  # the run that makes an index makes it whole


@pytest.mark.slow
def test_ctrl_c_and_resuming(run, tmp_path, interruptible):
    texts = [f"Text {number}." for number in range(3000)]
    command = [write(tmp_path, texts), "--encoder", slow(tmp_path), "--index", tmp_path / "x"]
    output = finish(run(*command, code=INTERRUPTED), 130)
    kept = re.search(rf"interrupted; ([\d,]+) documents saved in {tmp_path / 'x'}; ", output)
    safe = int(kept[1].replace(",", ""))
    assert 0 < safe < len(texts)
    assert f"({len(texts) - safe:,} added, {safe:,} unchanged)" in finish(run(*command))
    documents, _, _ = content(tmp_path / "x")
    assert [document.text for document in documents] == texts


@pytest.mark.slow
def test_a_node_without_the_model_is_left_out(cluster, second, run, tmp_path):
    vectors = cluster.folder / "hidden" / "vectors.txt"
    vectors.write_text("bird 0.1 0.2\nsentence 0.3 0.1\n")
    corpus = write(tmp_path, texts_of(4000))
    encoders = ["--encoder", f"glove:{vectors}", "--encoder", slow(tmp_path)]
    output = finish(run(corpus, *encoders, "--index", tmp_path / "x"))
    assert re.search(rf"^node {second.address} is left out: .*{vectors}", output, re.MULTILINE)
    assert "4,000 documents (4,000 added)" in output


#: The head refuses the first connection, as if the process it starts for each had died.
REFUSED_ONCE = """
from ray.util.client.worker import Worker
real, tried = Worker._server_init, []
def refused(*arguments):
    real(*arguments)
    tried.append(1)
    if len(tried) == 1:
        raise ConnectionAbortedError('Initialization failure from server:\\nTrace\\nIt died.')
Worker._server_init = refused
"""


@pytest.mark.slow
def test_documented_commands(cluster, run):
    """The first connection is refused."""
    write(cluster.folder, texts_of(50))
    refused = REFUSED_ONCE
    for command in COMMANDS:
        program, *words = shlex.split(command.replace("HEAD", HEAD))
        if program == "semsearch":
            assert words[0] == "index"
            assert words[-2:] == ["--on", f"ray://{HEAD}"]
            output = finish(run(*words[1:-2], on=words[-1], code=refused))
            assert (f"ray://{HEAD}:10001: It died; trying again\n" in output) == bool(refused)
            refused = ""
    with Index.open(cluster.folder / "indexes" / "corpus") as index:
        assert all(space.complete for space in index.spaces())
        assert index.count() == 50


@pytest.mark.slow
@pytest.mark.parametrize(
    ("on", "code", "expected"),
    [
        ("ray://127.0.0.1:9", "", r"ray://127.0.0.1:9 cannot be used: .*Connection refused; "),
        (f"ray://{HEAD}", "import ray; ray.__version__ = '2.0.0'", "other versions of Ray"),
        (
            "ray",
            "import semsearch.version as v; v.__version__ = '0.0.1'",
            r"no node is left to encode: .* it has semsearch .*, not 0\.0\.1",
        ),
    ],
)
def test_errors_are_one_line(run, tmp_path, on, code, expected):
    corpus = write(tmp_path, texts_of(3))
    command = [corpus, "--encoder", "hashing", "--index", tmp_path / "x"]
    output = finish(run(*command, on=on, code=code), 1)
    [line] = [line for line in output.splitlines() if line.startswith("Error: ")]
    assert re.search(expected, line)
    assert line.endswith("[unusable-cluster]")
    assert output.endswith(line + "\n")


@pytest.mark.parametrize(
    ("error", "reported"),
    [
        ("Initialization failure from server:\nTrace\nIt died.", "It died"),
        ("", "the connection was closed"),
    ],
)
def test_a_head_that_refuses_three_times(package, monkeypatch, error, reported):
    ray = package("ray")
    tried = []

    def refuse(*_, **__):
        tried.append(1)
        raise ConnectionAbortedError(error)

    monkeypatch.setattr(ray, "init", refuse)
    with pytest.raises(ClusterError, match=rf"^ray://far:1 cannot be used: {reported}$"):
        connect(Head("far", 1))
    assert len(tried) == 3


def test_ray_that_does_not_start(package, monkeypatch):
    ray = package("ray")

    def fail(address, **_):
        raise ConnectionError if address == "auto" else Exception("The node timed out.")

    monkeypatch.setattr(ray, "init", fail)
    with pytest.raises(ClusterError, match="of this machine cannot be used: The node timed out; "):
        connect(None)


def test_a_node_has_an_actor_or_one_for_each_gpu(package):
    package("ray")
    from semsearch.index.cluster.workers import _seats

    node = {"NodeID": "a", "NodeManagerAddress": "10.0.0.1", "Alive": True}
    assert [seat[3:] for seat in _seats({**node, "Resources": {"CPU": 8.0}})] == [(8, 0)]
    both = {"CPU": 9.0, "GPU": 2.0}
    assert [seat[3:] for seat in _seats({**node, "Resources": both})] == [(4, 1), (4, 1)]
    assert _seats({**node, "Resources": {"memory": 1.0}}) == []
    assert _seats({**node, "Resources": both, "Alive": False}) == []


@pytest.mark.parametrize("on", ["", "dask", "ray:", "ray://", "ray://a b", "ray://a:x", "Ray"])
def test_invalid_cluster_is_rejected(on):
    with pytest.raises(ArgumentError, match="on must be ray or ray://HOST"):
        workers_on(on)


def test_missing_extra_is_named(tmp_path):
    code = """
import importlib.util, sys
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "ray" else found(name, *rest)
from semsearch.cli import run; run()
"""
    done = subprocess.run(
        [sys.executable, "-c", code, "index", "--sample", "--on", "ray"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr == (
        "Error: encoding on a cluster needs ray: pip install 'semsearch[ray]' [missing-extra]\n"
    )
    assert not list(tmp_path.iterdir())


def test_ray_is_imported_only_on_demand(tmp_path):
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "semsearch", "index", "--sample"]
        + ["--encoder", "hashing", "--index", "x"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert not re.search(r"\| +(ray|grpc)$", done.stderr, re.MULTILINE)
