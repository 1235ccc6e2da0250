"""Encoding with the Ray of this machine, and what can be said without a cluster."""

from __future__ import annotations

import os
import re
from types import SimpleNamespace

import pytest
from ray_cluster import ROOT, content, finish, same, semsearch, start, texts_of, write, write_plugin

from semsearch import Corpus, Index
from semsearch.errors import ArgumentError, ClusterError, MissingExtraError
from semsearch.indexing.ray import RayPool, connect, pool_on


@pytest.fixture
def run(package, tmp_path):
    """Indexes the corpus in `tmp_path` with a Ray of this machine; returns what is printed."""
    package("ray")
    write_plugin(tmp_path / "site")

    def run(status=0):
        arguments = ["--encoder", f"slow:{tmp_path / 'log'}", "--index", "there", "--ray", "auto"]
        path = os.pathsep.join([str(ROOT), str(tmp_path / "site")])
        environment = os.environ | {"PYTHONPATH": path, "SLOW_SECONDS": "0"}
        command = semsearch("index", "corpus.csv", *arguments)
        return finish(start(command, tmp_path, environment), status)

    return run


@pytest.mark.timeout(300)
def test_an_actor_that_dies_is_replaced(run, tmp_path):
    """The index equals one that a single process wrote."""
    corpus = write(tmp_path, [*texts_of(300), "die once", "The last one."])
    assert re.search(r"302 added.* on 1 node ", run())
    assert (tmp_path / "log.once").exists()
    with Index.create(tmp_path / "here", "hashing:32") as index:
        index.add(Corpus(corpus))
    assert same(content(tmp_path / "there"), content(tmp_path / "here"))


@pytest.mark.nightly
@pytest.mark.timeout(300)
def test_a_batch_that_kills_every_actor_is_an_error(run, tmp_path):
    write(tmp_path, [*texts_of(300), "die always"])
    assert run(status=1).endswith("[unusable-cluster]\n")
    assert not (tmp_path / "there").exists()  # the run that makes an index makes it whole


def test_a_ray_that_does_not_start(package, monkeypatch):
    ray = package("ray")

    def fail(address, **_):
        raise ConnectionError if address == "auto" else Exception("The node timed out.")

    monkeypatch.setattr(ray, "init", fail)
    with pytest.raises(ClusterError, match="The node timed out"), RayPool(None, []):
        pass


@pytest.mark.parametrize("connected", [True, False])
def test_a_ray_of_the_program_is_left_running(package, monkeypatch, connected):
    ray = package("ray")
    monkeypatch.setattr(ray, "is_initialized", lambda: connected)
    monkeypatch.setattr(ray, "init", lambda *arguments, **options: None)
    assert connect(None) == (ray, not connected)


def test_each_living_node_gets_actors_once(monkeypatch):
    started = []
    pool = RayPool(None, [])
    nodes = [{"NodeID": "a", "Alive": True}, {"NodeID": "b", "Alive": False}]
    monkeypatch.setattr(pool, "_ray", SimpleNamespace(nodes=lambda: nodes), raising=False)
    monkeypatch.setattr(pool, "_start_actors", started.append)
    for _ in range(2):
        pool._look_for_nodes()
        pool._looked -= 10
    assert started == nodes[:1]


def test_clusters_that_cannot_be_used(package, tmp_path, monkeypatch):
    for on in ("", "dask", "ray:", "ray://", "ray://a b", "ray://a:x", "Ray"):
        with pytest.raises(ArgumentError):
            pool_on(on)
    package("ray")
    with pytest.raises(ClusterError):
        pool_on("ray://127.0.0.1:9")
    monkeypatch.setattr("semsearch.indexing.ray.find_spec", lambda name: None)
    with Index.create(tmp_path / "x", "hashing:8") as index, pytest.raises(MissingExtraError):
        with index.writer(ray="auto"):
            pass
