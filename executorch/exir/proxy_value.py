"""What the hooks of an `ExportPass` get: values of its run, and metadata of the node being run."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import fx


class ExportPassBaseError(RuntimeError):
    """A pass met a graph that it cannot run."""


class NodeMetadata:
    """The metadata of the node being run; a hook passes it on to what it emits."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data.copy()

    def __getitem__(self, key: str) -> Any:
        return self.data[key]

    def __setitem__(self, key: str, value: Any) -> None:
        if key in ("val", "tensor_meta"):
            raise ExportPassBaseError(f"{key!r} is computed by the pass; it cannot be set")
        self.data[key] = value

    def __contains__(self, key: str) -> bool:
        return key in self.data

    def get(self, key: str, default: Any = None) -> Any:
        return self.data.get(key, default)

    def copy(self) -> NodeMetadata:
        return NodeMetadata(self.data)


class ProxyValue:
    """A value of the run (`data`: fake tensor, number, list of those) and the node recorded for it.

    In hooks it stands for the value: size, dtype and arithmetic on symbolic numbers go to `data`.
    """

    def __init__(self, data: Any, proxy: fx.Proxy | fx.Node) -> None:
        self.data = data
        self.proxy_or_node = proxy

    @property
    def node(self) -> fx.Node:
        return (
            self.proxy_or_node
            if isinstance(self.proxy_or_node, fx.Node)
            else self.proxy_or_node.node
        )

    @property
    def proxy(self) -> fx.Proxy:
        if not isinstance(self.proxy_or_node, fx.Proxy):
            raise RuntimeError(f"ProxyValue of {self.proxy_or_node} was made without a proxy")
        return self.proxy_or_node

    def is_tensor(self) -> bool:
        return isinstance(self.data, torch.Tensor)

    def to_tensor(self) -> torch.Tensor:
        if not isinstance(self.data, torch.Tensor):
            raise TypeError(f"{self.node}: expected a tensor, got {type(self.data)}")
        return self.data

    def is_symint(self) -> bool:
        return isinstance(self.data, torch.SymInt)

    def __iter__(self):  # type: ignore[no-untyped-def]
        yield from self.data

    def __bool__(self) -> bool:
        return bool(self._number("used in boolean context"))

    def __int__(self) -> int:
        return int(self._number("converted to int"))

    def __float__(self) -> float:
        return float(self._number("converted to float"))

    def __index__(self) -> int:
        return operator.index(self._number("used in index context"))

    def _number(self, wanted: str) -> Any:
        """`data`; not a symbolic number, whose value of this export would become a constant."""
        if isinstance(self.data, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            raise ExportPassBaseError(
                f"{self.node}: ProxyValue with {type(self.data).__name__} data cannot be {wanted}; "
                "pass it to an operator"
            )
        return self.data

    def __getattr__(self, key: str) -> Any:
        if key in ("data", "proxy_or_node") or key.startswith("__"):
            raise AttributeError(key)
        return getattr(self.data, key)
