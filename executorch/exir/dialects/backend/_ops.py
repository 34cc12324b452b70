"""Operators of the backend dialect: names for patterns that one backend runs as a whole."""

from __future__ import annotations

from typing import Any

import torch

from executorch.exir.dialects.edge._ops import EdgeOpOverload
from executorch.exir.torch_internals import OpOverload


class BackendOpOverload(EdgeOpOverload):
    """One backend operator; `_equivalent_callable` is its pattern of edge operators, or None."""

    def __init__(self, op: OpOverload, equivalent: Any = None) -> None:
        super().__init__(op)
        self._equivalent_callable = equivalent

    def __repr__(self) -> str:
        return f"<BackendOpOverload: {self.__name__}>: schema = {self._schema}"

    __str__ = __repr__

    def __reduce__(self) -> tuple[Any, ...]:
        return _backend_op_named, (self.namespace, self._opname, self._overloadname)


class _Packet:
    def __init__(self, packet: Any) -> None:
        self._op = packet

    def __getattr__(self, key: str) -> Any:
        if key.startswith("__") or key == "_op":
            raise AttributeError(key)
        attribute = getattr(self._op, key)
        return backend_op(attribute) if isinstance(attribute, OpOverload) else attribute


class _Namespace:
    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, key: str) -> Any:
        if key.startswith("__"):
            raise AttributeError(key)
        return _Packet(getattr(getattr(torch.ops, self._name), key))


class BackendDialect:
    """`exir_ops.backend`: attribute access builds namespaces."""

    def __getattr__(self, key: str) -> Any:
        if key.startswith("__"):
            raise AttributeError(key)
        return _Namespace(key)


_backend_ops: dict[OpOverload, BackendOpOverload] = {}


def backend_op(op: OpOverload, equivalent: Any = None) -> BackendOpOverload:
    """The one backend operator that wraps `op`; `equivalent` binds its pattern."""
    wrapped = _backend_ops.get(op)
    if wrapped is None:
        wrapped = _backend_ops[op] = BackendOpOverload(op)
    if equivalent is not None:
        wrapped._equivalent_callable = equivalent
    return wrapped


def _backend_op_named(namespace: str, opname: str, overload: str) -> BackendOpOverload:
    return getattr(getattr(getattr(BackendDialect(), namespace), opname), overload)
