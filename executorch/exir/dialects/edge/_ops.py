"""Operators of the edge dialect: thin, unique wrappers around `torch.ops` overloads.

An edge operator computes what the wrapped overload computes; the wrapper marks that the node obeys
the edge rules (functional, tensors where the schema says tensor, explicit dtype casts).
"""

from __future__ import annotations

from typing import Any

import torch

from executorch.exir.torch_internals import (
    OpOverload,
    OpOverloadPacket,
    op_name,
    overload_name,
    packet_name,
    schema_of,
)

_TENSOR_OPTIONS = ("dtype", "layout", "device", "pin_memory")


def _register(namespace: str) -> None:
    """Import what defines the operators of a namespace, where that is done at first use."""
    if namespace == "dim_order_ops":
        from executorch.exir.passes import dim_order_ops_registry  # noqa: F401
    elif namespace == "quantized_decomposed":
        from executorch.exir.passes import quantized_ops_registry  # noqa: F401


def _typed_names(arguments: list[Any]) -> dict[str, str]:
    return {a.name: str(a.type) for a in arguments}


def find_out_variant(op: OpOverload) -> OpOverload:
    """The overload of `op`'s name that takes the same inputs and writes into given tensors.

    Tensor options (dtype, layout, device, pin_memory) may be missing: the out tensor has them.
    Raises RuntimeError where no overload fits.
    """
    namespace, name = schema_of(op).name.split("::")
    _register(namespace)
    wanted = _typed_names(schema_of(op).arguments)
    packet = getattr(getattr(torch.ops, namespace), name)
    close = None
    for overload in packet.overloads():
        candidate = getattr(packet, overload)
        arguments = schema_of(candidate).arguments
        if not any(a.is_out for a in arguments):
            continue
        given = _typed_names([a for a in arguments if not a.is_out])
        if given == wanted:
            return candidate
        dropped = {k for k in wanted if k in _TENSOR_OPTIONS and k not in given}
        if given == {k: v for k, v in wanted.items() if k not in dropped}:
            close = close or candidate
    if close is not None:
        return close
    raise RuntimeError(
        f"{op}: no out variant among the overloads {packet.overloads()} of {schema_of(op).name}; "
        "a custom operator needs an `.out` overload registered in Python"
    )


class EdgeOpOverload:
    """One edge operator, e.g. `exir_ops.edge.aten.add.Tensor`; there is one object per overload.

    `_op` is the wrapped torch overload, `_schema` its schema; `name()` reads `aten::add.Tensor`.
    """

    def __init__(self, op: OpOverload) -> None:
        self._op = op
        self._overloadname = overload_name(op)
        self._opname = op_name(op)
        self.namespace = op.namespace
        self.__name__ = f"{op.namespace}.{op_name(op)}.{overload_name(op)}"
        self.__qualname__ = self.__name__
        self.__defaults__ = None
        self._out_variant: OpOverload | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._op(*args, **kwargs)

    @property
    def _schema(self) -> torch.FunctionSchema:
        """Asked for when it is needed: `torch.compile` follows how operators are made."""
        return schema_of(self._op)

    def name(self) -> str:
        return self._op.name()

    def to_out_variant(self) -> OpOverload:
        """The `torch.ops` overload that writes into out arguments; RuntimeError without one."""
        if self._out_variant is None:
            self._out_variant = find_out_variant(self._op)
        return self._out_variant

    def __getattr__(self, key: str) -> Any:
        if key.startswith("__") or key == "_op":
            raise AttributeError(key)
        return getattr(self._op, key)

    def __repr__(self) -> str:
        return f"<EdgeOpOverload: {self.__name__}>: schema = {self._schema}"

    __str__ = __repr__

    def __copy__(self) -> EdgeOpOverload:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> EdgeOpOverload:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return edge_op_named, (self.namespace, self._opname, self._overloadname)


class EdgeOpOverloadPacket:
    """All overloads of one edge operator name, e.g. `exir_ops.edge.aten.add`."""

    def __init__(self, packet: OpOverloadPacket) -> None:
        self._op = packet
        self._qualified_op_name = packet_name(packet)

    def __getattr__(self, key: str) -> Any:
        if key.startswith("__") or key == "_op":
            raise AttributeError(key)
        attribute = getattr(self._op, key)
        if isinstance(attribute, OpOverload):
            attribute = edge_op(attribute)
            setattr(self, key, attribute)
        return attribute

    def overloads(self) -> list[str]:
        return self._op.overloads()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._op(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<EdgeOpOverloadPacket(op='{self}')>"

    def __str__(self) -> str:
        return self._qualified_op_name.replace("::", ".")

    @property
    def __name__(self) -> str:
        """Only when asked for: see `EdgeOpOverload._schema`."""
        return str(self)


class EdgeNamespace:
    """The edge operators of one library, e.g. `exir_ops.edge.aten`."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, key: str) -> Any:
        if key.startswith("__"):
            raise AttributeError(key)
        packet = getattr(getattr(torch.ops, self._name), key)
        wrapped = EdgeOpOverloadPacket(packet)
        setattr(self, key, wrapped)
        return wrapped

    def __repr__(self) -> str:
        return f"<EdgeNamespace {self._name}>"


class EdgeDialect:
    """`exir_ops.edge`: attribute access builds namespaces."""

    def __getattr__(self, key: str) -> Any:
        if key.startswith("__"):
            raise AttributeError(key)
        _register(key)
        namespace = EdgeNamespace(key)
        setattr(self, key, namespace)
        return namespace


_edge_ops: dict[OpOverload, EdgeOpOverload] = {}


def edge_op(op: OpOverload) -> EdgeOpOverload:
    """The one edge operator that wraps `op`."""
    wrapped = _edge_ops.get(op)
    if wrapped is None:
        wrapped = _edge_ops[op] = EdgeOpOverload(op)
    return wrapped


def edge_op_named(namespace: str, opname: str, overload: str) -> EdgeOpOverload:
    """The edge operator of three names, e.g. "aten", "add", "Tensor"."""
    return getattr(getattr(getattr(_dialect, namespace), opname), overload)


_dialect = EdgeDialect()
