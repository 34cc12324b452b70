"""Which calls the XNNPACK backend takes."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from executorch.backends.xnnpack import operators  # noqa: F401  (fills the table of rules)
from executorch.backends.xnnpack.lowering import RULES, aten, tensor_of
from executorch.backends.xnnpack.serialization.payload import MAX_RANK
from executorch.backends.xnnpack.xnnpack_preprocess import XnnpackBackend
from executorch.exir.backend.canonical_partitioners.acyclic_groups import acyclic_groups
from executorch.exir.backend.partitioner import DelegationSpec, Partitioner, PartitionResult
from executorch.exir.backend.subgraphs import TAG
from executorch.exir.backend.tags import is_constant_data, set_refusal, tag_constant_data

_TYPES = (torch.float32, torch.float16)
_NORM = aten._native_batch_norm_legit_no_training.default
_WHOLE = [
    torch.ops.aten.linear.default,
    torch.ops.aten.max_pool2d.default,
    torch.ops.aten.hardswish.default,
    torch.ops.aten.upsample_bilinear2d.vec,
]


class XnnpackPartitioner(Partitioner):
    """Claims the calls that have a rule, with the constants they read.

    per_op_mode  a delegate for each call
    """

    def __init__(self, *, per_op_mode: bool = False, verbose: bool = False) -> None:
        super().__init__()
        self.per_op_mode = per_op_mode
        self.verbose = verbose

    def ops_to_not_decompose(
        self, ep: ExportedProgram
    ) -> tuple[list[torch._ops.OpOverload], Callable[[Node], bool] | None]:
        return _WHOLE, _is_taken

    def partition(self, exported_program: ExportedProgram) -> PartitionResult:
        graph = exported_program.graph_module.graph
        for node in graph.find_nodes(op="placeholder"):
            node.meta["is_constant"] = is_constant_data(exported_program, node)
        supported = set()
        for node in graph.nodes:
            if node.op != "call_function":
                continue
            reason = refusal(node)
            if reason is None:
                supported.add(node)
            else:
                set_refusal(node, reason)
        groups = acyclic_groups(graph, supported, _together(supported))
        if self.per_op_mode:
            groups = [[node] for node in supported]
        tags = {}
        for i, nodes in enumerate(groups):
            tags[f"xnnpack{i}"] = DelegationSpec(XnnpackBackend.__name__, [])
            for node in nodes:
                node.meta[TAG] = f"xnnpack{i}"
        tag_constant_data(exported_program)
        return PartitionResult(exported_program, tags)


def _is_taken(node: Node) -> bool:
    """Whether a call of the ATen program, if it stays whole, will be delegated."""
    if node.target is torch.ops.aten.max_pool2d.default:
        return len(node.args) < 6 or not node.args[5]  # ceil mode
    return tensor_of(node).dtype in _TYPES


def refusal(node: Node) -> str | None:
    """Why a call is not delegated; None if it is."""
    if node.target is _NORM:
        return _norm_refusal(node)
    rule = RULES.get(node.target)
    if rule is None:
        return "XnnpackBackend has no such operator"
    dtype = tensor_of(node).dtype
    if dtype not in _TYPES:
        return f"XnnpackBackend computes in float32 and float16, not in {dtype}"
    for each in (node, *node.all_input_nodes):
        value = each.meta.get("val")
        if isinstance(value, (list, tuple)) and each is node:
            value = value[0]
        if not isinstance(value, torch.Tensor):
            return f"{each} is no tensor"
        scalar = value.dim() == 0 and each.meta.get("is_constant") and value.is_floating_point()
        if value.dtype != dtype and not scalar:
            return f"types are mixed: {each} is of {value.dtype}"
        if value.dim() > MAX_RANK:
            return f"{each} has more than {MAX_RANK} dims"
        if value.dim_order() != tuple(range(value.dim())):
            return f"{each} is not contiguous"
    return rule.refuse(node)


def _norm_refusal(node: Node) -> str | None:
    """A batch norm goes with the convolution before it."""
    x, *parameters = node.args[:5]
    conv = isinstance(x, Node) and x.target is aten.convolution.default and len(x.users) == 1
    if not conv or refusal(x) is not None:  # type: ignore[arg-type]
        return "a batch norm that does not follow a convolution alone"
    if any(isinstance(p, Node) and not p.meta.get("is_constant") for p in parameters):
        return "parameters that are not constant"
    if [u.args[1] for u in node.users] != [0]:
        return "statistics that are used"
    return None


def _together(supported: set[Node]) -> list[list[Node]]:
    """Batch norms and their convolutions, products and the weights turned for them."""
    pairs = []
    for node in supported:
        if node.target is _NORM:
            pairs.append([node.args[0], node])
        elif node.target in (aten.mm.default, aten.addmm.default):
            weights = node.args[1 if node.target is aten.mm.default else 2]
            if isinstance(weights, Node) and weights.op == "call_function":
                pairs.append([weights, node])
    return pairs  # type: ignore[return-value]
