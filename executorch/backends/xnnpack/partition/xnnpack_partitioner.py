"""Which calls the XNNPACK backend takes."""

from __future__ import annotations

import operator
from collections.abc import Callable

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from executorch.backends.xnnpack import operators  # noqa: F401  (fills the table of rules)
from executorch.backends.xnnpack.lowering import (
    RULES,
    aten,
    constant_value,
    constants_of,
    tensor_of,
)
from executorch.backends.xnnpack.partition.config.xnnpack_config import ConfigPrecisionType
from executorch.backends.xnnpack.quantized import Constants, DynamicLinear, match, whole_operators
from executorch.backends.xnnpack.serialization.payload import MAX_RANK
from executorch.backends.xnnpack.static_quantization import (
    StaticCall,
    conversion_refusal,
    is_dequantize,
    is_quantize,
    match_static,
)
from executorch.backends.xnnpack.xnnpack_preprocess import XnnpackBackend
from executorch.exir.backend.canonical_partitioners.acyclic_groups import DSJ, acyclic_groups
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

    config_precisions  which of floating-point calls, statically and dynamically quantised ones;
                       all by default
    per_op_mode        a delegate for each call
    """

    def __init__(
        self,
        configs: list[type] | None = None,
        config_precisions: ConfigPrecisionType | list[ConfigPrecisionType] | None = None,
        per_op_mode: bool = False,
        verbose: bool = False,
        **kwargs: object,
    ) -> None:
        super().__init__()
        if configs is not None:
            raise ValueError("XnnpackPartitioner: the rules are a table, configs cannot be chosen")
        wanted = config_precisions or list(ConfigPrecisionType)
        self.precisions = set(wanted if isinstance(wanted, list) else [wanted])
        self.per_op_mode = per_op_mode

    def ops_to_not_decompose(
        self, ep: ExportedProgram
    ) -> tuple[list[torch._ops.OpOverload], Callable[[Node], bool] | None]:
        return [*_WHOLE, *whole_operators()], _is_taken

    def partition(self, exported_program: ExportedProgram) -> PartitionResult:
        graph = exported_program.graph_module.graph
        for node in graph.find_nodes(op="placeholder"):
            node.meta["is_constant"] = is_constant_data(exported_program, node)
        layers, reasons = _quantised_layers(exported_program)
        if ConfigPrecisionType.DYNAMIC_QUANT not in self.precisions:
            layers, reasons = {}, dict.fromkeys(layers, "only floating-point calls are wanted")
        parts = {part for layer in layers.values() for part in layer.chain}
        static: dict[Node, StaticCall] = {}
        if ConfigPrecisionType.STATIC_QUANT in self.precisions:
            static, others = _static_calls(exported_program)
            reasons |= others
            parts |= {part for call in static.values() for part in call.chain()}
        supported = set()
        for node in graph.nodes:
            if node.op != "call_function":
                continue
            reason: str | None
            if node in layers or node in parts:
                reason = None
            elif is_quantize(node) or is_dequantize(node):
                reason = conversion_refusal(node)
                if ConfigPrecisionType.STATIC_QUANT not in self.precisions:
                    reason = "statically quantised calls are not wanted"
            elif ConfigPrecisionType.FP32 not in self.precisions:
                reason = "only quantised calls are wanted"
            else:
                reason = reasons.get(node) or refusal(node)
            if reason is None:
                supported.add(node)
            else:
                set_refusal(node, reason)
        together = _together(supported)
        together += [[*layer.chain, node] for node, layer in layers.items()]
        together += [call.chain() for call in static.values()]
        groups = acyclic_groups(graph, supported, together)
        if self.per_op_mode:
            groups = _apart(supported, together)
        # A conversion by itself is none of a call that is delegated.
        groups = [g for g in groups if not all(is_quantize(n) or is_dequantize(n) for n in g)]
        tags = {}
        for i, nodes in enumerate(groups):
            tags[f"xnnpack{i}"] = DelegationSpec(XnnpackBackend.__name__, [])
            for node in nodes:
                node.meta[TAG] = f"xnnpack{i}"
        tag_constant_data(exported_program)
        return PartitionResult(exported_program, tags)


def _constants(program: ExportedProgram) -> Constants:
    data = constants_of(program)
    return lambda node: constant_value(
        node, lambda n: data.get(n.name) if n.meta.get("is_constant") else None
    )


def _quantised_layers(
    program: ExportedProgram,
) -> tuple[dict[Node, DynamicLinear], dict[Node, str]]:
    """The layers whose parts have no other readers, and why others are none."""
    constant = _constants(program)
    layers: dict[Node, DynamicLinear] = {}
    reasons: dict[Node, str] = {}
    for node in program.graph.nodes:
        layer = match(node, constant)
        if isinstance(layer, DynamicLinear):
            layers[node] = layer
        elif layer is not None:
            reasons[node] = layer
    while True:
        known = set(layers) | {part for layer in layers.values() for part in layer.chain}
        torn = [
            n for n, x in layers.items() if any(u not in known for p in x.chain for u in p.users)
        ]
        if not torn:
            return layers, reasons
        for node in torn:
            del layers[node]
            reasons[node] = "its quantised operands are read by other calls too"


def _static_calls(program: ExportedProgram) -> tuple[dict[Node, StaticCall], dict[Node, str]]:
    """The calls in integers, and why others with integer weights are none."""
    constant = _constants(program)
    calls: dict[Node, StaticCall] = {}
    reasons: dict[Node, str] = {}
    for node in program.graph.nodes:
        call = match_static(node, constant)
        if isinstance(call, str):
            reasons[node] = call
        elif call is not None:
            calls[node] = call
    for node, call in list(calls.items()):
        for each in call.weights_from:
            each.meta["is_constant"] = True
        conversions = (conversion_refusal(n) for n in call.conversions())
        reason = refusal(node) or next(filter(None, conversions), None)
        if reason is not None:
            del calls[node]
            reasons[node] = reason
    while True:
        known = {n for call in calls.values() for n in call.chain()}
        for node, call in list(calls.items()):
            if any(user not in known for n in call.weights_from for user in n.users):
                del calls[node]
                reasons[node] = "its integer weights are read by other calls too"
                break
        else:
            return calls, reasons


def _is_taken(node: Node) -> bool:
    """Whether a call of the ATen program, if it stays whole, will be delegated."""
    if node.target is torch.ops.aten.max_pool2d.default:
        return len(node.args) < 6 or not node.args[5]  # ceil mode
    return node.target not in _WHOLE or tensor_of(node).dtype in _TYPES


class XnnpackDynamicallyQuantizedPartitioner(XnnpackPartitioner):
    """Claims dynamically quantised layers only."""

    def __init__(self, **kwargs: object) -> None:
        if "config_precisions" in kwargs:
            raise ValueError("config_precisions is fixed to DYNAMIC_QUANT")
        super().__init__(None, ConfigPrecisionType.DYNAMIC_QUANT, **kwargs)  # type: ignore[arg-type]


class XnnpackFloatingPointPartitioner(XnnpackPartitioner):
    """Claims floating-point calls only."""

    def __init__(self) -> None:
        super().__init__(None, ConfigPrecisionType.FP32)


def _apart(supported: set[Node], together: list[list[Node]]) -> list[list[Node]]:
    """Each call by itself, with what it cannot be without."""
    sets = DSJ()
    for node in supported:
        sets.find(node)
    for group in together:
        for node in group[1:]:
            sets.union(group[0], node)
    for node in supported:
        if node.target is operator.getitem:
            sets.union(node.args[0], node)  # type: ignore[arg-type]
    return [sorted(group) for group in sets.gen_groups()]


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
