"""conftest.py itself: a seed repeats a run, child processes can be interrupted."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.nightly

pytest_plugins = ["pytester"]

RANDOM_TESTS = """
import random
from hypothesis import given, strategies as st

drawn = []

def test_ours(seed):
    drawn.append(random.Random(seed).random())

@given(st.integers(0, 10**9))
def test_hypothesis(number):
    drawn.append(number)

def test_shown():
    assert False, f"drew {sorted(drawn)}"
"""


def test_seed_is_printed_and_repeats_the_run(pytester):
    """With pytest-randomly and without it."""
    pytester.makeconftest(Path(__file__).with_name("conftest.py").read_text("utf-8"))
    pytester.makepyfile(RANDOM_TESTS)

    def run(*arguments):
        output = pytester.runpytest_subprocess("-q", *arguments).stdout.str()
        [drawn] = re.findall(r"E +AssertionError: (drew .+)", output)
        [seed] = re.findall(r"to repeat with the same seed: --seed (\d+)", output)
        return drawn, seed

    without = ("-p", "no:randomly")
    drawn, seed = run(*without)
    assert run(*without, "--seed", seed) == (drawn, seed)
    kept = run("--randomly-dont-reorganize")
    assert kept[0] != drawn
    assert run("--randomly-dont-reorganize", "--seed", kept[1]) == kept


@pytest.fixture
def background():
    """SIGINT is ignored, as in a job that a shell starts with ``&``."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGINT, before)


def test_children_of_a_background_job_can_be_interrupted(background, request):
    def child_ignores():
        code = "import signal; print(signal.getsignal(signal.SIGINT) is signal.SIG_IGN)"
        return subprocess.check_output([sys.executable, "-c", code], text=True).strip()

    assert child_ignores() == "True"
    request.getfixturevalue("interruptible")
    assert child_ignores() == "False"
