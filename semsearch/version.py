"""The version, in its own module so that builds need not import the package."""

__version__ = "0.1.0"
