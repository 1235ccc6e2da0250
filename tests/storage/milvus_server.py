"""A real Milvus server for tests that can be killed and restarted."""

from __future__ import annotations

import gc
import socket
import subprocess
import time
import urllib.request
import uuid
import warnings
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from filelock import FileLock


def free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        listening = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in listening:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in listening]


class Server:
    """The standalone server of the package `milvus`.

    Args:
        folder: directory of its data.
        lock: lock file shared by all processes of a test run.
    """

    def __init__(self, folder: Path, lock: Path) -> None:
        from milvus import MilvusServer, MilvusServerConfig

        self._folder = folder
        self._lock = FileLock(lock)
        config = MilvusServerConfig(data_dir=str(folder))
        self._server = MilvusServer(config)
        # By default, it takes the first free ports above fixed ones: those of a killed server, too.
        names = [name for name in config.configurable_items if name.endswith("_port")]
        with self._lock:
            peer, self._server.webservice_port, *ports = free_ports(2 + len(names))
        config.configs |= dict(zip(names, ports, strict=True))
        self.port, client = config.configs["proxy_port"], config.configs["etcd_port"]
        # A restarted server waits until the sessions of the killed one expire.
        config.set("common.session.ttl", 10)
        # By default, the etcd of every server uses the same peer port, 2380.
        self._etcd = folder / "etcd.yaml"
        self._etcd.write_text(
            f"listen-client-urls: http://localhost:{client}\n"
            f"advertise-client-urls: http://localhost:{client}\n"
            f"listen-peer-urls: http://localhost:{peer}\n"
            f"initial-advertise-peer-urls: http://localhost:{peer}\n"
            f"initial-cluster: default=http://localhost:{peer}\n"
        )

    def start(self) -> None:
        with self._lock, pytest.MonkeyPatch.context() as patched:  # it looks for free ports, too
            patched.setenv("ETCD_CONFIG_PATH", str(self._etcd))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ResourceWarning)  # it leaves sockets open
                self._server.start()
                gc.collect()
        environment = Path(f"/proc/{self._server.server_proc.pid}/environ").read_text().split("\0")
        self._environment = dict(each.split("=", 1) for each in environment if each)

    def kill(self) -> None:
        """Kill the server without warning, before it can write anything."""
        self._server.server_proc.kill()
        self._server.server_proc.wait()

    def restart(self) -> None:
        """Restart on the same ports, which `start` would find in use for another minute."""
        with (self._folder / "logs" / "restarted.log").open("ab") as log:
            self._server.server_proc = subprocess.Popen(
                [self._server.get_milvus_executable_path(), "run", "standalone"],
                cwd=self._folder,
                env=self._environment,
                stdout=log,
                stderr=log,
            )
        health = f"http://127.0.0.1:{self._server.webservice_port}/healthz"
        while self._server.server_proc.poll() is None:
            with suppress(OSError), urllib.request.urlopen(health, timeout=10) as answer:
                if b"OK" in answer.read():
                    return
            time.sleep(0.1)
        raise RuntimeError(f"the server exited; see {self._folder}/logs/restarted.log")

    def stop(self) -> None:
        self._server.stop()

    def address(self) -> str:
        """The address of a new index."""
        return f"milvus://127.0.0.1:{self.port}/i{uuid.uuid4().hex}"
