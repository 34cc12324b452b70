"""Which calls the XNNPACK backend takes."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Node
from torch.fx.passes.infra.partitioner import Partition

from executorch.backends.xnnpack import operators  # noqa: F401  (fills the table of rules)
from executorch.backends.xnnpack.linear import LINEAR, operands_of, rows_around
from executorch.backends.xnnpack.lowering import aten, tensor_of
from executorch.backends.xnnpack.operators.images import BATCH_NORM, follows_convolution
from executorch.backends.xnnpack.partition.config.xnnpack_config import (
    ConfigPrecisionType,
    XNNPartitionerConfig,
    float_types,
    target_name,
    type_refusal,
)
from executorch.backends.xnnpack.partition.quantized_calls import (
    dynamic_layers,
    float_weights,
    static_calls,
)
from executorch.backends.xnnpack.partition.row_groups import row_groups, sums_of
from executorch.backends.xnnpack.quantized import whole_operators
from executorch.backends.xnnpack.rules import RULES, Refusal
from executorch.backends.xnnpack.static_quantization import (
    conversion_refusal,
    is_dequantize,
    is_quantize,
)
from executorch.backends.xnnpack.utils.quant_utils import check_quantization
from executorch.backends.xnnpack.xnnpack_preprocess import XnnpackBackend
from executorch.exir.backend.canonical_partitioners.acyclic_groups import DSJ, acyclic_groups
from executorch.exir.backend.partitioner import DelegationSpec, Partitioner, PartitionResult
from executorch.exir.backend.subgraphs import TAG
from executorch.exir.backend.tags import (
    is_constant_data,
    is_scan_body,
    set_refusal,
    tag_constant_data,
)
from executorch.exir.passes.find_attention import Attentions
from executorch.exir.torch_internals import OpOverload

# ATen operators that stay whole, or some of their calls -> their rules.
_WHOLE = {rule.target._op: rule for rule in RULES.values() if rule.whole}

FLOATS = "config_precisions leaves floating-point calls out"
ATTENTION = "part of an attention, which the runtime computes in one piece"
SCAN = "in the body of a scan, where weights are operands; the runtime runs the loop in one piece"


class XnnpackPartitioner(Partitioner):
    """Claims the calls that have a rule, with the constants they read.

    configs            only the operators of these classes (`partition/config`), in the precisions
                       and under the constraints of each; all by default
    config_precisions  which of floating-point calls, statically and dynamically quantized ones;
                       all by default
    per_op_mode        a delegate for each call
    verbose            print why calls are left out
    force_non_static_weights_for_f32_linear  leave the weights of float linear layers with the
                       program, which passes them in every call
    enable_bf16        take bfloat16 too
    Keywords, others too, reach each of `configs`.
    """

    def __init__(
        self,
        configs: list[type[XNNPartitionerConfig]] | None = None,
        config_precisions: ConfigPrecisionType | list[ConfigPrecisionType] | None = None,
        per_op_mode: bool = False,
        verbose: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        wanted = config_precisions or list(ConfigPrecisionType)
        self.precisions = set(wanted if isinstance(wanted, list) else [wanted])
        self.configs: dict[str, XNNPartitionerConfig] | None = None
        if configs is not None:
            self.configs = {str(c.target_name): c(**kwargs) for c in configs}
            for config in self.configs.values():
                config.set_enabled_precision_types(list(self.precisions))
        self.per_op_mode = per_op_mode
        self.verbose = verbose
        self.weights_are_given = bool(kwargs.get("force_non_static_weights_for_f32_linear"))
        self.types = float_types(bool(kwargs.get("enable_bf16")))

    def ops_to_not_decompose(
        self, ep: ExportedProgram
    ) -> tuple[list[OpOverload], Callable[[Node], bool] | None]:
        asked = [c.get_original_aten() for c in (self.configs or {}).values()]
        whole = [op for op, r in _WHOLE.items() if self.configs is None or r.name in self.configs]
        kept = dict.fromkeys([*whole, *whole_operators(), *filter(None, asked)])
        return list(kept), partial(self._is_taken, ep)

    def _is_taken(self, program: ExportedProgram, node: Node) -> bool:
        """Whether a call of the ATen program, if it stays whole, will be delegated."""
        rule = _WHOLE.get(node.target)
        if rule is None:
            return True
        config = (self.configs or {}).get(rule.name)
        precisions = self.precisions if config is None else config.enabled_precision_types
        in_floats = ConfigPrecisionType.FP32 in precisions
        if not in_floats and "dequantize" not in str(node.args[0]):
            return False
        if tensor_of(node).dtype not in self.types:
            return False
        return rule.whole(node, program) if callable(rule.whole) else True

    def constant_operands(self, call: Node) -> list[Node]:
        """Weights and biases, but for those that are only transposed."""
        if call.target in LINEAR:
            operands: Iterable[Any] = operands_of(call)[1:]
        elif call.target is aten.convolution.default:
            operands = call.args[1:3]
        else:
            return []
        return [
            node
            for node in operands
            if isinstance(node, Node) and node.target is not aten.permute_copy.default
        ]

    def partition(self, exported_program: ExportedProgram) -> PartitionResult:
        check_quantization(exported_program)
        tags = {}
        for i, nodes in enumerate(self._groups(exported_program)):
            tags[f"xnnpack{i}"] = DelegationSpec(XnnpackBackend.__name__, [])
            for node in nodes:
                node.meta[TAG] = f"xnnpack{i}"
        tag_constant_data(exported_program)
        if self.weights_are_given:
            _untag_weights(exported_program)
        return PartitionResult(exported_program, tags)

    def generate_partitions(self, ep: ExportedProgram) -> list[Partition]:
        """The groups of calls; each becomes a delegate."""
        groups = self._groups(ep)
        return [Partition(i, dict.fromkeys(nodes)) for i, nodes in enumerate(groups)]

    def generate_per_op_partitions(self, ep: ExportedProgram) -> list[Partition]:
        """A group for each call, with the calls that must be in the same delegate."""
        groups = self._groups(ep, per_op=True)
        return [Partition(i, dict.fromkeys(nodes)) for i, nodes in enumerate(groups)]

    def _groups(self, program: ExportedProgram, per_op: bool = False) -> list[list[Node]]:
        graph = program.graph_module.graph
        if is_scan_body(program):
            for node in graph.nodes:
                if node.op == "call_function":
                    set_refusal(node, SCAN)
            return []
        for node in graph.find_nodes(op="placeholder"):
            node.meta["is_constant"] = is_constant_data(program, node)
        per_op = per_op or self.per_op_mode
        supported, together = self._supported(program, per_op)
        return (_apart if per_op else partial(acyclic_groups, graph))(supported, together)

    def _supported(
        self, program: ExportedProgram, per_op: bool
    ) -> tuple[set[Node], list[list[Node]]]:
        """The calls that can be delegated, and lists of those that must be in the same delegate."""
        self._program = program
        layers, reasons = dynamic_layers(program)
        if ConfigPrecisionType.DYNAMIC_QUANT not in self.precisions:
            reasons |= dict.fromkeys(
                layers, "config_precisions leaves dynamically quantized calls out"
            )
            layers = {}
        for node in list(layers):
            reason = self._not_configured(node, ConfigPrecisionType.DYNAMIC_QUANT)
            if tensor_of(node).dtype not in self.types:
                reason = f"{tensor_of(node).dtype} is not wanted"
            if reason is not None:
                reasons[node] = reason
                del layers[node]
        parts = {part for layer in layers.values() for part in layer.parts()}
        together = [[*layer.parts(), node] for node, layer in layers.items()]
        if ConfigPrecisionType.STATIC_QUANT in self.precisions:
            static, others = static_calls(program, self._static_refusal)
            reasons |= others
            parts |= {part for call in static.values() for part in call.chain()}
            together += [call.chain() for call in static.values()]
        frozen: dict[Node, Node] = {}
        if self.precisions == {ConfigPrecisionType.FP32}:
            frozen = float_weights(program)
            parts |= set(frozen.values())
            reasons = {node: reason for node, reason in reasons.items() if node not in frozen}
        calls = [n for n in program.graph.nodes if n.op == "call_function"]
        whole = {*layers, *parts}
        for node in calls:
            if node not in whole and node not in reasons and (reason := self._refusal(node)):
                reasons[node] = reason
        for node in frozen.keys() & reasons.keys():
            whole.remove(frozen[node])
            reasons[frozen[node]] = "the layer of these integer weights is not computed in floats"
        together += [[w, node] for node, w in frozen.items() if node not in reasons]
        rows = self._rows(n for n in calls if n not in whole and n not in reasons)
        joined = {n for each in rows for n in each}
        alone = {n: reason for n, reason in reasons.items() if n in joined}
        reasons = {n: reason for n, reason in reasons.items() if n not in joined}
        supported = {n for n in calls if n in whole or n not in reasons}
        reasons |= dict.fromkeys(self._torn_attention(program, supported, whole), ATTENTION)
        supported -= reasons.keys() - whole
        rows = [r for r in rows if supported.issuperset(r)]
        joined = {n for each in rows for n in each}
        reasons |= {n: reason for n, reason in alone.items() if n not in joined | reasons.keys()}
        supported -= reasons.keys() - whole
        if not per_op:
            floats = self._between(program, reasons) if layers else set()
            selected = row_groups(supported | floats)
            supported.update(*selected, floats & sums_of(selected))
            rows += selected
        for node in calls:
            if node not in supported:
                set_refusal(node, reasons[node])
                if self.verbose:
                    print(f"XnnpackPartitioner: {node.name} is left out: {reasons[node]}")
        return supported, _pairs(supported) + together + rows

    def _between(self, program: ExportedProgram, reasons: dict[Node, str]) -> set[Node]:
        """Floating-point calls that a partitioner of quantized layers may take where they are
        between those of an expert. An attention is left to the runtime, which computes it in one
        piece."""
        if self.configs is not None or ConfigPrecisionType.FP32 in self.precisions:
            return set()
        attentions = Attentions(program)
        found = {n for n, r in reasons.items() if r == FLOATS and n.target not in LINEAR}
        found = {n for n in found if not self._float_refusal(n)}
        return found - attentions.all_of(attentions.found)

    def _rows(self, products: Iterable[Node]) -> list[list[Node]]:
        """For each floating-point product between two views that only join and split dims: view,
        product, view. The three become one linear layer."""
        if self.configs is not None:
            return []
        found = [(r.join, n, r.split) for n in products if (r := rows_around(n))]
        return [list(f) for f in found if not type_refusal(f[0], self.types)]

    def _torn_attention(
        self, program: ExportedProgram, supported: set[Node], layers: set[Node]
    ) -> set[Node]:
        """The nodes of attentions of which only a part can be delegated, except those of quantized
        `layers`. The runtime computes a whole attention without storing its scores. Empty if the
        partitioner is restricted to some operators."""
        if self.configs is not None or ConfigPrecisionType.FP32 not in self.precisions:
            return set()
        attentions = Attentions(program)
        torn = [a for a in attentions.found if not a.core <= supported and not a.core & layers]
        return attentions.all_of(torn) - layers

    def _refusal(self, node: Node) -> str | None:
        """Why a call is not delegated; None if it is."""
        if is_quantize(node) or is_dequantize(node):
            if ConfigPrecisionType.STATIC_QUANT not in self.precisions:
                return "config_precisions leaves statically quantized calls out"
            return conversion_refusal(node)
        if ConfigPrecisionType.FP32 not in self.precisions:
            return FLOATS
        return self._float_refusal(node)

    def _float_refusal(self, node: Node) -> str | None:
        rule = RULES.get(node.target)
        if rule is None:
            return "XnnpackBackend has no such operator"
        return (
            self._not_configured(node, ConfigPrecisionType.FP32)
            or type_refusal(node, self.types)
            or rule.unless(node)
        )

    def _static_refusal(self, node: Node, refuse: Refusal) -> str | None:
        return (
            self._not_configured(node, ConfigPrecisionType.STATIC_QUANT)
            or type_refusal(node, self.types)
            or refuse(node)
        )

    def _not_configured(self, node: Node, precision: ConfigPrecisionType) -> str | None:
        """Why the call is left out by the partitioner's configs; None if they admit it."""
        if self.configs is None:
            return None
        config = self.configs.get(target_name(node))
        if config is None and node.target in LINEAR and precision is not ConfigPrecisionType.FP32:
            config = self.configs.get("linear.default")  # which it was
        if config is None:
            return "the operator is none of the configs that were given"
        name = type(config).__name__
        if precision not in config.enabled_precision_types:
            return f"{name} is not for {precision.name}"
        own = type(config).check_constraints is not XNNPartitionerConfig.check_constraints
        if own and not config.check_constraints(node, self._program):
            return f"{name}: a constraint is not met"
        return None


