"""Encoders turn texts into vectors. `load_encoder` finds the one that a spec names."""

from __future__ import annotations

import ctypes
import functools
import logging
import os
import re
import sys
from importlib.util import find_spec
from pathlib import Path
from runpy import run_path
from typing import Any

from semsearch.encoders.base import EncodesSentences
from semsearch.encoders.model_folder import (
    ModelFolder,
    NotConvertibleError,
    check_bi_encoder,
    check_cross_encoder,
    find_model,
)
from semsearch.encoders.specs import BUNDLED_SPEC, CROSS_ENCODER_PREFIX, Precision
from semsearch.errors import ArgumentError, EncoderError, shown
from semsearch.protocols import Encoder, Reranker

__all__ = [
    "CROSS_ENCODER_PREFIX",
    "DEFAULT_ENCODER",
    "EncodesSentences",
    "current_fingerprint",
    "load_encoder",
    "load_reranker",
]

logger = logging.getLogger(__name__)


DEFAULT_ENCODER = "minilm"


def load_encoder(
    spec: str | os.PathLike[str],
    device: str | None = None,
    precision: Precision | str = Precision.AUTO,
    *,
    local_files_only: bool = False,
) -> Encoder:
    """Load the encoder that `spec` names.

    >>> from semsearch import load_encoder
    >>> encoder = load_encoder("hashing:64")
    >>> encoder.encode_documents(["a cat", "a dog"]).shape
    (2, 64)

    A transformer is converted for OpenVINO (once, into the user's cache) and then runs without
    torch on the CPU. If there is a GPU, torch encodes documents there, except the first 1,000,
    which take no longer on the CPU than a GPU takes to start. A model that OpenVINO cannot run, or
    whose vectors would change, runs on torch, with a warning.

    Args:
        spec: ``minilm`` (all-MiniLM-L6-v2), a folder that Sentence-Transformers wrote, a name on
            the hub (``NAME@REVISION`` for a branch, a tag or a commit), each also with ``@mean``,
            ``@cls``, ``@max`` or ``@pooler`` (a plain BERT with that pooling) and with ``@192d``
            (its leading 192 dimensions), ``glove:PATH`` (averaged word vectors),
            ``hashing[:DIMENSION]`` (no model), ``openai:MODEL[@URL]`` (a server with OpenAI's
            interface, the key from OPENAI_API_KEY), or the name of a plugin (``NAME[:…]``).
        device: a torch device (``cpu``, ``cuda``), which selects torch, also for queries; None uses
            a GPU for documents if there is one.
        precision: ``auto``, ``fp32``, ``bf16`` or ``int8`` (always on the CPU).
        local_files_only: make no request to the hub and use only its cache, for specs that were
            not entered by a user.

    Raises:
        ArgumentError: `spec` is not a string or path, or the precision is invalid.
        ModelNotFoundError: its files are not on this machine and cannot be downloaded.
        UnsafeModelError: its files could run code.
        EncoderError: the processor or the model does not support that precision, or the model is a
            cross-encoder.
    """
    spec, precision = _checked_spec(spec), Precision(precision)
    if spec.partition(":")[0].partition("@")[0] == "hashing":
        from semsearch.encoders.hashing import HashingEncoder

        return HashingEncoder(spec)
    if spec.partition(":")[0] == "glove":
        from semsearch.encoders.words import WordVectorEncoder  # seldom needed

        return WordVectorEncoder(spec)
    if spec.partition(":")[0] == "openai":
        from semsearch.encoders.openai import OpenAIEncoder

        return OpenAIEncoder(spec, from_index=local_files_only)
    _check_loadable(spec)
    if (plugin := _plugin_encoder(spec)) is not None:
        return plugin
    folder = find_model(spec, local_files_only=local_files_only)
    check_bi_encoder(folder)
    reason: NotConvertibleError | None = None
    if device is None:
        from semsearch.encoders.openvino.models import GPUEncoder, OpenVINOEncoder

        on_cpu = precision is Precision.INT8 or not has_gpu()
        try:
            return (OpenVINOEncoder if on_cpu else GPUEncoder)(folder, precision)
        except NotConvertibleError as error:
            if precision is Precision.INT8:
                raise EncoderError(f"model '{folder.spec}' cannot run in int8: {error}") from error
            reason = error
    from semsearch.encoders.torch_models import TorchEncoder

    encoder = TorchEncoder(folder, device, precision)
    _warn_of_torch(folder, reason)
    return encoder


def current_fingerprint(spec: str) -> str:
    """The present fingerprint of the encoder that a spec names, without loading the model.

    Raises:
        EncoderError: its files are missing or can no longer be used.
    """
    if spec.partition(":")[0] in ("hashing", "glove", "openai"):
        return load_encoder(spec, local_files_only=True).fingerprint
    _check_loadable(spec)
    return find_model(spec, local_files_only=True).fingerprint


