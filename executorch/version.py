"""The version of this package, as build information names it."""

from executorch import __version__

git_version: str | None = None  # packages do not say which commit they were built from

__all__ = ["__version__", "git_version"]
