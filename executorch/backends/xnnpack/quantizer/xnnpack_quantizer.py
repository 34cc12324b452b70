"""XNNPACKQuantizer: int8 quantization of captured graphs, by torchao's prepare_pt2e.

quantizer = XNNPACKQuantizer().set_global(get_symmetric_quantization_config(is_per_channel=True))
prepared = prepare_pt2e(torch.export.export(model, inputs).module(), quantizer)
prepared(*calibration_inputs)
quantized = convert_pt2e(prepared)
"""

from __future__ import annotations

import functools
import inspect
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch.fx import GraphModule, Node
from torchao.quantization.pt2e import (
    FakeQuantize,
    FusedMovingAvgObsFakeQuantize,
    HistogramObserver,
    MinMaxObserver,
    MovingAverageMinMaxObserver,
    MovingAveragePerChannelMinMaxObserver,
    PerChannelMinMaxObserver,
    PlaceholderObserver,
)
from torchao.quantization.pt2e.quantizer import Quantizer, get_module_name_filter

from executorch.backends.xnnpack.quantizer.activations import aten, find_activations, is_moderate
from executorch.backends.xnnpack.quantizer.xnnpack_quantizer_utils import (
    OP_TO_ANNOTATOR,
    PATTERNS,
    OperatorConfig,
    OperatorPatternType,
    QuantizationConfig,
    QuantizationSpec,
    QuantPattern,
    propagate_annotation,
)
from executorch.exir.graph.graph_edit import same_shape
from executorch.exir.graph_module import all_graph_modules
from executorch.exir.torch_internals import OpOverload, OpOverloadPacket

__all__ = [
    "QuantPattern",
    "XNNPACKQuantizer",
    "get_symmetric_quantization_config",
    "propagate_annotation",
]

# The least scale of static activations. XNNPACK refuses ratios of scales above 2^8, which a value
# that calibration saw as zero would give. Weights and dynamic scales have no such limit, and keep
# the bits that a floor would take from small values.
_LEAST_SCALE = 2**-12
_IS_BODY = "is_body_of_control_flow"  # of a graph module's meta
_EPS = float(torch.finfo(torch.float32).eps)


@functools.lru_cache
def get_symmetric_quantization_config(
    is_per_channel: bool = False,
    is_qat: bool = False,
    is_dynamic: bool = False,
    act_qmin: int = -128,
    act_qmax: int = 127,
    weight_qmin: int = -127,
    weight_qmax: int = 127,
) -> QuantizationConfig:
    """Affine int8 activations and symmetric integer weights.

    is_per_channel  a weight scale per output channel instead of one
    is_dynamic      activations get their parameters at run time, from their values
    is_qat          fake quantization for training instead of observers
    weight_qmin..   the integers used; -8 and 7 give weights of four bits, stored as int8
    """
    activation = QuantizationSpec(
        dtype=torch.int8,
        quant_min=act_qmin,
        quant_max=act_qmax,
        qscheme=torch.per_tensor_affine,
        is_dynamic=is_dynamic,
        observer_or_fake_quant_ctr=_activation_observer(is_qat, is_dynamic),
    )
    weight = QuantizationSpec(
        dtype=torch.int8,
        quant_min=weight_qmin,
        quant_max=weight_qmax,
        qscheme=torch.per_channel_symmetric if is_per_channel else torch.per_tensor_symmetric,
        ch_axis=0 if is_per_channel else None,
        observer_or_fake_quant_ctr=_weight_observer(is_qat, is_per_channel),
    )
    output = None if is_dynamic else activation
    return QuantizationConfig(activation, output, weight, None, is_qat)


def _activation_observer(is_qat: bool, is_dynamic: bool) -> Any:
    if is_dynamic and is_qat:  # the newest values alone count, as at run time
        newest = MovingAverageMinMaxObserver.with_args(averaging_constant=1)
        return FakeQuantize.with_args(observer=newest, eps=_EPS)
    if is_dynamic:
        return PlaceholderObserver.with_args(eps=_EPS)
    return (FusedMovingAvgObsFakeQuantize if is_qat else HistogramObserver).with_args(
        eps=_LEAST_SCALE
    )


def _weight_observer(is_qat: bool, is_per_channel: bool) -> Any:
    if not is_qat:
        return (PerChannelMinMaxObserver if is_per_channel else MinMaxObserver).with_args(eps=_EPS)
    observer = (
        MovingAveragePerChannelMinMaxObserver if is_per_channel else MovingAverageMinMaxObserver
    )
    return FusedMovingAvgObsFakeQuantize.with_args(observer=observer, eps=_EPS)


@dataclass
class _Rule:
    """A setting and the nodes that it applies to; the first rule that accepts a node decides."""

    accepts: Callable[[Node], bool]
    config: QuantizationConfig | None  # None: these nodes stay as they are


