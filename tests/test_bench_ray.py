"""The output of scripts/bench/ray; its timings are not tested."""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager

from scripts.bench import ray


def test_overhead_and_efficiency(monkeypatch, tmp_path, capsys):
    rates = iter([110.0, 100.0, 50.0, 90.0])
    started = []

    @contextmanager
    def ray_nodes(parts):
        started.append([len(part) for part in parts])
        yield {} if parts else None

    monkeypatch.setattr(ray, "ray_nodes", ray_nodes)
    monkeypatch.setattr(ray, "measured_apart", lambda *_: ray.Measured(1.0, next(rates)))
    monkeypatch.setattr(ray.os, "sched_getaffinity", lambda _: {0, 1, 2, 3}, raising=False)
    monkeypatch.setenv("SEMSEARCH_DATA", str(tmp_path))
    file = tmp_path / "out.json"
    monkeypatch.setattr(sys, "argv", ["ray", "--repeats", "1", "--json", str(file)])
    assert ray.main() == 0
    assert started == [[], [4], [2], [2, 2]]
    # 110 / 100 - 1, and 90 / (2 * 50)
    assert "overhead 10.0%, efficiency of 2 actors 90.0%" in capsys.readouterr().out
    report = json.loads(file.read_text("utf-8"))
    assert len(report["runs"]) == 4
    assert report["efficiency"] == 0.9
