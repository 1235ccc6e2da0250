"""The Unix socket through which processes of the same user find a service."""

from __future__ import annotations

import os
import socket
import stat
from contextlib import suppress
from pathlib import Path

from semsearch.cli.service_client import is_private, runtime_folder, sockets


class LocalSocket:
    """A socket in the user's runtime directory, hidden until `publish`.

    Raises:
        OSError: it cannot be created.
    """

    def __init__(self) -> None:
        named = runtime_folder()
        if named is None:
            raise OSError("this system has no Unix sockets")
        folder = Path(named)
        folder.mkdir(mode=0o700, exist_ok=True)
        if not is_private(named, stat.S_ISDIR):
            raise OSError(f"{folder} is open to other users")
        _remove_dead()
        self._public = folder / f"{os.getpid()}.sock"
        self.path = folder / f"{os.getpid()}.new"  #: the path that it is bound to
        self.path.unlink(missing_ok=True)
        self.socket = socket.socket(socket.AF_UNIX)
        before = os.umask(0o177)
        try:
            self.socket.bind(str(self.path))
        except OSError:
            self.socket.close()
            raise
        finally:
            os.umask(before)

    def publish(self) -> None:
        """Make it visible to clients, once it listens."""
        self.path.rename(self._public)

    def remove(self) -> None:
        """Remove it."""
        for path in (self.path, self._public):
            path.unlink(missing_ok=True)


def _remove_dead() -> None:
    """Remove the sockets of services that were killed."""
    for path in sockets():
        with socket.socket(socket.AF_UNIX) as connection, suppress(OSError):
            try:
                connection.connect(path)
            except ConnectionRefusedError:
                Path(path).unlink(missing_ok=True)
