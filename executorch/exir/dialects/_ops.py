"""`ops.edge.<namespace>.<op>.<overload>` and `ops.backend...`: what passes compare targets with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from executorch.exir.dialects.backend._ops import BackendDialect, backend_op
from executorch.exir.dialects.edge._ops import EdgeDialect


class _Dialects:
    """`edge` and `backend`; every other attribute is that of `torch.ops`."""

    def __init__(self) -> None:
        self.edge = EdgeDialect()
        self.backend = BackendDialect()

    def __getattr__(self, key: str) -> Any:
        if key.startswith("__"):
            raise AttributeError(key)
        return getattr(torch.ops, key)


ops = _Dialects()


def bind_pattern_to_op(
    library: torch.library.Library, schema_or_name: str
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorate a function as the meaning of a backend operator.

    `schema_or_name` is a schema, which is then defined in `library`, or the name of an operator
    that the library has already; the function becomes its implementation for every device.
    """
    name = schema_or_name.split("(")[0].strip()
    qualified = name if "::" in name else f"{library.ns}::{name}"

    def bind(pattern: Callable[..., Any]) -> Callable[..., Any]:
        if "(" in schema_or_name:
            library.define(schema_or_name.split("::")[-1])
        library.impl(qualified.split("::")[-1], pattern, "CompositeExplicitAutograd")
        namespace, _, rest = qualified.partition("::")
        opname, _, overload = rest.partition(".")
        packet = getattr(getattr(torch.ops, namespace), opname)
        backend_op(getattr(packet, overload or "default"), pattern)
        return pattern

    return bind
