"""Decorators of what is not stable: calls of it warn."""

from __future__ import annotations

from typing_extensions import deprecated

__all__ = ["ExperimentalWarning", "deprecated", "experimental"]


class ExperimentalWarning(DeprecationWarning):
    """Calls of something experimental; hidden by default, as its base class is."""


class experimental(deprecated):  # noqa: N801 (a decorator)
    """Marks a class, function or overload as experimental."""

    def __init__(
        self,
        message: str,
        /,
        *,
        category: type[Warning] | None = ExperimentalWarning,
        stacklevel: int = 1,
    ) -> None:
        super().__init__(message, category=category, stacklevel=stacklevel)
