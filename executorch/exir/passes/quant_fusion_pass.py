"""Replaces calls between dequantizations and a quantization by calls on integers, for quantized
graphs that run without a backend. Tables and weights stay integers without this pass."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

from executorch.exir.dialects._ops import ops
from executorch.exir.graph.graph_edit import insert_before, replace_node
from executorch.exir.graph.pass_driver import GraphPass, run_passes
from executorch.exir.graph.program_view import ProgramView
from executorch.exir.passes.constant_prop_pass import ConstPropPass
from executorch.exir.passes.lower_torchao_quantization import quantized_operators

_aten = ops.edge.aten
# Calls that only move elements: equal for integers, if what they stand for is the same.
_MOVES = {
    _aten.cat.default,
    _aten.expand_copy.default,
    _aten.permute_copy.default,
    _aten.select_copy.int,
    _aten.slice_copy.Tensor,
    _aten.squeeze_copy.dims,
    _aten.unsqueeze_copy.default,
    _aten.view_copy.default,
}


class QuantFusionPass(GraphPass):
    """Compute with the integers that quantized tensors are.

    Before    y = add(dequantize(a), dequantize(b)); q = quantize(y)
              y = view_copy(dequantize(a), shape); q = quantize(y), with the parameters of a
    After     q = quantized_decomposed.add(a, b), with all parameters
              q = view_copy(a, shape)
    Requires  edge dialect; one scale for each tensor, known ahead of time.
    Ensures   equal values; dequantizations stay for their other users.
    Leaves    sums with factors and of tensors of several types; results that others read too.

    _fix_node_meta_val and node_value_dict are accepted without effect: new nodes always have
    values, and constants are found in the program.
    """

    def __init__(
        self, _fix_node_meta_val: bool = False, node_value_dict: dict[str, Tensor] | None = None
    ) -> None:
        super().__init__()
        quantized_operators()

    def edit_graph(self, graph_module: GraphModule) -> bool:
        modified = False
        for node in list(graph_module.graph.nodes):
            call = _quantized_call(node)
            if call is None:
                continue
            target, arguments, keywords = call
            value = node.meta["val"]
            replace_node(node, insert_before(node, target, arguments, keywords, value=value))
            modified = True
        if modified:
            graph_module.graph.eliminate_dead_code()
        return modified


def quant_fusion_and_const_prop_pass(program: ExportedProgram) -> ExportedProgram:
    """The pass and `constant_prop_pass`, in place."""
    run_passes([ProgramView(program)], [QuantFusionPass(), ConstPropPass()])
    return program


def _get_node_value_dict(program: ExportedProgram) -> dict[str, Tensor]:
    """Parameters and buffers by the names of their placeholders."""
    return {node.name: tensor for node, tensor in ProgramView(program).constants.items()}


def _is(node: Any, verb: str) -> bool:
    operator = getattr(ops.edge.quantized_decomposed, f"{verb}_per_tensor").default
    return isinstance(node, Node) and node.target is operator and _dtype(node) is not None


def _dtype(conversion: Node) -> Any:
    """Of the integers; None where a result is of another type than float32."""
    if conversion.kwargs.get("out_dtype") is not None:
        return None
    return conversion.args[5]


def _quantized_call(quantize: Node) -> tuple[Any, tuple[Any, ...], dict[str, Any]] | None:
    """What a quantization and the call it converts become together."""
    if not _is(quantize, "quantize"):
        return None
    node = quantize.args[0]
    if not isinstance(node, Node) or list(node.users) != [quantize] or node.op != "call_function":
        return None
    operands = node.all_input_nodes
    if not operands or not all(_is(x, "dequantize") for x in operands):
        return None
    if node.target in _MOVES:
        if any(x.args[1:] != quantize.args[1:] for x in operands):
            return None
        arguments, keywords = _with_integers((node.args, node.kwargs))
        return node.target, arguments, keywords
    is_sum = node.target is _aten.add.Tensor and all(isinstance(x, Node) for x in node.args)
    if not is_sum or node.kwargs.get("alpha", 1) != 1:
        return None
    a, b = node.args
    if {_dtype(a), _dtype(b)} != {_dtype(quantize)}:  # type: ignore[arg-type]
        return None
    target = ops.edge.quantized_decomposed.add.default
    return target, (*a.args[:5], *b.args[:5], *quantize.args[1:5]), {}  # type: ignore


def _with_integers(arguments: Any) -> Any:
    if isinstance(arguments, Node):
        return arguments.args[0]
    if isinstance(arguments, (list, tuple)):
        return type(arguments)(_with_integers(each) for each in arguments)
    if isinstance(arguments, dict):
        return {key: _with_integers(each) for key, each in arguments.items()}
    return arguments
