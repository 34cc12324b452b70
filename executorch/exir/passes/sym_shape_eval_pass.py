from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.fx import GraphModule, Node

from executorch.exir.dynamic_shape import DynamicMemoryPlanningMode
from executorch.exir.error import ExportError, ExportErrorType
from executorch.exir.graph.operator_kind import overload_of
from executorch.exir.graph.pass_driver import GraphPass, Pass
from executorch.exir.graph.program_view import ProgramView
from executorch.exir.graph.source_line import source_line
from executorch.exir.sym_util import eval_expr, upper_bound
from executorch.exir.tensor import TensorSpec
from executorch.exir.torch_internals import ValueRanges, forget_bounds

_LARGEST_STRIDE = 2**31 - 1

_upper_bound_inference: dict[str, Callable[[Any, Any], list[int | None]]] = {}


def register_upper_bound_inference(fn: Any) -> Callable[[Any], Any]:
    """Decorate a function from (args, kwargs) of an operator to the upper bounds of its result.

    HintBasedSymShapeEvalPass asks it where the result's extents depend on data. Arguments are
    TensorSpecs in place of tensors.
    """

    def register(inference: Any) -> Any:
        op = overload_of(fn)
        _upper_bound_inference[op.name() if op is not None else str(fn)] = inference
        return inference

    return register


@register_upper_bound_inference(torch.ops.aten.nonzero.default)
def nonzero(args: Any, kwargs: Any) -> list[int | None]:
    """At most every element is not zero."""
    numel = 1
    for extent in args[0].shape:
        numel *= extent
    return [numel, len(args[0].shape)]


@register_upper_bound_inference(torch.ops.aten.index.Tensor)
def index_Tensor(args: Any, kwargs: Any) -> list[int | None]:
    """One bool mask of the tensor's shape: at most every element is picked."""
    tensor, indices = args[0], args[1]
    masks = [i for i in indices if i is not None]
    if len(masks) != 1 or masks[0].dtype is not torch.bool or list(masks[0].shape) != tensor.shape:
        raise ExportError(
            ExportErrorType.NOT_SUPPORTED,
            "index.Tensor: the result's size depends on data; only a single bool mask of the "
            "tensor's own shape has a known bound",
        )
    numel = 1
    for extent in tensor.shape:
        numel *= extent
    return [numel]


def _bound_masked_select(node: Node) -> None:
    """The range PyTorch gives the number of elements picked is that of `self` alone, and none for
    few elements; a mask that broadcasts picks more of them."""
    extent = node.meta["spec"].shape[0]
    if isinstance(extent, int) or not extent.node.expr.is_Symbol:
        return
    shapes = [[upper_bound(s) for s in n.meta["val"].shape] for n in node.all_input_nodes]
    if any(bound is None for shape in shapes for bound in shape):
        return
    assumed = math.prod(upper_bound(s) or 0 for s in node.all_input_nodes[0].meta["val"].shape)
    picked = math.prod(torch.broadcast_shapes(*shapes))
    bound = upper_bound(extent)
    if bound is None or (bound == assumed and picked > assumed):
        _limit(extent, picked)


_DISTINCT = {
    torch.ops.aten._unique2.default,
    torch.ops.aten.unique_consecutive.default,
    torch.ops.aten.unique_dim.default,
}


def _bound_distinct(node: Node) -> None:
    """At most every element is distinct; PyTorch says so only where their number is fixed."""
    extents = [upper_bound(s) for s in node.all_input_nodes[0].meta["val"].shape]
    if any(extent is None for extent in extents):
        return
    for spec in _own_specs(node):
        for count in spec.shape:
            if not isinstance(count, int) and upper_bound(count) is None:
                _limit(count, math.prod(extent or 0 for extent in extents))


def _limit(extent: torch.SymInt, most: int) -> None:
    if extent.node.expr.is_Symbol:
        shape_env = extent.node.shape_env
        shape_env.var_to_range[extent.node.expr] = ValueRanges(0, most)
        forget_bounds(shape_env)  # bounds known by now are to be forgotten


class _SymShapeEval(GraphPass):
    """Replaces symbolic extents and strides of specs by numbers, keeps order and dynamism."""

    def edit(self, view: ProgramView) -> bool:
        self._bounds: dict[Any, int | None] = {}
        return super().edit(view)

    def edit_graph(self, graph_module: GraphModule) -> bool:
        for node in graph_module.graph.nodes:
            op = overload_of(node.target)
            if op is torch.ops.aten.masked_select.default:
                _bound_masked_select(node)
            elif op in _DISTINCT:
                _bound_distinct(node)
            for spec in _own_specs(node):
                if any(not isinstance(s, int) for s in spec.shape):
                    spec.shape = self.extents(node, spec)
        return True

    def extents(self, node: Node, spec: TensorSpec) -> list[int]:
        raise NotImplementedError


