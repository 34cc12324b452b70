"""The forms of a linear layer in an edge graph: whole, or a product of matrices between views that
make rows of its operand and give the result the operand's dims back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from torch import Tensor
from torch.fx import Node

from executorch.backends.xnnpack.serialization.payload import MAX_RANK
from executorch.exir.dialects._ops import ops as exir_ops

_aten = exir_ops.edge.aten
LINEAR = (_aten.linear.default, _aten.addmm.default, _aten.mm.default)


@dataclass
class Rows:
    """Views around a product, which a layer over all dims in front needs none of.

    join   [..., k] -> [rows, k], the product's operand
    split  [rows, n] -> [..., n], the only reader of the product
    """

    join: Node
    split: Node

    @property
    def source(self) -> Node:
        return cast("Node", self.join.args[0])


def operands_of(node: Node) -> tuple[Node, Node, Node | None]:
    """Operand, weights and bias of a linear layer in any of its forms."""
    if node.target is _aten.addmm.default:
        bias, x, w = node.args[:3]
        return x, w, bias  # type: ignore[return-value]
    x, w = node.args[:2]
    bias = node.args[2] if len(node.args) > 2 else node.kwargs.get("bias")
    return x, w, bias  # type: ignore[return-value]


def is_weight(node: Node, call: Node) -> bool:
    """Whether `call` is a linear layer that reads `node` as its weights or bias alone."""
    if call.target not in LINEAR:
        return False
    x, w, bias = operands_of(call)
    return node in (w, bias) and node is not x


def rows_around(node: Node) -> Rows | None:
    """The views around a product, if its result has the dims of the operand in front again."""
    if node.target not in LINEAR[1:]:
        return None
    join, users = operands_of(node)[0], list(node.users)
    if not _is_view(join) or len(users) != 1 or not _is_view(users[0]):
        return None
    rows = Rows(join, users[0])
    before, after = (_value(n).shape for n in (rows.source, rows.split))
    n_columns = _value(node).shape[1:]
    same = 1 < len(before) <= MAX_RANK and [*before[:-1], *n_columns] == list(after)
    return rows if same and is_rows(join) else None


def is_rows(view: Node) -> bool:
    """Whether a view leaves the last dim as it is."""
    before, after = (_value(n).shape[-1:] for n in (cast("Node", view.args[0]), view))
    return before == after and isinstance(before[0], int)


def _is_view(node: Any) -> bool:
    return isinstance(node, Node) and node.target is _aten.view_copy.default


def _value(node: Node) -> Tensor:
    return cast("Tensor", node.meta["val"])
