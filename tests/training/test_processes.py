"""Two processes, started by `accelerate launch`, train one model."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy
import pytest
from safetensors.numpy import load_file

from semsearch.training import Loss, Recipe, Settings, Siamese, train
from semsearch.training.batching import LikeLengthBatches
from semsearch.training.processes import broadcast, is_main, process_count

SCRIPT = Path(__file__).with_name("two_processes.py")


@pytest.mark.nightly
def test_two_processes_train_one_model(tiny_without_dropout, tmp_path):
    """Two with batches of 4, stopped and resumed, train as one does with batches of 8."""
    rows = [f"the cat {'runs ' * (n % 5)},one dog {'waits ' * (n % 3)},{n}" for n in range(48)]
    data = tmp_path / "ranks.csv"
    data.write_text("\n".join(["sentence1,sentence2,score", *rows]) + "\n")
    command = [sys.executable, "-m", "accelerate.commands.launch", "--multi_gpu"]
    command += ["--num_processes", "2", "--main_process_port", "0", str(SCRIPT)]
    command += [str(tiny_without_dropout), str(data), str(tmp_path)]
    environment = os.environ | {"CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
    assert done.returncode == 0, done.stderr
    main, other = (json.loads((tmp_path / f"{rank}.json").read_text()) for rank in (0, 1))

    # Each example occurs once per epoch.
    steps = [
        sorted(mine + theirs) for mine, theirs in zip(main["seen"], other["seen"], strict=True)
    ]
    assert len(steps) == 2 * 6
    for epoch in (steps[:6], steps[6:]):
        found = sorted(label for step in epoch for label in step)
        assert found == pytest.approx([n / 47 for n in range(48)])
    assert steps[:6] != steps[6:]

    recipe = Recipe(epochs=2, batch_size=8, learning_rate=1e-3)
    options = {"development": "none", "scale": (0, 47)}
    base, output = str(tiny_without_dropout), tmp_path / "alone"
    settings = Settings(base, output, [str(data)], [recipe], **options)
    alone = load_file(train(Siamese([Loss.COSINE]), settings).folder / "model.safetensors")
    both = load_file(tmp_path / "both" / "model.safetensors")
    assert alone.keys() == both.keys()
    for name, weights in alone.items():
        assert both[name] == pytest.approx(weights, abs=1e-5), name

    # An error stops both processes, and the main one reports it.
    assert main["stopped"].startswith("TrainingStoppedError: stopped after step 8")
    assert main["one failed"] == "TrainingError: process 1: no room"
    assert [other[name] for name in ("stopped", "one failed")] == 2 * ["SystemExit: 0"]


def test_a_single_process_is_the_main_one(monkeypatch):
    monkeypatch.delenv("RANK", raising=False)
    monkeypatch.setenv("WORLD_SIZE", "2")  # set by something else
    assert is_main()
    assert process_count() == 1
    assert broadcast("value") == "value"


@pytest.mark.parametrize(("count", "processes"), [(64, 2), (43, 2), (41, 3), (2, 3)])
def test_each_process_gets_its_share(count, processes):
    """accelerate gives the first batch to the first process, the second to the second …"""
    sampler = LikeLengthBatches(numpy.arange(count), (), None, 4, 1, processes=processes)
    found = list(sampler)
    assert len(found) == len(sampler)
    assert len(found) % processes == 0
    assert {row for batch in found for row in batch} == set(range(count))
    if count >= 4 * processes:
        assert sum(map(len, found)) == count
    assert all(1 <= len(batch) <= 4 for batch in found)
