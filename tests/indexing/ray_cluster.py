"""An encoder plugin, corpora, and Ray clusters with each node in its own network namespace."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from shutil import rmtree

import numpy

from semsearch import Index

ROOT = Path(__file__).parents[2]
#: The head's address inside its namespace, the same for every node.
HEAD = "10.77.0.1"

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

_numbers = itertools.count()


def write_plugin(folder: Path) -> None:
    """Make a folder from which Python can import the encoder plugin `slow`."""
    made = folder / "slow-1.dist-info"
    made.mkdir(parents=True)
    (made / "METADATA").write_text("Metadata-Version: 2.1\nName: slow\nVersion: 1\n")
    (made / "entry_points.txt").write_text("[semsearch.encoders]\nslow = slow:Slow\n")
    (folder / "slow.py").write_text(PLUGIN)


def texts_of(count: int) -> list[str]:
    """Short and long texts, some of them repeated."""
    return [
        f"Sentence {number % 300} tells of a bird. " * (number % 90 + 1 if number % 5 == 0 else 1)
        for number in range(count)
    ]


def write(folder: Path, texts: list[str]) -> Path:
    """Write a corpus with ids."""
    lines = [f"{number},{text}" for number, text in enumerate(texts)]
    (folder / "corpus.csv").write_text("\n".join(["id,text", *lines]) + "\n")
    return folder / "corpus.csv"


def semsearch(*arguments: object, code: str = "") -> list[object]:
    """The command `semsearch` in a Python that runs some code before."""
    return [sys.executable, "-c", f"{code}\nfrom semsearch.cli import run; run()", *arguments]


def start(
    command: list[object], folder: Path, environment: dict[str, str], stdin: int | None = None
) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen(
        command, cwd=folder, env=environment, stdin=stdin, stdout=pipe, stderr=pipe, text=True
    )


def finish(process: subprocess.Popen[str], status: int = 0) -> str:
    """What a process printed, once it has ended with this status."""
    output, errors = process.communicate(timeout=300)
    assert process.returncode == status, output + errors
    assert "Traceback" not in errors
    return output + errors


def content(place):
    """Everything that determines results: documents, passages and vectors, in order."""
    with Index.open(place) as index, index.writer() as writer:
        assert writer.verify() == []
        passages = index.passages()
        return list(index), passages[:4], passages.vectors


def same(left, right) -> bool:
    """Compare the contents of two indexes."""
    for one, other in zip(left[1], right[1], strict=True):
        assert numpy.array_equal(one, other)
    numpy.testing.assert_allclose(left[2], right[2], atol=1e-6)
    return left[0] == right[0]


class Node:
    """A network namespace; removing it kills the processes in it."""

    def __init__(self) -> None:
        self.namespace = f"semsearch-{os.getpid()}-{next(_numbers)}"
        _ip("netns", "add", self.namespace)
        _ip("-n", self.namespace, "link", "set", "lo", "up")

    def command(self, *command: object) -> list[str]:
        return ["ip", "netns", "exec", self.namespace, *map(str, command)]

    def processes(self) -> list[int]:
        listed = _ip("netns", "pids", self.namespace)
        return [int(process) for process in listed.split()]

    def kill(self) -> None:
        """Kill all its processes, as a power failure would."""
        while processes := self.processes():
            for process in processes:
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)

    def remove(self) -> None:
        self.kill()
        _ip("netns", "delete", self.namespace)


class Cluster:
    """A head node and any number of others.

    Args:
        start_head, start_other: commands that start Ray; HEAD stands for the head's address.
        folder: in which commands run.
        path: a folder from which nodes can import, besides semsearch.
    """

    def __init__(self, start_head: str, start_other: str, folder: Path, path: Path) -> None:
        self._start_other = start_other
        self._temporary = Path(tempfile.mkdtemp(prefix="ray-"))  # socket paths must be short
        self.folder = folder
        self.environment = os.environ | {
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(path)]),
            "RAY_AUTH_MODE": "disabled",
            "RAY_TMPDIR": str(self._temporary),
            "RAY_USAGE_STATS_ENABLED": "0",
            # A node that is silent for a second counts as gone.
            "RAY_health_check_initial_delay_ms": "0",
            "RAY_health_check_period_ms": "500",
            "RAY_health_check_timeout_ms": "5000",
            "RAY_health_check_failure_threshold": "2",
        }
        self.head = Node()
        self.nodes = [self.head]
        options = f"--node-ip-address={HEAD} --include-dashboard=false"
        try:
            _ip("-n", self.head.namespace, "address", "add", f"{HEAD}/32", "dev", "lo")
            self._start(self.head, f"{start_head} {options}")
        except BaseException:
            self.remove()
            raise

    def add(self) -> Node:
        """Add a node."""
        node, number = Node(), len(self.nodes)
        ours, theirs = (f"10.77.{number}.{part}" for part in (1, 2))
        link = f"to-{number}"
        peer = ["peer", "name", "head", "netns", node.namespace]
        _ip("-n", self.head.namespace, "link", "add", link, "type", "veth", *peer)
        for namespace, device, address in [
            (self.head.namespace, link, ours),
            (node.namespace, "head", theirs),
        ]:
            _ip("-n", namespace, "address", "add", f"{address}/24", "dev", device)
            _ip("-n", namespace, "link", "set", device, "up")
        _ip("-n", node.namespace, "route", "add", "default", "via", ours)
        node.address = theirs
        self.nodes.append(node)
        self._start(node, f"{self._start_other} --node-ip-address={theirs}")
        return node

    def run(self, *arguments: object, code: str = "", **options: object) -> subprocess.Popen[str]:
        """Start `semsearch` with these arguments on the head, after running some code."""
        command = self.head.command(*semsearch(*arguments, code=code))
        return start(command, self.folder, self.environment, **options)

    def remove(self) -> None:
        for node in reversed(self.nodes):
            node.remove()
        rmtree(self._temporary)

    def _start(self, node: Node, command: str) -> None:
        command = command.replace("HEAD", HEAD)
        command += " --num-cpus=1 --object-store-memory=100000000 --disable-usage-stats"
        if "--head" in command:
            command += f" --temp-dir={self._temporary}"
        subprocess.run(
            node.command("sh", "-c", command),
            env=self.environment,
            check=True,
            stdout=subprocess.DEVNULL,
            timeout=300,
        )


def _ip(*arguments: str) -> str:
    done = subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)
    return done.stdout
