"""scripts/dev/fuzz runs; one second is not expected to find faults."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FUZZ = Path(__file__).parent.parent / "scripts" / "dev" / "fuzz_targets.py"


def test_a_short_run(tmp_path, seed):
    pytest.importorskip("atheris", reason="fuzzing needs the extra 'fuzz'")
    done = subprocess.run(
        [sys.executable, FUZZ, "--seconds", "1", "--seed", str(seed)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    assert done.stdout.startswith(f"seed {seed}\n")
    assert done.stdout.endswith("targets: 4, failed: 0\n")


def test_saved_input_is_run_again(tmp_path):
    (tmp_path / "input").write_bytes(b"year = 1990")
    command = [sys.executable, FUZZ, "filters", "--input", tmp_path / "input"]
    assert subprocess.run(command, check=False).returncode == 0


def test_an_unknown_target(tmp_path):
    done = subprocess.run([sys.executable, FUZZ, "x"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "no target x" in done.stderr
