"""Encoding with the Ray of this machine, and what can be said without a cluster."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

from semsearch import Corpus, Document, Index
from semsearch.encoders import load_encoder
from semsearch.errors import ArgumentError, ClusterError, MissingExtraError
from semsearch.indexing.ray import RayPool, pool_on

ROOT = Path(__file__).parents[2]

#: An encoder that takes SLOW_SECONDS per batch, and kills its process if a text says so.
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
        time.sleep(float(os.environ.get("SLOW_SECONDS", "1")))
        return self._encoder.encode_documents(texts)
"""


def write_plugin(folder: Path) -> None:
    """Make a folder from which Python can import the encoder plugin `slow`."""
    made = folder / "slow-1.dist-info"
    made.mkdir(parents=True)
    (made / "METADATA").write_text("Metadata-Version: 2.1\nName: slow\nVersion: 1\n")
    (made / "entry_points.txt").write_text("[semsearch.encoders]\nslow = slow:Slow\n")
    (folder / "slow.py").write_text(PLUGIN)


def texts_of(count: int) -> list[str]:
    """Short and long texts, some of them repeated."""
    sentences = [f"Sentence {number} tells of bird {number % 7}." for number in range(400)]
    return [
        " ".join(sentences[: number % 90 + 1]) if number % 5 == 0 else sentences[number % 300]
        for number in range(count)
    ]


def write(folder: Path, texts: list[str]) -> Path:
    """Write a corpus with ids."""
    lines = [f"{number},{text}" for number, text in enumerate(texts)]
    (folder / "corpus.csv").write_text("\n".join(["id,text", *lines]) + "\n")
    return folder / "corpus.csv"


def content(place):
    """Everything that determines results: documents, passages and vectors, in order."""
    with Index.open(place) as index, index.writer() as writer:
        assert writer.verify() == []
        passages = index.passages()
        return list(index), [list(column) for column in passages[:4]], passages.vectors


@pytest.fixture
def run(package, tmp_path):
    """Indexes the corpus in `tmp_path` with a Ray of this machine; returns what is printed."""
    package("ray")
    write_plugin(tmp_path / "site")

    def run(status=0):
        program = "from semsearch.cli import run; run()"
        arguments = ["--encoder", f"slow:{tmp_path / 'log'}", "--index", "there", "--ray", "auto"]
        path = os.pathsep.join([str(ROOT), str(tmp_path / "site")])
        done = subprocess.run(
            [sys.executable, "-c", program, "index", "corpus.csv", *arguments],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": path, "SLOW_SECONDS": "0"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, "Traceback" in done.stderr) == (status, False), done.stderr
        return done.stdout + done.stderr

    return run


@pytest.mark.timeout(300)
def test_an_actor_that_dies_is_replaced(run, tmp_path):
    """The index equals one that a single process wrote."""
    corpus = write(tmp_path, [*texts_of(300), "die once", "The last one."])
    assert re.search(r"302 added.* on 1 node ", run())
    assert (tmp_path / "log.once").exists()
    with Index.create(tmp_path / "here", "hashing:32") as index:
        index.add(Corpus(corpus))
    *found, vectors = content(tmp_path / "there")
    *expected, own_vectors = content(tmp_path / "here")
    assert found == expected
    numpy.testing.assert_allclose(vectors, own_vectors, atol=1e-6)


@pytest.mark.nightly
@pytest.mark.timeout(300)
def test_a_batch_that_kills_every_actor_is_an_error(run, tmp_path):
    write(tmp_path, [*texts_of(300), "die always"])
    assert run(status=1).endswith("[unusable-cluster]\n")
    assert not (tmp_path / "there").exists()  # the run that makes an index makes it whole


@pytest.fixture
def slow(package, tmp_path, monkeypatch):
    """An encoder of the plugin, which this process and Ray's can import."""
    package("ray")
    site = tmp_path / "site"
    write_plugin(site)
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), str(site)]))
    monkeypatch.setenv("SLOW_SECONDS", "0.5")
    return load_encoder(f"slow:{tmp_path / 'log'}")


@pytest.mark.nightly
@pytest.mark.timeout(300)
def test_a_node_joins_and_is_killed(slow, tmp_path, caplog, monkeypatch):
    """The corpus is fed until the new node has a batch, and goes on after it is lost."""
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    monkeypatch.setenv("RAY_ADDRESS", cluster.address)

    def documents():
        yield from (Document(f"a{n}", f"Text {n}.") for n in range(300))
        node, number = cluster.add_node(num_cpus=1), 0
        while len(begun(slow)) < 2 and number < 100_000:
            yield Document(f"b{number}", f"Other {number}.")
            number += 1
        cluster.remove_node(node, allow_graceful=False)
        yield from (Document(f"c{n}", f"Last {n}.") for n in range(300))

    try:
        with Index.create(tmp_path / "x", slow) as index, index.writer(ray="auto") as writer:
            added = writer.upsert(documents()).added
    finally:
        cluster.shutdown()
    assert "is left out" in caplog.text
    assert content(tmp_path / "x")[0][-1].text == "Last 299."
    assert len(Index.open(tmp_path / "x")) == added


def begun(slow):
    """The processes that have begun a batch."""
    lines = slow.log.read_text().splitlines() if slow.log.exists() else []
    return {line.split()[0] for line in lines}


@pytest.mark.nightly
@pytest.mark.timeout(300)
def test_nodes_with_another_version_are_refused(slow, tmp_path, monkeypatch):
    monkeypatch.setattr("semsearch.indexing.ray.__version__", "0.0.1")
    with Index.create(tmp_path / "x", slow) as index, index.writer(ray="auto") as writer:
        with pytest.raises(ClusterError, match=r"not 0\.0\.1"):
            writer.upsert([Document("a", "A text.")])


def test_a_ray_that_does_not_start(package, monkeypatch):
    ray = package("ray")

    def fail(address, **_):
        raise ConnectionError if address == "auto" else Exception("The node timed out.")

    monkeypatch.setattr(ray, "init", fail)
    with pytest.raises(ClusterError, match="The node timed out"), RayPool(None, []):
        pass


def test_a_head_that_does_not_answer(package, tmp_path):
    package("ray")
    with Index.create(tmp_path / "x", "hashing:8") as index, pytest.raises(ClusterError):
        with index.writer(ray="ray://127.0.0.1:9"):
            pass


def test_an_invalid_cluster_is_refused():
    for on in ("", "dask", "ray:", "ray://", "ray://a b", "ray://a:x", "Ray"):
        with pytest.raises(ArgumentError):
            pool_on(on)


def test_the_missing_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("semsearch.indexing.ray.find_spec", lambda name: None)
    with Index.create(tmp_path / "x", "hashing:8") as index, pytest.raises(MissingExtraError):
        with index.writer(ray="auto"):
            pass
