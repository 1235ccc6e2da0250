"""Encoders that other packages bring; an entry point of `GROUP` names what makes one of a spec."""

from __future__ import annotations

import re
from pathlib import Path

from semsearch.encoders.specs import BUNDLED_SPEC
from semsearch.errors import EncoderError
from semsearch.plugins import find_plugin
from semsearch.protocols import Encoder

GROUP = "semsearch.encoders"

_MEMBERS = [name for name in dir(Encoder) if not name.startswith("_")]


def plugin_encoder(spec: str) -> Encoder | None:
    """The encoder of the plugin that a spec begins with, ``NAME`` or ``NAME:…``.

    None where there is no such plugin, or a folder is called so.

    Raises:
        EncoderError: the plugin fails, or what it makes is no encoder of that name.
    """
    name = spec.partition(":")[0]
    if name == BUNDLED_SPEC or not re.fullmatch(r"[\w-]+", name) or _is_folder(spec):
        return None
    plugin = find_plugin(GROUP, name)
    if plugin is None:
        return None
    with plugin.running(f"encoder '{spec}'", EncoderError):
        encoder: Encoder = plugin.load(spec)
        missing = [member for member in _MEMBERS if not hasattr(encoder, member)]
        made = None if missing else encoder.spec
    if missing:
        raise EncoderError(
            f"encoder '{spec}': what plugin '{name}' of package {plugin.package} makes has no "
            f"{', '.join(missing)}"
        )
    if str(made).partition(":")[0] != name:
        raise EncoderError(
            f"encoder '{spec}': plugin '{name}' of package {plugin.package} calls it '{made}', "
            "which does not load it again"
        )
    return encoder


def _is_folder(spec: str) -> bool:
    try:
        return Path(spec).is_dir()
    except OSError:  # too long for a path
        return False