class XnnpackDynamicallyQuantizedPartitioner(XnnpackPartitioner):
    """Claims dynamically quantized layers only, and what is between those of a mixture's expert."""

    def __init__(self, **kwargs: object) -> None:
        if "config_precisions" in kwargs:
            raise ValueError("config_precisions is fixed to DYNAMIC_QUANT")
        super().__init__(None, ConfigPrecisionType.DYNAMIC_QUANT, **kwargs)  # type: ignore[arg-type]


class XnnpackQuantizedPartitioner(XnnpackPartitioner):
    """Claims quantized calls only."""

    def __init__(self) -> None:
        quantized = [ConfigPrecisionType.STATIC_QUANT, ConfigPrecisionType.DYNAMIC_QUANT]
        super().__init__(None, quantized)


class XnnpackFloatingPointPartitioner(XnnpackPartitioner):
    """Claims floating-point calls only."""

    def __init__(self) -> None:
        super().__init__(None, ConfigPrecisionType.FP32)


def _apart(supported: set[Node], together: list[list[Node]]) -> list[list[Node]]:
    """A group for each call, with the calls that must be in the same delegate."""
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


def _pairs(supported: set[Node]) -> list[list[Node]]:
    """Nodes that must be in the same delegate: a convolution and its batch norm, a product and the
    permutation of its weights."""
    pairs = []
    for node in supported:
        if node.target is BATCH_NORM and follows_convolution(node):
            pairs.append([node.args[0], node])
        elif node.target in (aten.mm.default, aten.addmm.default):
            weights = operands_of(node)[1]
            if weights in supported and weights.target is aten.permute_copy.default:
                pairs.append([weights, node])
    return pairs  # type: ignore[return-value]


def _untag_weights(program: ExportedProgram) -> None:
    for node in program.graph.nodes:
        if node.target in LINEAR and TAG in node.meta and tensor_of(node).dtype == torch.float32:
            for each in operands_of(node)[1:]:
                while isinstance(each, Node) and each.op == "call_function":
                    each = each.all_input_nodes[0]
                if each is not None:
                    each.meta.pop(TAG, None)
