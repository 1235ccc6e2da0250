"""Serves indexes over HTTP; needs the extra ``serve``."""

from semsearch.service.app import create_app
from semsearch.service.settings import Settings

__all__ = ["Settings", "create_app"]
