from __future__ import annotations

import torch
from torch.fx import GraphModule, Node

from executorch.exir.graph.graph_edit import GraphEdit, is_droppable
from executorch.exir.torch_internals import find_schema

_NAMESPACE = "quantized_decomposed::"


class FoldRedundantDequantizeQuantizePass(GraphEdit):
    """Drop a dequantize followed by a quantize with equal parameters.

    Before    y = dequantize_per_tensor(q, *p); r = quantize_per_tensor(y, *p)
    After     r = q
    Ensures   equal values; also per channel. The dequantize stays for other users.
    """

    def edit(self, graph_module: GraphModule) -> bool:
        modified = False
        for node in list(graph_module.graph.nodes):
            source = node.args[0] if node.args else None
            if not isinstance(source, Node) or not _undoes(node, source):
                continue
            original = source.args[0]
            if is_droppable(node, original):  # type: ignore[arg-type]
                node.replace_all_uses_with(original)  # type: ignore[arg-type]
                graph_module.graph.erase_node(node)
                if not source.users:
                    graph_module.graph.erase_node(source)
                modified = True
        return modified


def _kind(node: Node) -> tuple[str, str]:
    """("quantize" or "dequantize" or "", the rest of the operator's name)."""
    schema = find_schema(node.target)
    if schema is None or not schema.name.startswith(_NAMESPACE):
        return "", ""
    verb, _, rest = schema.name[len(_NAMESPACE) :].partition("_")
    return verb, f"{rest}.{schema.overload_name}"


def _undoes(quantize: Node, dequantize: Node) -> bool:
    (verb, how), (inner_verb, inner_how) = _kind(quantize), _kind(dequantize)
    return (
        verb == "quantize"
        and inner_verb == "dequantize"
        and how == inner_how
        and quantize.args[1:] == dequantize.args[1:]
        and not dequantize.kwargs.keys() - {"out_dtype"}
        and isinstance(dequantize.args[0], Node)
        and _dtype(dequantize.args[0]) in (_dtype(quantize), None)
    )


def _dtype(node: Node) -> torch.dtype | None:
    """None in a graph without values: then the equal arguments of both say it."""
    value = node.meta.get("val")
    return value.dtype if isinstance(value, torch.Tensor) else None
