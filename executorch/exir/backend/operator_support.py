"""Operator support that says no: combine with a backend's own by `chain`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.fx import Node
from torch.fx.passes.operator_support import (  # noqa: F401 (the other combinators, one import away)
    OperatorSupport,
    OperatorSupportBase,
    any_chain,
    chain,
    create_op_support,
)

Modules = Mapping[str, torch.nn.Module]


class DontSupportBase(OperatorSupportBase):
    """Supports all but what it was told not to, which it remembers."""

    def __init__(self) -> None:
        self._rejected: list[Node] = []

    def reject_node(self, node: Node) -> None:
        if node not in self._rejected:
            self._rejected.append(node)

    def rejected_nodes(self) -> list[Node]:
        return self._rejected

    def num_rejected(self) -> int:
        return len(self._rejected)

    def has_rejected_node(self) -> bool:
        return bool(self._rejected)

    def _matches(self, node: Node) -> bool:
        raise NotImplementedError

    def is_node_supported(self, submodules: Modules, node: Node) -> bool:
        if not self._matches(node):
            return True
        self.reject_node(node)
        return False


class DontPartition(DontSupportBase):
    """Not these operators: overloads, packets, or (with exact=False) parts of their names."""

    def __init__(self, *targets: Any, exact: bool = True) -> None:
        super().__init__()
        self.targets, self.exact = targets, exact

    def _matches(self, node: Node) -> bool:
        target = node.target
        packet = getattr(getattr(target, "_op", target), "overloadpacket", None)
        names = {getattr(target, "__name__", str(target)), str(packet)}
        for given in self.targets:
            if given in (target, packet, getattr(target, "_op", None)):
                return True
            name = given if isinstance(given, str) else getattr(given, "__name__", str(given))
            if name in names if self.exact else any(name in n for n in names):
                return True
        return False


class DontPartitionName(DontSupportBase):
    """Not the nodes of these names, or (with exact=False) with these parts of names."""

    def __init__(self, *targets: str, exact: bool = True) -> None:
        super().__init__()
        self.targets, self.exact = targets, exact

    def _matches(self, node: Node) -> bool:
        if self.exact:
            return node.name in self.targets
        return any(target in node.name for target in self.targets)


class DontPartitionModule(DontSupportBase):
    """Not what modules of this class, or of this name in the model, compute."""

    def __init__(
        self,
        *,
        module_name: str | None = None,
        instance_name: str | None = None,
        exact: bool = True,
    ) -> None:
        super().__init__()
        if module_name is None and instance_name is None:
            raise ValueError("DontPartitionModule: give module_name or instance_name")
        self.module_name, self.instance_name, self.exact = module_name, instance_name, exact

    def _matches(self, node: Node) -> bool:
        for path, type_ in node.meta.get("nn_module_stack", {}).values():
            name = type_ if isinstance(type_, str) else getattr(type_, "__name__", "")
            if self._same(self.module_name, name.rpartition(".")[2]):
                return True
            if self._same(self.instance_name, path):
                return True
        return False

    def _same(self, wanted: str | None, name: str) -> bool:
        if wanted is None:
            return False
        return wanted == name if self.exact else wanted in name
