"""Shared fixtures: seeds, signals, published data, encoders."""

from __future__ import annotations

import gc
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from threading import Thread

import pytest
from hypothesis import HealthCheck, settings

from semsearch.encoders import load_encoder

os.environ["HF_HUB_OFFLINE"] = "1"  # tests run without a network; the hub's client need not try
# Waiting threads of torch and FAISS sleep: tests run in parallel, and spinning threads would take
# the cores from those that they wait for. Read when either library is imported.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("MKL_NUM_THREADS", "1")  # torch's: its matrices are small here
# Some tests import openvino themselves. Its telemetry would start several processes for each
# conversion, forks of a process of 2 GB. (semsearch disables it when it imports openvino first.)
sys.modules["openvino_telemetry"] = None

# No test asserts a duration. The first draws in a checkout take seconds: Hypothesis then collects
# characters and our modules' constants, and caches them in .hypothesis.
settings.register_profile("semsearch", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("semsearch")


#: How many tests each file left to `--all`, in the stash of pytest's configuration.
LEFT = pytest.StashKey[dict]()


def pytest_addoption(parser):
    parser.addoption(
        "--seed",
        type=int,
        help="Seed of all random tests and of their order; each run prints its seed.",
    )
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="Rewrite tests/cli/golden/*.txt with what the commands print.",
    )
    parser.addoption(
        "--all",
        action="store_true",
        help="Also run the tests that prove a release, marked nightly.",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    """One seed for our own random tests, Hypothesis and pytest-randomly."""
    drawn = config.getoption("randomly_seed", "default")
    given = config.option.seed if config.option.seed is not None else drawn
    if not isinstance(given, int):
        given = random.SystemRandom().getrandbits(32)
    config.option.seed = config.option.randomly_seed = given
    if config.getoption("hypothesis_seed", None) is None:
        config.option.hypothesis_seed = str(given)


def pytest_collection_modifyitems(config, items):
    """Leave tests marked nightly to `--all`."""
    if config.option.all:
        return
    nightly = [item for item in items if item.get_closest_marker("nightly")]
    if nightly:
        config.hook.pytest_deselected(items=nightly)
        items[:] = [item for item in items if not item.get_closest_marker("nightly")]
    left = Counter(str(item.path.relative_to(config.rootpath)) for item in nightly)
    getattr(config, "workeroutput", config.stash.setdefault(LEFT, {}))["left"] = dict(left)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    """Take over what a worker of pytest-xdist left; all leave the same."""
    node.config.stash[LEFT] = getattr(node, "workeroutput", {})


def pytest_report_header(config):
    return f"random tests: --seed {config.option.seed}"


def pytest_terminal_summary(terminalreporter, exitstatus, config):
    """Print what was left to `--all`, and the seed after a failure: a quiet run has no header."""
    if left := config.stash.get(LEFT, {}).get("left"):
        files = ", ".join(f"{file} {count}" for file, count in sorted(left.items()))
        terminalreporter.write_line(f"{sum(left.values())} tests left to --all: {files}")
    if exitstatus:
        terminalreporter.write_line(f"to repeat with the same seed: --seed {config.option.seed}")


@pytest.fixture
def seed(pytestconfig) -> int:
    """The seed of a random test, printed with its failure; `--seed` sets it."""
    print(f"--seed {pytestconfig.option.seed}")  # noqa: T201 - shown when the test fails
    return pytestconfig.option.seed


@pytest.fixture
def forgetful():
    """For examples that leave indexes open, of which Python 3.13 would warn in a later test."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture
def interruptible():
    """Child processes obey Ctrl-C: a shell starts background jobs with SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory):
    """A cache of converted models for this run: all its workers and subprocesses share it."""
    folder = run_folder(tmp_path_factory) / "cache"
    folder.mkdir(exist_ok=True)
    os.environ["SEMSEARCH_CACHE"] = str(folder)
    return folder


@pytest.fixture(scope="session", autouse=True)
def services():
    """A folder for the sockets of services of this process: tests see none of the user's."""
    folder = tempfile.mkdtemp(prefix="run-")  # a socket's path must be short
    os.environ["XDG_RUNTIME_DIR"] = folder
    yield
    shutil.rmtree(folder, ignore_errors=True)


def run_folder(tmp_path_factory) -> Path:
    """The run's temporary folder, one for all workers of pytest-xdist."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of published data sets that SEMSEARCH_DATA names."""
    folder = os.environ.get("SEMSEARCH_DATA")
    if folder is None:
        if os.environ.get("SEMSEARCH_DATA_REQUIRED"):
            pytest.fail("SEMSEARCH_DATA_REQUIRED is set, but not SEMSEARCH_DATA")
        pytest.skip("SEMSEARCH_DATA names no folder of published data sets")
    return Path(folder).resolve(strict=True)


def missing(what: str) -> None:
    """Skip a test whose server, browser or framework is not installed; in CI, fail it."""
    if os.environ.get("SEMSEARCH_INTEGRATION_REQUIRED"):
        pytest.fail(f"SEMSEARCH_INTEGRATION_REQUIRED is set, but {what} is not installed")
    pytest.skip(f"{what} is not installed (scripts/integration installs it)")


@pytest.fixture(scope="session", name="missing")
def missing_fixture():
    """`missing`, for fixtures that look for programs elsewhere than on the PATH."""
    return missing


@pytest.fixture(scope="session")
def program():
    """Finds a program on the PATH that a test needs, such as a browser."""

    def find(name: str) -> str:
        path = shutil.which(name)
        if path is None:
            missing(name)
        return path

    return find


@pytest.fixture(scope="session")
def package():
    """Imports a package that a test needs and `scripts/test` does not install."""

    def find(name: str):
        if find_spec(name.partition(".")[0]) is None:
            missing(name)
        return import_module(name)

    return find


HOLDER = """
import sys
from pathlib import Path
from semsearch.storage.lock import writer_lock
with writer_lock(Path(sys.argv[1])):
    print(flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def writing_elsewhere():
    """Let another process hold the writer lock of an index for a block, which gets its id."""

    @contextmanager
    def holding(index: Path):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        with subprocess.Popen([sys.executable, "-c", HOLDER, index], **pipes) as process:
            assert process.stdout.readline()
            yield process.pid
            process.stdin.close()

    return holding


@contextmanager
def serving(handler):
    """Answer HTTP requests with a handler, without a log; yields the address."""
    handler.log_message = lambda *_: None
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="session")
def minilm(cache):
    """The bundled encoder with default options, loaded once."""
    return load_encoder("minilm")


@pytest.fixture(scope="session")
def write_bert(tmp_path_factory):
    """Write a tiny BERT with random weights and the given vocabulary; returns its folder."""

    def write(words, seed=0, **sizes):
        import torch
        from transformers import BertConfig, BertModel, BertTokenizerFast

        folder = tmp_path_factory.mktemp("bert")
        words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]
        sizes = {
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "intermediate_size": 64,
            "max_position_embeddings": 32,
        } | sizes
        torch.manual_seed(seed)
        config = BertConfig(vocab_size=len(words), **sizes)
        BertModel(config).eval().save_pretrained(folder)
        vocabulary = {word: place for place, word in enumerate(words)}
        BertTokenizerFast(vocab=vocabulary).save_pretrained(folder)
        return folder

    return write


@pytest.fixture
def hashing():
    """The hashing encoder, which needs no model."""
    return load_encoder("hashing")
