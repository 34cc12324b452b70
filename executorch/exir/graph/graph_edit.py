"""The base of passes that edit a graph where it stands, and the few edits they share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node
from torch.fx.node import map_arg
from torch.fx.passes.infra.pass_base import PassBase, PassResult

from executorch.exir.graph_module import all_graph_modules
from executorch.exir.torch_internals import FakeTensorMode, enable_python_dispatcher

# What a node made from another one inherits: who wrote it, and where it came from.
_PROVENANCE = (
    "stack_trace",
    "nn_module_stack",
    "source_fn_stack",
    "torch_fn",
    "original_aten",
    "from_node",
    "seq_nr",
    "debug_handle",
)


class GraphEdit(PassBase):
    """A pass that edits graphs in place; a subclass writes `edit`, for a graph by itself."""

    def edit(self, graph_module: GraphModule) -> bool:
        """Edit `graph_module.graph`; true if anything changed."""
        raise NotImplementedError

    def edit_all(self, graph_module: GraphModule) -> bool:
        """Edit the graph and all control flow sub-graphs, without regenerating their code."""
        return any([self.edit(gm) for gm in all_graph_modules(graph_module)])

    def call(self, graph_module: GraphModule) -> PassResult:
        modified = False
        for gm in all_graph_modules(graph_module):
            if self.edit(gm):
                gm.recompile()
                modified = True
        return PassResult(graph_module, modified)


def value_of(argument: Any) -> Any:
    """`argument` with every node replaced by its fake value."""
    return map_arg(argument, lambda n: n.meta.get("val"))


def compute_value(
    target: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    beside: Any = None,
) -> Any:
    """The fake result of calling `target` on arguments that may be nodes; if none is a tensor, one
    that can be used with the value `beside`."""
    from executorch.exir.torch_internals import detect_fake_mode

    fake_args, fake_kwargs = value_of(tuple(args)), value_of(dict(kwargs or {}))
    mode = detect_fake_mode((fake_args, fake_kwargs, beside))
    if mode is None:
        mode = FakeTensorMode(allow_non_fake_inputs=True)
    with mode, enable_python_dispatcher(), torch.no_grad():
        return target(*fake_args, **fake_kwargs)


def provenance(node: Node) -> dict[str, Any]:
    """The part of a node's metadata that tells where it came from."""
    return {k: node.meta[k] for k in _PROVENANCE if k in node.meta}


def insert_before(
    anchor: Node,
    target: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    value: Any = None,
) -> Node:
    """Add a call before `anchor`, with its provenance and its (given or computed) fake value."""
    graph: Graph = anchor.graph
    with graph.inserting_before(anchor):
        node = graph.call_function(target, tuple(args), dict(kwargs or {}))
    node.meta = provenance(anchor)
    if value is None:
        value = compute_value(target, args, kwargs, beside=anchor.meta.get("val"))
    node.meta["val"] = value
    return node


def replace_node(old: Node, new: Node) -> None:
    """Give `new` all users of `old` and erase `old`."""
    old.replace_all_uses_with(new)
    old.graph.erase_node(old)


def same_extent(a: Any, b: Any) -> bool:
    """Whether two sizes are equal for certain, without adding a guard."""
    if isinstance(a, int) and isinstance(b, int):
        return a == b
    if isinstance(a, torch.SymInt) and isinstance(b, torch.SymInt):
        return bool(a.node.expr == b.node.expr)
    return False


def same_shape(a: Sequence[Any], b: Sequence[Any]) -> bool:
    return len(a) == len(b) and all(same_extent(x, y) for x, y in zip(a, b, strict=True))


def is_droppable(node: Node, value: Node) -> bool:
    """Whether users of `node` may read `value` instead, both computing the same.

    A graph output stays an own tensor: it must not become an input or a second output.
    """
    if all(u.op != "output" for u in node.users):
        return True
    return value.op not in ("placeholder", "get_attr") and all(
        u.op != "output" for u in value.users
    )