class ConstraintBasedSymShapeEvalPass(_SymShapeEval):
    """Plan every tensor for the largest shape that the range constraints allow.

    Before    spec.shape [2*s0, 4], s0 <= 8
    After     spec.shape [16, 4], DYNAMIC_BOUND
    Requires  specs. A dimension without a finite bound is an ExportError that names it: memory
              planned for the example's size would be overrun by a larger input. So is a tensor
              that can be too large.
    """

    def extents(self, node: Node, spec: TensorSpec) -> list[int]:
        bounds = [upper_bound(extent) for extent in spec.shape]
        unbounded = [d for d, bound in enumerate(bounds) if bound is None]
        if unbounded:
            raise ExportError(ExportErrorType.NOT_SUPPORTED, _advice(node, spec, unbounded[0]))
        largest = [bound for bound in bounds if bound is not None]
        # The runtime refuses a file with such a tensor.
        if node.op == "call_function" and math.prod(largest[1:]) > _LARGEST_STRIDE:
            raise ExportError(
                ExportErrorType.NOT_SUPPORTED,
                f"tensor {node}: its largest shape, {largest} of {list(spec.shape)}, needs strides "
                f"of more than 32 bits\n  in your model: {source_line(node)}\n"
                "  give smaller bounds in dynamic_shapes of torch.export.export",
            )
        return largest


class HintBasedSymShapeEvalPass(_SymShapeEval):
    """Plan every tensor for the shape of the example inputs.

    For programs that never see larger inputs: such an input fails at run time. Extents that depend
    on data take the bound registered for their operator.
    """

    def extents(self, node: Node, spec: TensorSpec) -> list[int]:
        hints = [eval_expr(extent) for extent in spec.shape]
        if any(hint is None for hint in hints):
            hints = self._inferred(node) or [upper_bound(extent) for extent in spec.shape]
        unknown = [d for d, hint in enumerate(hints) if hint is None]
        if unknown:
            raise ExportError(ExportErrorType.NOT_SUPPORTED, _advice(node, spec, unknown[0]))
        return [hint for hint in hints if hint is not None]

    def _inferred(self, node: Node) -> list[int | None] | None:
        op = overload_of(node.target)
        inference = _upper_bound_inference.get(op.name()) if op is not None else None
        if inference is None:
            return None
        from torch.fx.node import map_arg

        args, kwargs = map_arg((node.args, node.kwargs), lambda n: n.meta.get("spec"))
        return inference(args, kwargs)


def _own_specs(node: Node) -> Iterator[TensorSpec]:
    if node.op == "output":
        return
    pending = [node.meta.get("spec")]
    while pending:
        item = pending.pop()
        if isinstance(item, TensorSpec):
            yield item
        elif isinstance(item, (list, tuple)):
            pending.extend(item)


def _advice(node: Node, spec: TensorSpec, dim: int) -> str:
    """What is unbounded, where it comes from, what to write instead."""
    extent = spec.shape[dim]
    what = "input" if node.op == "placeholder" else "tensor"
    where = source_line(node) if node.op != "placeholder" else "an input of the method"
    symbols: set[Any] = getattr(extent.node.expr, "free_symbols", set())
    if any(str(symbol).startswith("u") for symbol in symbols):
        advice = (
            f"it depends on data: tell a bound in the model, torch._check({extent} <= N) on the "
            "number it comes from"
        )
    else:
        advice = (
            "give it a largest size in dynamic_shapes of torch.export.export: "
            f'{{{dim}: Dim("...", max=N)}}'
        )
    return (
        f"{what} {node}: dimension {dim} of shape {list(spec.shape)} has no upper bound, so no "
        f"memory can be planned for it\n  in your model: {where}\n  {advice}"
    )


def propagate_dynamic_shape(
    dynamic_memory_planning_mode: DynamicMemoryPlanningMode = DynamicMemoryPlanningMode.UPPER_BOUND,
) -> list[Pass]:
    """Passes that give every value of a graph its spec and the specs their bounds, for tools that
    read shapes before memory is planned. Upper bounds are the only mode there is."""
    if dynamic_memory_planning_mode is not DynamicMemoryPlanningMode.UPPER_BOUND:
        raise ValueError(f"memory is planned for upper bounds, not {dynamic_memory_planning_mode}")
    from executorch.exir.passes.spec_prop_pass import SpecPropPass

    return [SpecPropPass(), ConstraintBasedSymShapeEvalPass()]
