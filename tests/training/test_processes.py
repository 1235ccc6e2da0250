"""Two processes, started by `accelerate launch`, train one model."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from semsearch.training.stages import is_main, process_count
from semsearch.training.trainer import broadcast

SCRIPT = Path(__file__).with_name("two_processes.py")


@pytest.mark.nightly
def test_two_processes_train_one_model(tiny_without_dropout, tmp_path):
    """Stopped in one and resumed, they see each example once per epoch, at different steps."""
    rows = [f"the cat {'runs ' * (n % 5)},one dog {'waits ' * (n % 3)},{n}" for n in range(48)]
    data = tmp_path / "ranks.csv"
    data.write_text("\n".join(["sentence1,sentence2,score", *rows]) + "\n")
    command = [sys.executable, "-m", "accelerate.commands.launch", "--multi_gpu"]
    command += ["--num_processes", "2", "--main_process_port", "0", str(SCRIPT)]
    command += [str(tiny_without_dropout), str(data), str(tmp_path)]
    environment = os.environ | {"CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
    assert done.returncode == 0, done.stderr
    reports = [json.loads((tmp_path / f"{rank}.json").read_text()) for rank in (0, 1)]
    for report in reports:
        assert report["stopped"].startswith("stopped after step 4")
        assert len(report["seen"]) == 2 * 6
    for epoch in (slice(0, 6), slice(6, 12)):
        batches = [batch for report in reports for batch in report["seen"][epoch]]
        found = sorted(label for batch in batches for label in batch)
        assert found == pytest.approx([n / 47 for n in range(48)])
    assert (tmp_path / "both" / "model.safetensors").exists()


def test_a_single_process_is_the_main_one(monkeypatch):
    monkeypatch.delenv("RANK", raising=False)
    monkeypatch.setenv("WORLD_SIZE", "2")  # set by something else
    assert is_main()
    assert process_count() == 1
    assert broadcast("value") == "value"
