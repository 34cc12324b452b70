"""What every pass must leave: the driver asks in tests, where EXECUTORCH_CHECK_PASSES is set.

A graph is well formed, its calls are those of its dialect, inputs and outputs are those of the
signature, and each call whose operator or operands changed has the value that the operator gives.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor
from torch.fx import GraphModule, Node

from executorch.exir import memory
from executorch.exir.error import ExportError, ExportErrorType
from executorch.exir.graph.graph_edit import same_extent, value_of
from executorch.exir.graph.operator_kind import (
    UNWRAPPED,
    is_higher_order,
    is_out_variant,
    is_symbolic,
    overload_of,
)
from executorch.exir.graph.program_view import Dialect, ProgramView
from executorch.exir.tensor import TensorSpec, dim_order_of
from executorch.exir.torch_internals import (
    OpOverload,
    detect_fake_mode,
    enable_python_dispatcher,
    schema_of,
)

# Operators of these libraries are called as torch has them in programs for the runtime.
_RUNTIME_NAMESPACES = ("executorch_prim", "et_copy")


def are_on() -> bool:
    return bool(os.environ.get("EXECUTORCH_CHECK_PASSES"))


class Checks:
    """Compares what passes leave in `views`; what was there before counts as right."""

    def __init__(self, views: Sequence[ProgramView]) -> None:
        self.views = views
        self._known: dict[Node, Any] = {}
        for view in views:
            for graph_module in view.graph_modules():
                self._known.update((n, _state(n)) for n in graph_module.graph.nodes)

    def run(self, name: str) -> None:
        """ExportError that names the pass and the node where a check fails."""
        for view in self.views:
            for graph_module in view.graph_modules():
                self._check_graph(graph_module, view.dialect, name)
            _check_signature(view, name)

    def _check_graph(self, graph_module: GraphModule, dialect: Dialect | None, name: str) -> None:
        try:
            graph_module.graph.lint()
        except RuntimeError as error:
            raise _failure(name, f"the graph is not well formed: {error}") from error
        for node in graph_module.graph.nodes:
            wrong = _breach(node, dialect) if dialect is not None else None
            state = _state(node)
            if wrong is None and not _equal(state, self._known.get(node)):
                wrong = _wrong_value(node)
            if wrong is not None:
                raise _failure(name, f"node {node} = {node.target}: {wrong}")
            self._known[node] = state


def _failure(name: str, what: str) -> ExportError:
    return ExportError(ExportErrorType.VIOLATION_OF_SPEC, f"after {name}: {what}")


def _state(node: Node) -> tuple[Any, ...]:
    """What a node's value follows from, and the value."""
    values = [n.meta.get("val") for n in node.all_input_nodes]
    return node.target, node.args, node.kwargs, node.meta.get("val"), *values


def _equal(a: tuple[Any, ...], b: tuple[Any, ...] | None) -> bool:
    return b is not None and len(a) == len(b) and all(x is y for x, y in zip(a, b, strict=True))


def _check_signature(view: ProgramView, name: str) -> None:
    if view.signature is None:
        return
    pairs: Any = (
        (view.signature.input_specs, view.graph.find_nodes(op="placeholder")),
        (view.signature.output_specs, view.graph.output_node().args[0]),
    )
    for specs, nodes in pairs:
        told = [s.arg.name for s in specs]
        there = [getattr(n, "name", t) for n, t in zip(nodes, told, strict=False)]
        if told != there or len(specs) != len(nodes):
            names = [str(n) for n in nodes]
            raise _failure(name, f"the signature names {told}, the graph {names}")


def _breach(node: Node, dialect: Dialect) -> str | None:
    """Why a call is not one of the dialect."""
    op = overload_of(node.target) if node.op == "call_function" else None
    if op is None:
        return None
    is_torchs = isinstance(node.target, OpOverload)
    if dialect is Dialect.ATEN:
        return None if is_torchs else "an edge operator in the ATen dialect"
    writes = schema_of(op).is_mutable
    if writes and dialect is Dialect.EDGE:
        return "the edge dialect has no operators that write into their arguments"
    plain = is_torchs and op not in UNWRAPPED and op.namespace not in _RUNTIME_NAMESPACES
    if plain and not writes:
        return f"a torch operator in the {dialect.value} dialect; expected an edge operator"
    if dialect is Dialect.OUT and not writes and not is_symbolic(op) and _gives_tensor(node):
        return "a result without memory; expected an out variant"
    return None


