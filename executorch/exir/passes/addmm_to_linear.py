"""Products with large constant weights, as layers of `nn.Linear` have them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

from executorch.exir.dialects._ops import ops as exir_ops
from executorch.exir.graph.graph_edit import (
    insert_before,
    is_contiguous,
    replace_node,
    same_extent,
)
from executorch.exir.graph.operator_kind import overload_of
from executorch.exir.graph.pass_driver import Pass
from executorch.exir.graph.program_view import Dialect, Place, ProgramView, place_of
from executorch.exir.passes.constant_prop_pass import replace_by_constants
from executorch.exir.torch_internals import op_name

# Smaller weights stay in caches, where their layout costs little.
_LARGE_BYTES = 1024 * 1024

_FLOATS = frozenset({torch.float32, torch.float16, torch.bfloat16})

_aten = exir_ops.edge.aten
# What transposes a matrix -> whether it does so with these further arguments.
_TRANSPOSES: dict[Any, Callable[..., bool]] = {
    _aten.permute_copy.default: lambda dims: dims[0] % 2 == 1,
    _aten.transpose_copy.int: lambda first, second: first % 2 != second % 2,
    _aten.t_copy.default: lambda: True,
}


class AddmmToLinear(Pass):
    """Let products read large constant weights as [n, k], where each output's row is contiguous:
    kernels read these faster where they lie.

    Before    t = permute_copy(w, [1, 0]); y = addmm(b, x, t), or mm(x, t)
    After     y = linear(x, w, b), or linear(x, w)
    Before    t = permute_copy(w, [1, 0]), w = dequantize_...(constants); y = addmm(b, x, t), ...
    After     y = linear(x, w, b), or linear(x, w)
    Before    y = addmm(b, x, v) with a constant v [k, n], or mm(x, v)
    After     w = placeholder; y = linear(x, w, b), or linear(x, w), with w = v transposed
    Requires  edge dialect. Behind FoldConstants, which makes the first form the second one where
              it stores the transposed weight in the place of w.
    Ensures   the same sums of products. The program gets no larger: of the first form any call may
              read w; of the second one only such products read v, in all methods given together.
              A transposed weight is a view of the given one.
    Leaves    weights of less than 1 MiB, whose products stay core ATen operators; programs that
              compute gradients; other types than float32, float16 and bfloat16; biases that are no
              vector of n elements, and factors of them; anything in control flow.
    """

    takes = frozenset({Dialect.EDGE})

    def edit_methods(self, views: Sequence[ProgramView]) -> bool:
        if any(view.is_trained for view in views):
            return False
        found = [_products(view) for view in views]
        readers: Counter[Place] = Counter()
        products: Counter[Place] = Counter()
        for view, calls in zip(views, found, strict=True):
            readers.update(view.readers)
            weights: list[Any] = [call.args[-1] for call in calls]
            products.update(place_of(view.constants[w]) for w in weights if w in view.constants)
        own = {place for place, count in products.items() if count == readers[place]}
        return any([_rewrite(view, calls, own) for view, calls in zip(views, found, strict=True)])


def _products(view: ProgramView) -> list[Node]:
    """The calls that may become linear layers, as far as they alone can tell."""
    calls = [n for n in view.graph.nodes if n.target in (_aten.mm.default, _aten.addmm.default)]
    return [call for call in calls if _fits(call, view.constants)]


def _fits(call: Node, constants: Mapping[Node, Tensor]) -> bool:
    operands: Any = call.args
    *addend, x, weight = operands
    source = _source(weight)
    is_computed = source is not weight and _is_dequantized(source, constants)
    if x is weight or not (source in constants or is_computed):
        return False
    if (source.meta["val"] if is_computed else constants[source]).nbytes < _LARGE_BYTES:
        return False
    dtypes = {n.meta["val"].dtype for n in call.all_input_nodes}
    if len(dtypes) != 1 or not dtypes <= _FLOATS or not is_contiguous(source.meta["val"]):
        return False
    if any(factor != 1 for factor in call.kwargs.values()):
        return False
    outputs = weight.meta["val"].shape[1]
    shapes = [bias.meta["val"].shape for bias in addend]
    return all(len(shape) == 1 and same_extent(shape[0], outputs) for shape in shapes)


def _is_dequantized(source: Node, constants: Mapping[Node, Tensor]) -> bool:
    op = overload_of(source.target)
    if op is None or op.namespace != "quantized_decomposed":
        return False
    return op_name(op).startswith("dequantize") and all(
        n in constants for n in source.all_input_nodes
    )


def _source(weight: Node) -> Node:
    """The matrix whose transpose `weight` is, or else `weight` itself."""
    transposes = _TRANSPOSES.get(weight.target)
    is_transpose = transposes is not None and transposes(*weight.args[1:])
    return weight.args[0] if is_transpose else weight  # type: ignore


def _rewrite(view: ProgramView, products: Sequence[Node], own: Collection[Place]) -> bool:
    """Make layers of products. Those that read a constant itself are changed where `own` has it."""
    known: dict[Node, Tensor] = dict(view.constants)
    transposed: dict[Node, Node] = {}
    modified = False
    for call in products:
        operands: Any = call.args
        *bias, x, weight = operands
        source = _source(weight)
        if source is weight:
            if place_of(known[weight]) not in own:
                continue
            if weight not in transposed:
                transposed[weight] = _transpose(call, weight, known)
            source = transposed[weight]
        arguments = (x, source, *bias)
        linear = insert_before(call, _aten.linear.default, arguments, value=call.meta["val"])
        linear.meta = dict(call.meta)
        replace_node(call, linear)
        if weight.op == "call_function" and not weight.users:
            view.graph.erase_node(weight)
        modified = True
    if transposed:
        replace_by_constants(view, known)
    return modified


def _transpose(call: Node, weight: Node, known: dict[Node, Tensor]) -> Node:
    """A call that stands for the transposed constant until all are made at once."""
    node = insert_before(call, _aten.permute_copy.default, (weight, [1, 0]))
    known[node] = known[weight].detach().t()
    return node