def load_reranker(
    spec: str | os.PathLike[str],
    device: str | None = None,
    precision: Precision | str = Precision.AUTO,
) -> Reranker:
    """Load the cross-encoder that `spec` names.

    >>> from semsearch import load_reranker
    >>> load_reranker("my-reranker").score("a cat", ["The cat dozed.", "Rates rose."]).shape
    (2,)

    Args:
        spec: a folder that Sentence-Transformers or transformers wrote, or a name on the hub, with
            an optional prefix ``cross-encoder:``.
        device: a torch device, which selects torch, in fp32; None uses a GPU if there is one.
        precision: of OpenVINO: ``auto``, ``fp32`` or ``bf16``.

    Raises:
        ArgumentError: `spec` is not a string or path, or the precision is invalid.
        ModelNotFoundError: its files are not on this machine and cannot be downloaded.
        UnsafeModelError: its files could run code.
        EncoderError: it is not a cross-encoder, or returns several scores per pair.
    """
    spec, precision = _checked_spec(spec), Precision(precision)
    if precision is Precision.INT8:
        raise EncoderError("cross-encoders do not support int8; use fp32 or bf16")
    folder = find_model(spec.removeprefix(CROSS_ENCODER_PREFIX))
    folder.check_whole()
    if folder.pooling:
        raise EncoderError(f"'{spec}': a cross-encoder has no pooling; remove the suffix")
    check_cross_encoder(folder)
    reason: NotConvertibleError | None = None
    if device is None and not has_gpu():
        from semsearch.encoders.openvino.models import OpenVINOReranker

        try:
            return OpenVINOReranker(folder, precision)
        except NotConvertibleError as error:
            reason = error
    from semsearch.encoders.torch_models import TorchReranker

    reranker = TorchReranker(folder, device)
    _warn_of_torch(folder, reason)
    return reranker


def _check_loadable(spec: str) -> None:
    """Raise EncoderError for an encoder that only a program can make."""
    if spec.startswith("given:"):
        name = spec.partition(":")[2]
        raise EncoderError(
            f"the encoder '{name}' was given by a program; open the index with it: "
            "Index.open(path, encoder)"
        )


def _warn_of_torch(folder: ModelFolder, reason: NotConvertibleError | None) -> None:
    if reason is not None:
        logger.warning("model '%s' runs on torch: %s", folder.spec, reason)


def _checked_spec(spec: object) -> str:
    path = os.fspath(spec) if isinstance(spec, os.PathLike) else spec
    if not isinstance(path, str):
        raise ArgumentError(f"the name of a model must be a string or a Path, not {shown(spec)}")
    if not path.strip():
        raise ArgumentError("the name of the model is empty")
    return path


def has_gpu() -> bool:
    """Whether torch could use a GPU of NVIDIA, checked without importing it."""
    try:
        cuda = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    except OSError:
        return False
    count = ctypes.c_int(0)
    failed = cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(count))
    return not failed and count.value > 0 and _is_for_cuda("torch")


def _is_for_cuda(torch: str) -> bool:
    """Whether the installed torch is a build for CUDA; on Windows, PyPI has only one for CPUs."""
    found = find_spec(torch)
    if found is None or found.origin is None:
        return False
    return run_path(str(Path(found.origin).with_name("version.py"))).get("cuda") is not None


@functools.cache
def _find_plugin(group: str, name: str) -> Any:
    """The object of another package with this name and group of entry points; None without one.

    Only the plugin with that name is imported.
    """
    from importlib.metadata import entry_points

    for entry in entry_points(group=group, name=name):
        return entry.load()
    return None


#: Entry points of plugins; each names a function from a spec to an encoder.
PLUGIN_GROUP = "semsearch.encoders"


def _plugin_encoder(spec: str) -> Encoder | None:
    """The encoder of the plugin that a spec names (``NAME`` or ``NAME:…``).

    None if there is no such plugin, or a folder has this name.

    Raises:
        EncoderError: the plugin does not return an encoder with this name.
    """
    name = spec.partition(":")[0]
    if name == BUNDLED_SPEC or not re.fullmatch(r"[\w-]+", name) or Path(spec).is_dir():
        return None
    load = _find_plugin(PLUGIN_GROUP, name)
    if load is None:
        return None
    encoder: Encoder = load(spec)
    if not isinstance(encoder, Encoder) or encoder.spec.partition(":")[0] != name:
        raise EncoderError(
            f"the plugin '{name}' did not return an encoder whose spec begins with '{name}'"
        )
    return encoder