def _gives_tensor(node: Node) -> bool:
    return isinstance(node.meta.get("val"), Tensor)


def _wrong_value(node: Node) -> str | None:
    """How the value that a pass left differs from what the operator gives."""
    spec = _wrong_spec(node)
    if spec is not None or not _can_compute(node):
        return spec
    left, given = node.meta["val"], _computed(node)
    if isinstance(left, Tensor):
        left, given = [left], [given]
    if not isinstance(left, (list, tuple)):
        return None
    if not isinstance(given, (list, tuple)) or len(left) != len(given):
        return f"the pass left {len(left)} values, the operator gives {given!r}"
    for a, b in zip(left, given, strict=True):
        if isinstance(a, Tensor) and isinstance(b, Tensor) and not _alike(a, b):
            return f"the pass left {_look(a)}, the operator gives {_look(b)}"
    return None


def _wrong_spec(node: Node) -> str | None:
    """A spec has the dtype of the value, and as many dims."""
    spec, value = node.meta.get("spec"), node.meta.get("val")
    if not isinstance(spec, TensorSpec) or not isinstance(value, Tensor):
        return None
    if spec.dtype is value.dtype and len(spec.shape) == value.dim():
        return None
    return f"its spec is {spec.dtype} {spec.shape}, its value {_look(value)}"


def _can_compute(node: Node) -> bool:
    op = overload_of(node.target) if node.op == "call_function" else None
    if node.op != "call_function" or is_higher_order(node) or node.meta.get("val") is None:
        return False
    if any(n.meta.get("val") is None and n.op != "get_attr" for n in node.all_input_nodes):
        return False
    if op is None:
        return node.target is operator.getitem or node.target is memory.view
    return not is_out_variant(op) and not is_symbolic(op)


def _computed(node: Node) -> Any:
    """The value of a call on the values of its operands, computed without leaving guards or symbols
    in the shape environment."""
    args, kwargs = value_of(node.args), value_of(node.kwargs)
    mode = detect_fake_mode((args, kwargs, node.meta["val"]))
    with ExitStack() as stack:
        if mode is not None:
            stack.enter_context(mode)
            if mode.shape_env is not None:
                stack.enter_context(mode.shape_env.suppress_guards())
                stack.enter_context(mode.shape_env.ignore_fresh_unbacked_symbols())
        stack.enter_context(enable_python_dispatcher())
        stack.enter_context(torch.no_grad())
        if node.target is memory.view:
            args = (_dense(args[0]), *args[1:])
        return node.target(*args, **kwargs)  # type: ignore[operator]


def _dense(tensor: Tensor) -> Tensor:
    """What a program holds for `tensor`: the same order of dims, without gaps between elements."""
    order = _order(tensor)
    if order is None:
        return tensor
    return torch.empty_permuted(tensor.shape, order, dtype=tensor.dtype, device=tensor.device)


def _alike(a: Tensor, b: Tensor) -> bool:
    if a.dtype != b.dtype or a.dim() != b.dim():
        return False
    if any(not _same(x, y) for x, y in zip(a.shape, b.shape, strict=True)):
        return False
    return _order(a) == _order(b)


def _same(a: Any, b: Any) -> bool:
    """Whether two sizes are equal, or depend on data: every computation makes new symbols for
    those, which cannot be compared."""
    from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols, statically_known_true

    if same_extent(a, b) or free_unbacked_symbols([a, b]):
        return True
    return bool(statically_known_true(a == b))


def _order(tensor: Tensor) -> Any:
    """The order of dims in memory as programs know it; None where it depends on data."""
    try:
        return dim_order_of(tensor)
    except ValueError:  # expanded, or without bounds
        return None


def _look(tensor: Tensor) -> str:
    return f"{tensor.dtype} {list(tensor.shape)} in the order {_order(tensor)}"
