from __future__ import annotations

import operator
from typing import Any

import torch
from torch.export.graph_signature import InputKind
from torch.fx import GraphModule, Node
from torch.fx.node import map_arg

from executorch.exir import memory
from executorch.exir.error import ExportError, ExportErrorType
from executorch.exir.graph.graph_edit import attribute_of
from executorch.exir.graph.operator_kind import (
    is_delegate_call,
    is_inplace,
    is_out_variant,
    makes_contiguous,
    overload_of,
    written_arguments,
)
from executorch.exir.graph.pass_driver import Pass
from executorch.exir.graph.program_view import ProgramView
from executorch.exir.graph.source_line import source_line
from executorch.exir.graph.updated_weights import updated_weights
from executorch.exir.tensor import CHANNELS_LAST, TensorSpec, dim_order_of, scalar_type_enum
from executorch.exir.torch_internals import op_name, schema_of
from executorch.exir.view_spec import ViewSpec

_CONST_KINDS = (
    InputKind.PARAMETER,
    InputKind.BUFFER,
    InputKind.CONSTANT_TENSOR,
    InputKind.CUSTOM_OBJ,
)


class SpecPropPass(Pass):
    """Give every node its TensorSpec: `node.meta["spec"]`, shaped like `node.meta["val"]`.

    Requires  fake values in `node.meta["val"]`; nothing is traced again.
    Ensures   one tensor has one spec: getitem, output and in-place results share that of the node
              they come from. Numbers have the spec None. Of a program, placeholders of parameters,
              of buffers that nothing mutates and of lifted constants are marked const, weights that
              a trainer updates are not. A graph that was planned before gets new specs, as if it
              never was.
    Leaves    the spec that a delegate call already has.
    """

    def edit(self, view: ProgramView) -> bool:
        for gm in view.graph_modules():
            for node in gm.graph.nodes:
                _set_spec(node, gm)
        if view.signature is not None:
            _mark_constants(view)
        return True


def make_spec(node: Node, value: Any) -> Any:
    """The spec of a fake value, in the same structure of lists and tuples; None for what is no
    tensor."""
    if isinstance(value, torch.Tensor):
        return _tensor_spec(node, value)
    if isinstance(value, (list, tuple)):
        specs = [make_spec(node, item) for item in value]
        return tuple(specs) if isinstance(value, tuple) else specs
    return None


# Kernels that take or give complex numbers: arithmetic, sums, products of matrices, transforms,
# casts, those that only move elements, and those that fill with a real number.
# fmt: off
_COMPLEX = frozenset((
    "_fft_c2c", "_fft_c2r", "_fft_r2c", "complex", "view_as_complex_copy", "view_as_real_copy",
    "_conj_copy", "_conj_physical", "abs", "add", "div", "mul", "neg", "sub", "alias_copy",
    "as_strided_copy", "clone", "_clone_dim_order", "detach_copy", "diagonal_copy", "narrow_copy",
    "unfold_copy", "cat", "expand_copy", "flip", "gather", "index", "index_select",
    "permute_copy", "repeat", "roll", "select_copy", "slice_copy", "split_copy",
    "split_with_sizes_copy", "squeeze_copy", "stack", "t_copy", "transpose_copy", "unbind_copy",
    "unsqueeze_copy", "view_copy", "sum", "mean", "mm", "bmm", "addmm", "linear", "_to_copy",
    "_to_dim_order_copy", "constant_pad_nd", "copy", "empty", "full", "full_like", "slice_scatter",
    "select_scatter",
))
# Those of them that have no 16-bit parts, as in eager PyTorch.
_NOT_OF_HALVES = frozenset((
    "_fft_c2c", "_fft_c2r", "_fft_r2c", "mm", "bmm", "addmm", "linear",
))
# fmt: on


def _takes(node: Node, dtype: torch.dtype) -> bool:
    op = overload_of(node.target)
    if op is None:
        return True
    halves = dtype is torch.complex32
    return op_name(op) in _COMPLEX and not (halves and op_name(op) in _NOT_OF_HALVES)


def _complex_dtype(node: Node, value: torch.Tensor) -> torch.dtype | None:
    """The complex dtype of the node's result, or else of an input."""
    for other in (value, *(source.meta.get("val") for source in node.all_input_nodes)):
        if isinstance(other, torch.Tensor) and other.dtype.is_complex:
            return other.dtype
    return None


def _tensor_spec(node: Node, value: torch.Tensor) -> TensorSpec:
    """The spec of a result. Kernels write it contiguous, or channels-last where PyTorch would. Any
    other order of dims, such as a transposed view's, is an order in eager mode's memory."""
    try:
        scalar_type_enum(value.dtype)
        found = _complex_dtype(node, value)
        if found is not None and not _takes(node, found):
            raise ValueError(f"{found} has no kernel here; compute with real and imaginary parts")
        spec = TensorSpec(value.dtype, value.shape, value.layout, requires_grad=value.requires_grad)
        if value.layout is not torch.strided:
            raise ValueError(f"a {value.layout} tensor cannot be in a program; use a strided one")
        if value.dim() == len(CHANNELS_LAST) and not makes_contiguous(node):
            order = dim_order_of(value)
            spec.dim_order = order if order == CHANNELS_LAST else spec.dim_order
        return spec
    except (ValueError, RuntimeError) as error:
        op = overload_of(node.target) or node.target
        raise ExportError(
            ExportErrorType.NOT_SUPPORTED,
            f"{node} ({op}): {error}\n  in your model: {source_line(node)}",
        ) from None


def _set_spec(node: Node, graph_module: GraphModule) -> None:
    if node.op == "output":
        node.meta["spec"] = map_arg(node.args[0], lambda n: n.meta.get("spec"))
    elif node.op == "get_attr":
        value = attribute_of(graph_module, str(node.target))
        if isinstance(value, torch.Tensor):
            node.meta["spec"] = TensorSpec.from_tensor(node.meta.get("val", value), const=True)
    elif node.op == "placeholder":
        node.meta["spec"] = make_spec(node, node.meta.get("val"))
    elif node.op == "call_function":
        _set_call_spec(node)


def _set_call_spec(node: Node) -> None:
    op = overload_of(node.target)
    if node.target is operator.getitem:
        container: Any = node.args[0]
        index: Any = node.args[1]
        specs = container.meta.get("spec") if isinstance(container, Node) else None
        node.meta["spec"] = specs[index] if isinstance(specs, (list, tuple)) else None
    elif is_delegate_call(node) and node.meta.get("spec") is not None:
        return
    elif node.target is memory.view:
        base: Any = node.args[0]
        node.meta["spec"] = ViewSpec(base.meta["spec"], node.meta["val"].shape)
    elif op is not None and is_out_variant(op):
        outs = [node.kwargs[a.name] for a in schema_of(op).arguments if a.is_out]
        specs = [out.meta["spec"] for out in outs]  # type: ignore[union-attr]
        node.meta["spec"] = specs[0] if len(specs) == 1 else specs
    elif op is not None and is_inplace(op) and isinstance(node.meta.get("val"), torch.Tensor):
        node.meta["spec"] = written_arguments(node, op)[0].meta["spec"]
    else:
        node.meta["spec"] = make_spec(node, node.meta.get("val"))


def _mark_constants(view: ProgramView) -> None:
    assert view.signature is not None
    trained = updated_weights(view.signature)
    for node, spec in view.inputs.items():
        constant = spec.kind in _CONST_KINDS and node not in view.changing_buffers
        if constant and node.name not in trained and isinstance(node.meta["spec"], TensorSpec):
            node.meta["spec"].const = True
