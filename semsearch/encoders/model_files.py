"""Which files of a model's folder decide its vectors, and whether they are safe to load."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from semsearch.errors import DamagedModelError, EncoderError, ModelNotFoundError, UnsafeModelError

#: Weights that are pickled; torch would load them.
PICKLED = ("*.bin", "*.ckpt", "*.pickle", "*.pkl", "*.pt", "*.pth")
#: What lies in models' folders and is never read here: pickles, weights for other runtimes, code,
#: cards, and what training leaves behind. All other files decide vectors, or might.
UNREAD = (
    *PICKLED,
    *("*.gguf", "*.h5", "*.mlmodel", "*.msgpack", "*.onnx", "*.onnx_data", "*.ot", "*.tflite"),
    *("*.csv", "*.gif", "*.jpeg", "*.jpg", "*.md", "*.pdf", "*.png", "*.py", "*.svg", "*.webp"),
    *(".*", "LICENSE*", "NOTICE*", "data_config.json", "trainer_state.json", "training.json"),
)

WEIGHTS = "model.safetensors"
SHARDS = ".safetensors.index.json"
#: Modules that hold further modules, in folders inside of theirs.
ROUTERS = ("Router", "Asym")
#: The classes of modules that sentence-transformers has, in all its versions.
KNOWN_TYPE = re.compile(r"sentence_transformers(\.\w+)*\.(models|modules)(\.\w+)*\.[A-Z]\w*")


class Module(NamedTuple):
    """A part of a model, as modules.json lists it."""

    type: str
    path: str  #: its folder, inside of the model's; empty for the model's own

    @property
    def name(self) -> str:
        """What its class is called."""
        return self.type.rpartition(".")[2]


def model_modules(folder: Path) -> list[Module]:
    """The modules of a model, those inside of routers among them; none for a plain BERT.

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
        raise DamagedModelError(f"{folder / 'modules.json'} cannot be read: {error!r}") from None


def _with_inner(folder: Path, module: Module) -> Iterator[Module]:
    """A module and those inside of it."""
    if not _is_inside(module.path):
        raise DamagedModelError(
            f"{folder / 'modules.json'}: {module.path} is outside of the folder"
        )
    yield module
    if module.name in ROUTERS:
        own = folder / module.path
        routes = _json(own / "router_config.json") or _json(own / "config.json")
        for name, kind in routes["types"].items():
            if name in ("", "."):
                raise DamagedModelError(f"{own}: a router cannot be inside of itself")
            path = PurePosixPath(module.path, name).as_posix()
            yield from _with_inner(folder, Module(str(kind), path))


def _is_inside(path: str) -> bool:
    """Whether a path leads to a place below where it starts, on any system."""
    parts = PurePosixPath(path.replace("\\", "/")).parts
    return not any(part in ("/", "//", "..") or ":" in part for part in parts)


def deciding_files(folder: Path) -> list[Path]:
    """The files that decide a model's vectors: all in its modules' folders that may be read."""
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
    """Refuse what could run code on loading, and what would be read from elsewhere.

    Raises:
        ModelNotFoundError: it is no model, or it lacks its weights.
        UnsafeModelError: it has modules of its own, or pickled weights.
        EncoderError: a part of it lies outside of its folder.
    """
    if not (folder / "config.json").is_file() and not (folder / "modules.json").is_file():
        raise ModelNotFoundError(f"{spec} is no model: {folder} has no config.json or modules.json")
    modules = model_modules(folder)
    for module in modules:
        if not KNOWN_TYPE.fullmatch(module.type):
            raise UnsafeModelError(
                f"model '{spec}' wants to run code of its own ({module.type}); "
                "semsearch loads only the modules of sentence-transformers"
            )
    for module in modules or [Module("Transformer", "")]:
        _check_weights(folder / module.path, module, spec)
    places = {folder / module.path for module in modules} | {folder}
    if not any(any(place.glob("*.safetensors")) for place in places):
        raise ModelNotFoundError(f"model '{spec}' has no weights: no .safetensors file in {folder}")


def _check_weights(folder: Path, module: Module, spec: str) -> None:
    """Refuse weights that are pickled, or that are not in the module's folder."""
    is_transformer = module.name.endswith("Transformer")
    indexes = list(folder.glob(f"*{SHARDS}"))
    if not (folder / WEIGHTS).is_file() and not (is_transformer and indexes):
        for file in sorted(file for pattern in PICKLED for file in folder.glob(pattern)):
            raise UnsafeModelError(
                f"model '{spec}' keeps its weights as a pickle, which can run code: {file}; "
                f"save it again as {WEIGHTS}"
            )
    named = [_settings(folder / "config.json").get("transformers_weights") or WEIGHTS]
    for index in indexes:
        shards = _settings(index).get("weight_map")
        named += shards.values() if isinstance(shards, dict) else ()
    for name in map(str, named):
        is_beside = PurePosixPath(name.replace("\\", "/")).name == name
        if not is_beside or not name.endswith((".safetensors", SHARDS)):
            raise UnsafeModelError(
                f"model '{spec}' names weights that are no .safetensors file beside it: {name}"
            )
    if (folder / "adapter_config.json").is_file():
        raise EncoderError(
            f"model '{spec}' is an adapter, whose base model is elsewhere; "
            "merge the two and save the result"
        )
    for config in folder.glob("sentence_*_config.json"):
        if elsewhere := _reference(_settings(config)):
            raise EncoderError(
                f"model '{spec}' reads a part from elsewhere ({config.name}: {elsewhere}); "
                "save it again with all its files"
            )


def _reference(settings: Any) -> str | None:
    """What a transformer's settings name outside of its folder."""
    for key, value in settings.items() if isinstance(settings, dict) else ():
        if key in ("tokenizer_name_or_path", "gguf_file") and value:
            return f"{key} {value!r}"
        if found := _reference(value):
            return found
    return None


def _settings(file: Path) -> dict[str, Any]:
    """What a configuration holds; nothing where there is none."""
    content = _json(file)
    return content if isinstance(content, dict) else {}


def _json(file: Path) -> Any:
    """What a JSON file holds; None where there is none.

    Raises:
        EncoderError: it cannot be read.
    """
    if not file.is_file():
        return None
    try:
        return json.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise DamagedModelError(f"{file} cannot be read: {error}") from None
