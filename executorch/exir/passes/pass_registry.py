"""Passes found by name."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable

from executorch.exir.error import ExportError, ExportErrorType
from executorch.exir.pass_base import PassType


class PassRegistry:
    """Lists of passes, each under a name; the first that takes a name keeps it."""

    registry: dict[str, list[PassType]] = {}

    @classmethod
    def register(cls, pass_name: str | None = None) -> Callable[[PassType], PassType]:
        """Decorates a pass, a function or a class; without a name its own, in snake case."""

        def keep(pass_: PassType) -> PassType:
            own = getattr(pass_, "__name__", type(pass_).__name__)
            key = pass_name or re.sub(r"(?<=.)(?=[A-Z])", "_", own).lower()
            cls.register_list(key, [pass_])
            return pass_

        return keep

    @classmethod
    def register_list(cls, pass_name: str, pass_list: list[PassType]) -> None:
        if pass_name in cls.registry:
            warnings.warn(
                f"Pass {pass_name} already exists inside of the PassRegistry. Will ignore.",
                stacklevel=2,
            )
        else:
            cls.registry[pass_name] = pass_list

    @classmethod
    def get(cls, key: str) -> list[PassType]:
        """The passes under a name; ExportError that lists the names there are."""
        if key not in cls.registry:
            known = ", ".join(sorted(cls.registry)) or "none"
            raise ExportError(
                ExportErrorType.MISSING_PROPERTY, f"there is no pass {key!r}; registered: {known}"
            )
        return cls.registry[key]
