"""The systems that scripts/bench/peers compares: their commands, and whether they are installed."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

ONE_PEER = Path(__file__).resolve().with_name("one_peer.py")

ROOT = Path(__file__).resolve().parents[2]

#: The second environment of scripts/bench/peers: optimum-intel needs another transformers.
OTHER_ENVIRONMENT = ROOT / ".venv-bench" / "bin" / "python"


class Peer(NamedTuple):
    """A tool that semsearch is compared with.

    Args:
        modules: the modules that it needs.
        precision: the one it computes in, on a processor that has it.
        python: the interpreter of the environment that it is installed in.
    """

    modules: tuple[str, ...]
    precision: str = "fp32"
    python: Path = Path(sys.executable)


PEERS = {
    "script": Peer(("sentence_transformers", "faiss")),
    "script-bf16": Peer(("sentence_transformers", "faiss"), "bf16"),
    "openvino": Peer(("optimum.intel", "faiss"), "bf16", OTHER_ENVIRONMENT),
    "openvino-int8": Peer(("optimum.intel", "nncf", "faiss"), "int8", OTHER_ENVIRONMENT),
    "fastembed": Peer(("fastembed", "faiss"), python=OTHER_ENVIRONMENT),
    "txtai": Peer(("txtai",)),
    "chroma": Peer(("chromadb", "sentence_transformers")),
    "lancedb": Peer(("lancedb", "sentence_transformers")),
}

OURS = "ours"

PACKAGES = (
    "semsearch",
    "openvino",
    "torch",
    "sentence-transformers",
    "transformers",
    "faiss-cpu",
    "txtai",
    "chromadb",
    "lancedb",
    "optimum-intel",
    "fastembed",
    "onnxruntime",
)

#: Programs for either environment: of the names passed, those it lacks; the versions of them.
MISSING = """
import json, sys
from importlib.util import find_spec
def is_missing(name):
    try:
        return find_spec(name) is None
    except ModuleNotFoundError:
        return True
print(json.dumps([name for name in sys.argv[1:] if is_missing(name)]))
"""
VERSIONS = """
import json, platform, sys
from importlib import metadata
installed = {found.name for found in metadata.distributions()}
found = {name: metadata.version(name) for name in sys.argv[1:] if name in installed}
print(json.dumps({"python": platform.python_version(), **found}))
"""

messages = Console(stderr=True, soft_wrap=True, highlight=False)


@dataclass(frozen=True)
class System:
    """A tool in one precision.

    Args:
        tool: `ours`, or the name of a peer.
        precision: the one it computes in; an index of ours keeps it for the queries.
    """

    tool: str
    precision: str

    @property
    def name(self) -> str:
        """Its name in tables."""
        return f"{OURS} {self.precision}" if self.tool == OURS else self.tool

    def prepare_command(self, models: Path) -> list[str]:
        """The command that converts the model, if the tool needs that."""
        return [*self._program("prepare"), str(models / self.tool)]

    def index_command(self, models: Path, corpus: Path, folder: Path) -> list[str]:
        """The command that builds an index."""
        if self.tool == OURS:
            options = ["--index", str(folder), "--precision", self.precision]
            return [*semsearch(), "index", str(corpus), *options]
        return [*self._program("index"), str(models / self.tool), str(corpus), str(folder)]

    def query_command(self, models: Path, folder: Path, text: str) -> list[str]:
        """The command that runs one query."""
        if self.tool == OURS:
            return [*semsearch(), "query", text, "--index", str(folder)]
        return [*self._program("query"), str(models / self.tool), str(folder), text]

    def warm_command(self, models: Path, folder: Path, queries: Path) -> list[str]:
        """The command that runs many queries, and prints the median."""
        return [*self._program("warm"), str(models / self.tool), str(folder), str(queries)]

    def help_command(self) -> list[str]:
        """The command that only prints help."""
        return [*semsearch(), "--help"]

    def _program(self, action: str) -> list[str]:
        python = sys.executable if self.tool == OURS else str(PEERS[self.tool].python)
        return [python, str(ONE_PEER), self.tool, action]


#: The command without any work, timed with the cold queries.
HELP = System("semsearch --help", "")


def at_hand(arguments: argparse.Namespace) -> tuple[list[System], dict[str, str]]:
    """The systems that are installed, and why others are left out."""
    systems, left_out = [], {}
    for tool in arguments.systems:
        if tool == OURS:
            systems += [System(tool, precision) for precision in arguments.precisions]
            continue
        peer = PEERS[tool]
        if missing := missing_modules(peer):
            left_out[tool] = f"{', '.join(missing)} is not installed; run scripts/bench/peers"
            messages.print(f"{tool} is left out: {left_out[tool]}")
        else:
            systems.append(System(tool, peer.precision))
    return systems, left_out


def missing_modules(peer: Peer) -> list[str]:
    """The modules of a peer that its environment lacks."""
    if not peer.python.exists():
        return list(peer.modules)
    found: list[str] = _json_from(peer.python, MISSING, peer.modules)
    return found


def _json_from(python: Path, program: str, arguments: Sequence[str]) -> Any:
    """The value that a program prints as JSON, run by an interpreter."""
    command = [str(python), "-c", program, *arguments]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def semsearch() -> list[str]:
    """The semsearch command of the current environment."""
    return [str(Path(sys.executable).with_name("semsearch"))]


def installed_versions() -> dict[str, dict[str, str]]:
    """The versions of the compared packages, by environment."""
    pythons = {"main": Path(sys.executable), "other": OTHER_ENVIRONMENT}
    return {
        name: _json_from(python, VERSIONS, PACKAGES)
        for name, python in pythons.items()
        if python.exists()
    }
