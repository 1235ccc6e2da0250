"""Where the word vectors of a spec are: a text file, a compressed one, or a member of a zip."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple
from zipfile import BadZipFile, ZipFile

from semsearch.encoders.hashes import file_sha256
from semsearch.errors import DamagedModelError, EncoderError, ModelNotFoundError


class VectorFile(NamedTuple):
    """A file of word vectors on this machine; of a zip, one member."""

    path: Path
    member: str | None = None

    @property
    def name(self) -> str:
        """How a spec names it, and messages do."""
        return str(self.path / self.member if self.member else self.path)

    def sha256(self) -> str:
        """Hex digest of its content as it is stored.

        Raises:
            EncoderError: it cannot be read.
        """
        with _told(self.name):
            digest = file_sha256(self.path)
        if self.member is None:
            return digest
        return hashlib.sha256(f"{digest} {self.member}".encode()).hexdigest()

    def lines(self, max_bytes: int) -> Iterator[bytes]:
        """Its lines, unpacked while they are read; a longer one comes in pieces of `max_bytes`.

        Raises:
            EncoderError: it cannot be read.
        """
        with _told(self.name), self._opened() as stream:
            while line := stream.readline(max_bytes):
                yield line

    @contextmanager
    def _opened(self) -> Iterator[IO[bytes] | gzip.GzipFile]:
        if self.member is not None:
            with ZipFile(self.path) as archive, archive.open(self.member) as stream:
                yield stream
        elif self.path.suffix == ".gz":
            with gzip.open(self.path) as unpacked:
                yield unpacked
        else:
            with self.path.open("rb") as stream:
                yield stream


def find_vector_file(name: str) -> VectorFile:
    """The file of that name: its path, or that of a zip followed by the name of a member.

    Raises:
        ModelNotFoundError: there is none.
        EncoderError: a zip without a member's name does not hold exactly one ``.txt``.
    """
    if not name:
        raise ModelNotFoundError("no word vectors are named; name their file, as in glove:PATH")
    with _told(name[:100]):
        path = Path(name).expanduser().resolve()
        if path.is_file():
            if path.suffix == ".zip":
                return VectorFile(path, _only_text(path))
            return VectorFile(path)
        for zipped in path.parents:
            if zipped.suffix == ".zip" and zipped.is_file():
                member = path.relative_to(zipped).as_posix()
                members = _members(zipped)
                if member not in members:
                    raise ModelNotFoundError(f"{zipped} has no {member}; it has {_listed(members)}")
                return VectorFile(zipped, member)
    advice = "; behind an @ stands a weighting, mean or sif" if "@" in name else ""
    raise ModelNotFoundError(f"no word vectors {name[:1000]!r}: no such file{advice}")


def _only_text(path: Path) -> str:
    members = _members(path)
    texts = [member for member in members if member.endswith(".txt")]
    if len(texts) != 1:
        raise EncoderError(
            f"{path} holds {len(texts)} .txt files; name the member that is meant, as in "
            f"glove:{path}/MEMBER (members: {_listed(members)})"
        )
    return texts[0]


def _members(path: Path) -> list[str]:
    with ZipFile(path) as archive:
        return [item.filename for item in archive.infolist() if not item.is_dir()]


def _listed(members: list[str]) -> str:
    more = f" and {len(members) - 10} more" if len(members) > 10 else ""
    return (", ".join(members[:10]) or "nothing") + more


@contextmanager
def _told(name: str) -> Iterator[None]:
    """What goes wrong with reading a file, as an error of ours."""
    try:
        yield
    except (BadZipFile, zlib.error, EOFError, gzip.BadGzipFile) as error:
        raise DamagedModelError(f"{name} is damaged: {error}") from None
    except OSError as error:
        raise DamagedModelError(f"{name} cannot be read: {error.strerror or error}") from None
    except (RuntimeError, NotImplementedError, ValueError) as error:
        # no such home, an encrypted member, an unknown compression, a NUL in the path
        raise DamagedModelError(f"{name!r} cannot be read: {error}") from None
