"""Layers of which only some rows count, such as the experts of a mixture."""

from __future__ import annotations

import operator
from collections.abc import Set
from typing import Any

from torch import Tensor
from torch.fx import Node

from executorch.backends.xnnpack.linear import LINEAR
from executorch.backends.xnnpack.lowering import aten


def row_groups(supported: Set[Node]) -> list[list[Node]]:
    """The calls whose results are only multiplied by one factor a row and then added to others',
    with that product: in one delegate, rows whose factor is zero are not computed
    (runtime/selected_rows.h)."""
    groups = []
    for node in supported:
        if node.target is aten.mul.Tensor and _is_term(node):
            for rows, factor in (node.args[:2], node.args[1::-1]):
                if _is_factor(factor, node):
                    groups.append(_only_for(node, rows, supported))
    return [g for g in groups if any(n.target in LINEAR for n in g)]


def sums_of(groups: list[list[Node]]) -> set[Node]:
    """The additions that read the groups' products."""
    return {user for group in groups for user in group[-1].users}


def _is_term(node: Node) -> bool:
    return len(node.users) == 1 and next(iter(node.users)).target is aten.add.Tensor


def _is_factor(given: Any, product: Node) -> bool:
    fake = given.meta.get("val") if isinstance(given, Node) else None
    shape = product.meta["val"].shape
    is_tensor = isinstance(fake, Tensor) and fake.dim() == len(shape) > 0
    return is_tensor and fake is not None and fake.shape[-1] == 1 != shape[-1]


def _only_for(product: Node, rows: Any, supported: Set[Node]) -> list[Node]:
    """The product and what nothing else reads, directly or through other calls."""
    found = {product}
    pending = [rows]
    while pending:  # a node that has other readers is looked at again after each of them
        node = pending.pop()
        is_taken = node in supported or node.target is operator.getitem
        if is_taken and node not in found and found.issuperset(node.users):
            found.add(node)
            pending += node.all_input_nodes
    return sorted(found)
