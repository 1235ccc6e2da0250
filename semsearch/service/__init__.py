"""Serves indexes over HTTP; needs the extra ``serve``.

FastAPI is imported on first use, so that agents need not wait for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from semsearch.service.settings import Settings

if TYPE_CHECKING:
    from semsearch.service.app import create_app

__all__ = ["Settings", "create_app"]


def __getattr__(name: str) -> object:
    if name != "create_app":
        raise AttributeError(f"module 'semsearch.service' has no attribute '{name}'")
    from semsearch.service.app import create_app

    return create_app
