"""A short run of scripts/dev/soak."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.nightly

SOAK = Path(__file__).parent.parent / "scripts" / "dev" / "soak.py"


def test_half_a_minute_finds_no_fault(seed):
    command = [sys.executable, SOAK, "--minutes", "0.5", "--seed", str(seed)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith(f"seed {seed}\n")
    figures = dict(re.findall(r"^([a-z ]+): +([\d,]+)$", done.stdout, re.MULTILINE))
    counted = {name: int(figure.replace(",", "")) for name, figure in figures.items()}
    assert counted["faults"] == 0
    assert counted["kills survived"] >= 5
    assert counted["answers compared"] >= 100
    assert counted["states they saw"] >= 10