class XNNPACKQuantizer(Quantizer):
    """Annotates the operators that XNNPACK computes in integers. For each node, the most specific
    setting decides: that of the deepest module name, of the module type, of the operator type, the
    global one."""

    def __init__(self) -> None:
        self.global_config: QuantizationConfig | None = None
        self.operator_type_config: dict[Any, QuantizationConfig | None] = {}
        self.module_type_config: dict[Any, QuantizationConfig | None] = {}
        self.module_name_config: dict[str, QuantizationConfig | None] = {}
        self.filter_fn: Callable[[Node], bool] | None = None

    def set_global(self, quantization_config: QuantizationConfig) -> XNNPACKQuantizer:
        """Set the configuration of all nodes that no other setting applies to."""
        self.global_config = _checked(quantization_config)
        return self

    def set_operator_type(
        self, operator_type: Any, quantization_config: QuantizationConfig | None
    ) -> XNNPACKQuantizer:
        """Set the configuration for calls of an operator, an overload or packet (`aten.linear`)."""
        if not isinstance(operator_type, (OpOverload, OpOverloadPacket)):
            raise TypeError(
                "set_operator_type: expected an operator such as torch.ops.aten.linear.default, "
                f"found {operator_type!r:.80}"
            )
        self.operator_type_config[operator_type] = _checked(quantization_config)
        return self

    def set_module_type(
        self, module_type: Callable[..., Any], quantization_config: QuantizationConfig | None
    ) -> XNNPACKQuantizer:
        """Set the configuration for the operators in modules of one class, including their
        submodules."""
        self.module_type_config[module_type] = _checked(quantization_config)
        return self

    def set_module_name(
        self, module_name: str, quantization_config: QuantizationConfig | None
    ) -> XNNPACKQuantizer:
        """Set the configuration for the operators in one module ("blocks.0.mlp"); None leaves these
        unquantized."""
        if not isinstance(module_name, str):
            raise TypeError(f"set_module_name: expected a str, found {module_name!r:.80}")
        self.module_name_config[module_name] = _checked(quantization_config)
        return self

    def set_filter_function(self, filter_fn: Callable[[Node], bool]) -> XNNPACKQuantizer:
        """Annotate only nodes for which `filter_fn` is true, whichever setting applies to them."""
        self.filter_fn = filter_fn
        return self

    def transform_for_annotation(self, model: GraphModule) -> GraphModule:
        """Turn numbers in statically quantized sums and products of activations into constant
        tensors, and parts of activations into slices; let them broadcast what is expanded for them.
        Bodies of loops are left out: torchao passes them separately, after the graph around them,
        and torch.export loses their constants."""
        for body in list(all_graph_modules(model))[1:]:
            body.meta[_IS_BODY] = True
        if model.meta.get(_IS_BODY):
            return model
        rules = self._rules()
        activations = find_activations(model)
        for node in list(model.graph.nodes):
            rule = self._rule_of(node, rules)
            if rule is not None and rule.config is not None and not _is_dynamic(rule.config):
                _make_number_a_constant(model, node, activations)
                _make_parts_slices(model, node, activations)
                _read_unexpanded(node, activations)
        model.recompile()
        return model

    def annotate(self, model: GraphModule) -> GraphModule:
        rules = self._rules()
        rule_of = {node: self._rule_of(node, rules) for node in model.graph.nodes}
        for rule in rules:
            if rule.config is None:
                continue
            for name in _annotators_for(rule.config):
                OP_TO_ANNOTATOR[name](
                    model, rule.config, lambda node, rule=rule: rule_of.get(node) is rule
                )
        kept = {node for node, rule in rule_of.items() if rule in rules[:-1] and not rule.config}
        propagate_annotation(model, lambda node: node not in kept)
        return model

    def validate(self, model: GraphModule) -> None:
        """Warn of names that no module has; annotators only claim what can be quantized."""
        if model.meta.get(_IS_BODY):
            return
        nodes = [node for graph in all_graph_modules(model) for node in graph.graph.nodes]
        for name in self.module_name_config:
            if not any(map(get_module_name_filter(name), nodes)):
                warnings.warn(
                    f"XNNPACKQuantizer: set_module_name({name!r}) is for no operator: no module "
                    "of the model has that name",
                    stacklevel=2,
                )

    def _rules(self) -> list[_Rule]:
        names = sorted(self.module_name_config.items(), key=lambda item: -item[0].count("."))
        rules = [_Rule(get_module_name_filter(name), config) for name, config in names]
        for module_type, config in self.module_type_config.items():
            rules.append(_Rule(_module_type_filter(module_type), config))
        for operator_type, config in self.operator_type_config.items():
            rules.append(_Rule(_operator_filter(operator_type), config))
        rules.append(_Rule(lambda node: True, self.global_config))
        return rules

    def _rule_of(self, node: Node, rules: list[_Rule]) -> _Rule | None:
        if node.op != "call_function" or (self.filter_fn and not self.filter_fn(node)):
            return None
        return next(rule for rule in rules if rule.accepts(node))

    @classmethod
    def get_supported_quantization_configs(cls) -> list[QuantizationConfig]:
        return [
            get_symmetric_quantization_config(per_channel, is_qat, is_dynamic)
            for is_dynamic in (False, True)
            for is_qat in (False, True)
            for per_channel in (False, True)
        ]

    @classmethod
    def get_supported_operators(cls) -> list[OperatorConfig]:
        return [
            OperatorConfig(config, cls.get_supported_operator_for_quantization_config(config))
            for config in cls.get_supported_quantization_configs()
        ]

    @classmethod
    def get_supported_operator_for_quantization_config(
        cls, quantization_config: QuantizationConfig | None
    ) -> list[OperatorPatternType]:
        """The operators of each pattern for a configuration; None: for any configuration."""
        return [
            sorted(pattern.op_overloads, key=str)
            for pattern in PATTERNS
            if quantization_config is None or _is_for(pattern, quantization_config)
        ]


