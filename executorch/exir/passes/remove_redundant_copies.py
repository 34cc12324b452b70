from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch.fx import GraphModule, Node

from executorch.exir.dialects._ops import ops as exir_ops
from executorch.exir.graph.graph_edit import is_droppable, replace_node, same_shape
from executorch.exir.graph.operator_kind import overload_of
from executorch.exir.graph.pass_driver import GraphPass
from executorch.exir.passes.written_memory import memory_of, written_memory
from executorch.exir.tensor import TensorSpec
from executorch.exir.torch_internals import schema_of

_view_copy = exir_ops.edge.aten.view_copy.default


class RemoveRedundantCopies(GraphPass):
    """Drop copies that change nothing, and make views of those that only rename dimensions.

    Before    y = _to_dim_order_copy(x, dim_order=d), x of that dtype and order; z = f(y)
    After     z = f(x)
    Before    y = permute_copy(permute_copy(x, p), q)
    After     y = permute_copy(x, p[q]), or x itself if that is the identity
    Before    y = unsqueeze_copy(x, 1); also squeeze_copy, and permutations of dimensions of size 1
    After     y = view_copy(x, s), which costs nothing
    Requires  specs; edge dialect.
    Ensures   equal shapes, dtypes, dim orders and values.
    Leaves    copies of what is written in place; a graph output that would become an input or a
              second output; views with more than one dynamic dimension.
    """

    def edit_graph(self, graph_module: GraphModule) -> bool:
        written = written_memory(graph_module)
        modified = False
        for node in list(graph_module.graph.nodes):
            op = overload_of(node.target) if node.op == "call_function" else None
            rule = _RULES.get(schema_of(op).name) if op is not None else None
            if rule is None or not isinstance(node.args[0], Node):
                continue
            modified |= rule(node)
            source = node.args[0]
            if (
                _is_copy(node, source)
                and is_droppable(node, source)
                and memory_of(source) not in written
                and node not in written
            ):
                replace_node(node, source)
                modified = True
        return modified


def _spec(node: Node) -> Any:
    return node.meta.get("spec")


def _is_copy(node: Node, source: Any) -> bool:
    """Whether `node` has the elements of `source` in the same places."""
    new, old = _spec(node), _spec(source)
    if not isinstance(new, TensorSpec) or not isinstance(old, TensorSpec):
        return False
    if not same_shape(new.shape, old.shape) or new.dim_order != old.dim_order:
        return False
    if new.dtype != old.dtype or (new.device, new.device_index) != (old.device, old.device_index):
        return False
    name = schema_of(node.target).name
    if name == "aten::permute_copy":
        return _dims(node) == list(range(len(new.shape)))
    if name == "aten::slice_copy":
        start, step = _argument(node, 2, "start", None), _argument(node, 4, "step", 1)
        return start in (None, 0) and step == 1
    return True


def _argument(node: Node, position: int, name: str, default: Any) -> Any:
    return node.args[position] if len(node.args) > position else node.kwargs.get(name, default)


def _dims(node: Node) -> list[int]:
    dims: Any = node.args[1]
    return [d % len(dims) for d in dims]


def _simplify_permute(node: Node) -> bool:
    source: Any = node.args[0]
    modified = False
    if overload_of(source.target) is overload_of(node.target) and source.op == "call_function":
        inner = _dims(source)
        node.args = (source.args[0], [inner[d] for d in _dims(node)])
        modified = True
    spec = _spec(node.args[0])  # type: ignore[arg-type]
    if isinstance(spec, TensorSpec):
        moved = [d for d in _dims(node) if not isinstance(spec.shape[d], int) or spec.shape[d] != 1]
        if moved == sorted(moved) and _dims(node) != sorted(_dims(node)):
            modified |= _make_view(node)
    return modified


def _make_view(node: Node) -> bool:
    """Turn a call that keeps the elements' order into a view copy."""
    new, old = _spec(node), _spec(node.args[0])  # type: ignore[arg-type]
    if not isinstance(new, TensorSpec) or not isinstance(old, TensorSpec):
        return False
    plain = all(s.dim_order == tuple(range(len(s.shape))) for s in (new, old))
    dynamic = [i for i, extent in enumerate(new.shape) if not isinstance(extent, int)]
    empty = any(isinstance(extent, int) and extent == 0 for extent in new.shape)
    if not plain or len(dynamic) > 1 or (dynamic and empty):
        return False
    node.args = (node.args[0], [-1 if i in dynamic else e for i, e in enumerate(new.shape)])
    node.kwargs = {}
    node.target = _view_copy
    return True


def _nothing(node: Node) -> bool:
    return False


_RULES: dict[str, Callable[[Node], bool]] = {
    "aten::permute_copy": _simplify_permute,
    "aten::unsqueeze_copy": _make_view,
    "aten::squeeze_copy": _make_view,
    "aten::view_copy": _nothing,
    "aten::expand_copy": _nothing,
    "aten::slice_copy": _nothing,
    "aten::alias_copy": _nothing,
    "aten::detach_copy": _nothing,
    "aten::clone": _nothing,
    "aten::_to_copy": _nothing,
    "dim_order_ops::_to_dim_order_copy": _nothing,
    "dim_order_ops::_clone_dim_order": _nothing,
}
