"""scripts/dev/fuzz runs; one second is not expected to find faults."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.nightly
@pytest.mark.parametrize("target", ["filters", "corpus"])
def test_a_short_run(tmp_path, seed, target):
    pytest.importorskip("atheris", reason="fuzzing needs the extra 'fuzz'")
    command = [sys.executable, "-m", "scripts.dev.fuzz_target", target, "-max_total_time=1"]
    command += [f"-seed={seed % 2**32 or 1}"]
    subprocess.run(command, cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT)}, check=True)