def _checked(config: Any) -> Any:
    if config is not None and not hasattr(config, "input_activation"):
        raise TypeError(
            "XNNPACKQuantizer: expected a QuantizationConfig, as of "
            f"get_symmetric_quantization_config(), found {config!r:.80}"
        )
    return config


def _is_dynamic(config: QuantizationConfig) -> bool:
    return config.input_activation is not None and config.input_activation.is_dynamic


def _is_for(pattern: QuantPattern, config: QuantizationConfig) -> bool:
    return (pattern.is_dynamic, pattern.is_qat) == (_is_dynamic(config), config.is_qat)


def _annotators_for(config: QuantizationConfig) -> list[str]:
    """Names of annotators: those of PATTERNS that fit `config`, and all that were registered by
    others."""
    known = {pattern.name for pattern in PATTERNS}
    ours = {pattern.name for pattern in PATTERNS if _is_for(pattern, config)}
    return [name for name in OP_TO_ANNOTATOR if name in ours or name not in known]


def _module_type_filter(module_type: Callable[..., Any]) -> Callable[[Node], bool]:
    wanted = module_type
    if inspect.isclass(module_type):
        wanted = f"{module_type.__module__}.{module_type.__qualname__}"  # type: ignore[assignment]

    def accepts(node: Node) -> bool:
        types = [t for _, t in node.meta.get("nn_module_stack", {}).values()]
        return any(t is module_type or t == wanted for t in types)

    return accepts


def _operator_filter(operator_type: Any) -> Callable[[Node], bool]:
    return lambda node: (
        operator_type
        in (
            node.target,
            getattr(node.target, "overloadpacket", None),
        )
    )


_TAKE_NUMBERS = {aten.add.Tensor, aten.add_.Tensor, aten.mul.Tensor, aten.mul_.Tensor}


def _make_number_a_constant(model: GraphModule, node: Node, activations: set[Node]) -> None:
    if node.target not in _TAKE_NUMBERS or node not in activations or len(node.args) < 2:
        return
    x, number = node.args[:2]
    if x not in activations or isinstance(number, bool) or not isinstance(number, (int, float)):
        return
    if not math.isfinite(number) or not is_moderate(number):
        return
    name = next(
        name for i in range(len(model.graph.nodes)) if not hasattr(model, name := f"_number_{i}")
    )
    model.register_buffer(name, torch.tensor(float(number)))
    with model.graph.inserting_before(node):
        constant = model.graph.get_attr(name)
    value = node.meta["val"]
    constant.meta["val"] = value.fake_mode.from_tensor(getattr(model, name))
    node.update_arg(1, constant)


_PART = {
    aten.chunk.default,
    aten.split.Tensor,
    aten.split_with_sizes.default,
    aten.tensor_split.sections,
}


def _make_parts_slices(model: GraphModule, node: Node, activations: set[Node]) -> None:
    """Replace the parts of a tensor by slices: only a call with a single result can be quantized,
    and so pass the integers of its operand on."""
    if node.target not in _PART or node not in activations:
        return
    x, dim = cast("Node", node.args[0]), cast("int", node.args[2] if len(node.args) > 2 else 0)
    sizes = [part.shape[dim] for part in node.meta["val"]]
    if not all(isinstance(size, int) for size in sizes):
        return
    for part in list(node.users):
        i = cast("int", part.args[1])
        with model.graph.inserting_before(part):
            call = (x, dim, sum(sizes[:i]), sum(sizes[: i + 1]))
            replacement = model.graph.call_function(aten.slice.Tensor, call)
        replacement.meta = part.meta
        activations.add(replacement)
        part.replace_all_uses_with(replacement)
        model.graph.erase_node(part)
    model.graph.erase_node(node)


_EXPANSIONS = {aten.expand.default, aten.expand_as.default}


def _read_unexpanded(node: Node, activations: set[Node]) -> None:
    """Let a sum or product of activations broadcast the operand that was expanded for it."""
    operands = node.args[:2]
    if node.target not in _TAKE_NUMBERS or len(operands) < 2:
        return
    if not activations.issuperset(operands):
        return
    a, b = cast("tuple[Node, Node]", operands)
    for i, (expanded, other) in enumerate([(a, b), (b, a)]):
        if expanded.target not in _EXPANSIONS or "val" not in other.meta:
            continue
        shapes = [n.meta["val"].shape for n in (node, expanded, other)]
        if same_shape(shapes[0], shapes[1]) and same_shape(shapes[0], shapes[2]):
            node.update_arg(i, expanded.args[0])
            if not expanded.users:
                node.graph.erase_node(expanded)
            return
