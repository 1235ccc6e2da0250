"""What scripts/bench/peers compares: the commands of each system, and whether it is at hand."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from rich.console import Console

ONE_PEER = Path(__file__).resolve().with_name("one_peer.py")

#: The modules that each peer cannot do without.
PEERS = {
    "script": ("sentence_transformers", "faiss"),
    "txtai": ("txtai",),
    "chroma": ("chromadb", "sentence_transformers"),
    "lancedb": ("lancedb", "sentence_transformers"),
}

OURS = "ours"

PACKAGES = (
    "semsearch",
    "openvino",
    "torch",
    "sentence-transformers",
    "faiss-cpu",
    "txtai",
    "chromadb",
    "lancedb",
)

messages = Console(stderr=True, soft_wrap=True, highlight=False)


@dataclass(frozen=True)
class System:
    """A tool, as it is measured.

    Args:
        tool: ours, or the name of a peer.
        precision: in which it computes; an index of ours remembers it for the queries.
    """

    tool: str
    precision: str

    @property
    def name(self) -> str:
        """What a table calls it."""
        return f"{OURS} {self.precision}" if self.tool == OURS else self.tool

    def index_command(self, corpus: Path, folder: Path) -> list[str]:
        """Makes an index."""
        if self.tool == OURS:
            options = ["--index", str(folder), "--precision", self.precision]
            return [*semsearch(), "index", str(corpus), *options]
        return [*self._program(), "index", str(corpus), str(folder)]

    def query_command(self, folder: Path, text: str) -> list[str]:
        """Asks an index."""
        if self.tool == OURS:
            return [*semsearch(), "query", text, "--index", str(folder)]
        return [*self._program(), "query", str(folder), text]

    def warm_command(self, folder: Path, queries: Path) -> list[str]:
        """Asks an index many times, and prints the median."""
        return [*self._program(), "warm", str(folder), str(queries)]

    def help_command(self) -> list[str]:
        """Asks for help alone."""
        return [*semsearch(), "--help"]

    def _program(self) -> list[str]:
        return [sys.executable, str(ONE_PEER), self.tool]


#: The command without work, timed among the cold queries.
HELP = System("semsearch --help", "")


def at_hand(arguments: argparse.Namespace) -> tuple[list[System], dict[str, str]]:
    """The systems that are installed, and why others are left out."""
    systems, left_out = [], {}
    for tool in arguments.systems:
        if tool == OURS:
            systems += [System(tool, precision) for precision in arguments.precisions]
            continue
        missing = [module for module in PEERS[tool] if find_spec(module) is None]
        if missing:
            left_out[tool] = f"{', '.join(missing)} is not installed; the extra 'bench' brings it"
            messages.print(f"{tool} is left out: {left_out[tool]}")
        else:
            systems.append(System(tool, "fp32"))
    return systems, left_out


def semsearch() -> list[str]:
    """The command, of the environment that runs this."""
    return [str(Path(sys.executable).with_name("semsearch"))]


def installed_versions() -> Iterator[tuple[str, str]]:
    """Of the packages that matter here."""
    yield "python", sys.version.partition(" ")[0]
    for name in PACKAGES:
        try:
            yield name, metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
