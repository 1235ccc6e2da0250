"""The client of a running service for `semsearch query`: the service parses, searches and renders.

`semsearch serve` also listens on a socket in a folder that only its user can access. The client
sends the command line and whatever else affects the output. It imports nothing heavy, not even
click or pathlib.

A service answers only the same version of the program, for unchanged indexes. If anything fails,
the command silently continues without the service.
"""

from __future__ import annotations

import os
import stat
import sys

TYPE_CHECKING = False  # type checkers treat it like the one of typing, which is slow to import
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

#: The timeout of a service; then the command computes the answer itself.
SECONDS = 2.0

#: Prefixes of environment variables that affect imports, encoders and their results.
DECIDING = (
    *("PYTHONPATH=", "HOME=", "XDG_CACHE_HOME=", "SEMSEARCH_CACHE=", "CUDA_VISIBLE_DEVICES="),
    *("HF_", "MKL_", "OMP_", "OPENVINO_", "TOKENIZERS_", "TORCH", "TRANSFORMERS_"),
    "SEMSEARCH_MILVUS_",
)


def print_answer(arguments: list[str]) -> bool:
    """Print a service's answer to ``semsearch query ARGUMENTS``; returns whether there was one."""
    answer = find_answer(arguments)
    if answer is None:
        return False
    sys.stderr.write(answer["messages"])
    try:
        sys.stdout.write(answer["output"])
        sys.stdout.flush()
    except BrokenPipeError:  # the reader closed the pipe
        os._exit(1)
    return True


def find_answer(arguments: list[str]) -> dict[str, str] | None:
    """A service's answer to ``semsearch query ARGUMENTS``: "output" and "messages".

    None if there is no such service: none runs, or they run another program, serve another index or
    another user, or do not support the request.
    """
    try:
        paths = sockets()
        if not paths or not _writes_utf8():
            return None
        request = {
            "arguments": arguments,
            "directory": os.getcwd(),
            "environment": dict(os.environ),
            "columns": terminal_columns(),
            "is_terminal": sys.stdout.isatty(),
            "program": program(),
        }
    except OSError:  # the working directory was deleted
        return None
    for path in paths:
        try:
            answer = ask(path, "/local/query", request, SECONDS)
            if answer is not None and _is_current(answer["index"]):
                return {"output": answer["output"], "messages": answer["messages"]}
        except TimeoutError:
            return None
        except (OSError, ValueError, KeyError, TypeError):  # no longer a service of semsearch
            continue
    return None


def runtime_folder() -> str | None:
    """The folder of the sockets of this user's services; None if the system has no Unix sockets.

    It follows the usual conventions without platformdirs, whose import takes a quarter of the time
    of an answer.
    """
    if not hasattr(os, "geteuid"):
        return None
    named = os.environ.get("XDG_RUNTIME_DIR", "")
    if named.startswith("/"):
        return f"{named}/semsearch"
    return f"{os.environ.get('TMPDIR') or '/tmp'}/semsearch-{os.geteuid()}"  # noqa: S108


def sockets() -> list[str]:
    """The sockets of this user's services, the newest first."""
    folder = runtime_folder()
    if folder is None or not is_private(folder, stat.S_ISDIR):
        return []
    found = [f"{folder}/{name}" for name in os.listdir(folder) if name.endswith(".sock")]
    found = [path for path in found if is_private(path, stat.S_ISSOCK)]
    return sorted(found, key=lambda path: os.lstat(path).st_mtime_ns, reverse=True)


def is_private(path: str, is_kind: Callable[[int], bool]) -> bool:
    """Whether a path has that kind, and only this user can access it."""
    try:
        found = os.lstat(path)
    except OSError:
        return False
    is_closed = not found.st_mode & (stat.S_IRWXG | stat.S_IRWXO)
    return is_kind(found.st_mode) and found.st_uid == os.geteuid() and is_closed


def ask(path: str, target: str, content: object, seconds: float) -> Any:
    """Send a POST request to a service and return the response; None unless its status is 200.

    It uses HTTP/1.0, whose responses end with the connection, instead of http.client, whose import
    takes as long as the response.

    Raises:
        OSError: the service does not respond, or (TimeoutError) not in time.
        ValueError: the response is incomplete.
    """
    import json
    import socket

    sent = json.dumps(content).encode()
    request = (
        f"POST {target} HTTP/1.0\r\nHost: localhost\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(sent)}\r\n\r\n"
    )
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(seconds)
        connection.connect(path)
        connection.sendall(request.encode() + sent)
        with connection.makefile("rb") as stream:
            answer = stream.read()
    head, _, body = answer.partition(b"\r\n\r\n")
    return json.loads(body) if head.split(b" ", 2)[1:2] == [b"200"] else None


def _is_current(index: Any) -> bool:
    """Whether an index was not replaced meanwhile; one on Milvus is identified by its address."""
    return "address" in index or index == index_now(index["path"])


def index_now(path: str) -> dict[str, object] | None:
    """The identity of an index, to detect its replacement; None if there is none."""
    try:
        found = os.stat(f"{path}/index.sqlite")
    except OSError:
        return None
    return {"path": path, "device": found.st_dev, "inode": found.st_ino}


def program() -> str:
    """The identity of this program, its version and environment.

    It consists of the modification times of its files, so that an edited checkout is another
    program, those of the folders of installed packages, and relevant environment variables.
    """
    variables = (f"{name}={value}" for name, value in os.environ.items())
    found = [sys.version, sys.prefix, *filter(lambda one: one.startswith(DECIDING), variables)]
    found += [_state(path) for path in sys.path if path.endswith("-packages")]
    folders = [os.path.dirname(os.path.dirname(os.path.abspath(__file__)))]
    for folder in folders:
        with os.scandir(folder) as entries:
            for entry in entries:
                if not entry.is_dir():
                    found.append(_state(entry.path))
                elif entry.name != "__pycache__":
                    folders.append(entry.path)
    return "\n".join(sorted(found))


def _state(path: str) -> str:
    try:
        found = os.stat(path)
    except OSError:  # folders of the path may be missing
        return path
    return f"{path} {found.st_size} {found.st_mtime_ns}"


def _writes_utf8() -> bool:
    streams = (sys.stdout, sys.stderr)
    return all(stream and stream.encoding.lower() in ("utf-8", "utf8") for stream in streams)


def terminal_columns() -> int:
    """The width of the terminal of this process."""
    for stream in range(3):
        try:
            return os.get_terminal_size(stream).columns or 80
        except OSError:  # not a terminal
            continue
    return 80
