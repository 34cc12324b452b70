"""The annotators of XNNPACKQuantizer: for each operator, which of its values become integers.

An annotator is a function of one node, registered by `@annotates` with the operators it is for. It
writes the node's annotation and returns the nodes it covers, or None where it does not apply.
Upstream's public spelling `register_annotator` adds one that walks the graph by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torchao.quantization.pt2e import (
    FakeQuantize,
    MinMaxObserver,
    MovingAverageMinMaxObserver,
    MovingAveragePerChannelMinMaxObserver,
)
from torchao.quantization.pt2e.quantizer import (
    OperatorConfig,
    OperatorPatternType,
    QuantizationAnnotation,
    QuantizationConfig,
    QuantizationSpec,
    SharedQuantizationSpec,
    get_bias_qspec,
    get_input_act_qspec,
    get_output_act_qspec,
    get_weight_qspec,
)

from executorch.backends.xnnpack import operators  # noqa: F401  (fills the table of rules)
from executorch.backends.xnnpack.quantizer.activations import (
    FLOAT32,
    Types,
    aten,
    constant_of,
    find_activations,
    find_weights,
    is_float,
    is_moderate,
    is_number,
)
from executorch.backends.xnnpack.rules import RULES, Rule
from executorch.exir.torch_internals import is_marked_annotated

__all__ = [
    "OP_TO_ANNOTATOR",
    "PATTERNS",
    "OperatorConfig",
    "OperatorPatternType",
    "QuantPattern",
    "QuantizationConfig",
    "QuantizationSpec",
    "annotates",
    "change_quantization_config",
    "get_bias_qspec",
    "get_input_act_qspec",
    "get_output_act_qspec",
    "get_weight_qspec",
    "is_relu_node",
    "propagate_annotation",
    "register_annotator",
]

KEY = "quantization_annotation"  # torchao's, in Node.meta
Filter = Callable[[Node], bool] | None
Annotator = Callable[[GraphModule, QuantizationConfig | None, Filter], list[list[Node]] | None]

OP_TO_ANNOTATOR: dict[str, Annotator] = {}


@dataclass
class QuantPattern:
    """The operators of one annotator, and the kind of quantization that it annotates."""

    name: str
    is_dynamic: bool
    is_qat: bool
    op_overloads: set[Any]


PATTERNS: list[QuantPattern] = []


def register_annotator(op: str) -> Callable[[Annotator], None]:
    """Register `annotate(graph_module, config, filter_fn)` under the name `op`."""

    def decorator(annotator: Annotator) -> None:
        OP_TO_ANNOTATOR[op] = annotator

    return decorator


@dataclass
class Site:
    """A node to annotate, with the facts about its graph that annotators need."""

    node: Node
    config: QuantizationConfig
    activations: set[Node]
    weights: set[Node]
    wanted: Callable[[Node], bool]
    types: Types = FLOAT32

    def only_user(self, node: Node, ops: set[Any]) -> Node | None:
        """The only user of `node`, if it calls one of `ops` and may be quantized with it."""
        user = next(iter(node.users), None)
        if user is None or len(node.users) != 1 or user.target not in ops:
            return None
        return user if self.wanted(user) and not is_annotated(user) else None


def annotates(
    name: str,
    *ops: Any,
    static: bool = True,
    dynamic: bool = False,
    dynamic_types: Types = FLOAT32,
) -> Callable[[Any], Any]:
    """Register a function of a Site for the calls of `ops`, in which ways it quantizes, and which
    types where activations are quantized at run time."""

    def decorator(annotate_node: Callable[[Site], list[Node] | None]) -> Any:
        def annotate(
            gm: GraphModule, config: QuantizationConfig | None, filter_fn: Filter = None
        ) -> list[list[Node]]:
            if config is None:
                return []
            at_run_time = getattr(config.input_activation, "is_dynamic", False)
            types = dynamic_types if at_run_time else FLOAT32
            activations, weights = find_activations(gm, types), find_weights(gm)
            wanted = filter_fn or (lambda node: True)
            found = []
            for node in gm.graph.nodes:
                if node.target not in ops or not is_float(node, types) or is_annotated(node):
                    continue
                if node in weights:  # folded
                    continue
                site = Site(node, config, activations, weights, wanted, types)
                if wanted(node) and (covered := annotate_node(site)):
                    found.append(covered)
            return found

        OP_TO_ANNOTATOR[name] = annotate
        for is_dynamic in [False] * static + [True] * dynamic:
            PATTERNS.extend(QuantPattern(name, is_dynamic, qat, set(ops)) for qat in (False, True))
        return annotate_node

    return decorator


def is_annotated(node: Node) -> bool:
    return KEY in node.meta and is_marked_annotated(node.meta[KEY])


def _annotate(node: Node, inputs: dict[Node, Any] | None = None, output: Any = None) -> None:
    node.meta[KEY] = QuantizationAnnotation(inputs or {}, output, _annotated=True)


def _passing_on(rules: Iterable[Rule]) -> set[Any]:
    packets = [getattr(aten, name) for rule in rules for name in rule.passes_on]
    return {getattr(packet, name) for packet in packets for name in packet.overloads()}


_CLAMPS = _passing_on(rule for rule in RULES.values() if rule.kind == "Clamp")
_BATCH_NORM = {aten.batch_norm.default}


def is_relu_node(node: Node) -> bool:
    return node.op == "call_function" and node.target in (aten.relu.default, aten.relu_.default)


def _annotate_product(site: Site, weight_spec: Any) -> list[Node] | None:
    """node(x, weight, bias), with the batch norm (in training) and the relu after it."""
    node, config = site.node, site.config
    x, weight, *rest = node.args
    if x not in site.activations or weight not in site.weights:
        return None
    if not is_float(weight, site.types):
        return None
    inputs: dict[Node, Any] = {x: get_input_act_qspec(config), weight: weight_spec}  # type: ignore[dict-item]
    bias = rest[0] if rest else None
    if isinstance(bias, Node) and get_bias_qspec(config) is not None:
        inputs[bias] = get_bias_qspec(config)
    covered = [node]
    if config.is_qat and (norm := site.only_user(node, _BATCH_NORM)):
        covered.append(norm)
    if relu := site.only_user(covered[-1], _CLAMPS):
        covered.append(relu)
    for each in covered:
        _annotate(each)
    _annotate(node, inputs)
    covered[-1].meta[KEY].output_qspec = get_output_act_qspec(config)
    return covered


@annotates(
    "linear", aten.linear.default, dynamic=True, dynamic_types=(torch.float32, torch.float16)
)
def _annotate_linear(site: Site) -> list[Node] | None:
    return _annotate_product(site, get_weight_qspec(site.config))


@annotates("bmm", aten.bmm.default, aten.matmul.default, static=False, dynamic=True)
def _annotate_bmm(site: Site) -> list[Node] | None:
    """A batched product with constant matrices. The scales of their columns are shared by all
    matrices."""
    spec = get_weight_qspec(site.config)
    if spec is None or spec.qscheme != torch.per_channel_symmetric:
        return None
    x, matrices = (node.meta["val"].shape for node in site.node.all_input_nodes[:2])
    if len(x) != 3 or len(matrices) != 3 or x[0] != matrices[0]:
        return None
    return _annotate_product(site, replace(spec, ch_axis=2))


@annotates(
    "conv",
    aten.conv1d.default,
    aten.conv1d.padding,
    aten.conv2d.default,
    aten.conv2d.padding,
    dynamic=True,
)
def _annotate_conv(site: Site) -> list[Node] | None:
    weight = site.node.args[1].meta["val"]  # type: ignore[union-attr]
    if _is_dynamic(site.config) and weight.shape[1] == 1:
        return None  # depthwise
    return _annotate_image_product(site, get_weight_qspec(site.config))


def _is_dynamic(config: QuantizationConfig) -> bool:
    activation = get_input_act_qspec(config)
    return activation is not None and activation.is_dynamic


def _annotate_image_product(site: Site, spec: Any) -> list[Node] | None:
    """Dynamically only what a payload computes in integers: over two dims, a scale per channel."""
    per_channel = spec is not None and spec.qscheme == torch.per_channel_symmetric
    weight = site.node.args[1].meta["val"]  # type: ignore[union-attr]
    if _is_dynamic(site.config) and (weight.dim() != 4 or not per_channel):
        return None
    return _annotate_product(site, spec)


@annotates(
    "conv_transpose", aten.conv_transpose1d.default, aten.conv_transpose2d.input, dynamic=True
)
def _annotate_conv_transpose(site: Site) -> list[Node] | None:
    """The weight is [in, out / groups, ...]; across groups the channels of dim 1 are not the
    output's, so that a grouped one has one scale."""
    spec = get_weight_qspec(site.config)
    if spec is not None and spec.qscheme == torch.per_channel_symmetric:
        groups = site.node.args[6] if len(site.node.args) > 6 else 1
        is_qat = site.config.is_qat
        spec = _of_output_channels(spec, is_qat) if groups == 1 else _per_tensor(spec, is_qat)
    return _annotate_image_product(site, spec)


def _of_output_channels(spec: QuantizationSpec, is_qat: bool) -> QuantizationSpec:
    spec = replace(spec, ch_axis=1)
    if not is_qat:
        return spec
    # torchao passes ch_axis to observers only, and not to fake quantization around them.
    fake = FakeQuantize.with_args(observer=MovingAveragePerChannelMinMaxObserver, ch_axis=1)
    return replace(spec, observer_or_fake_quant_ctr=fake)


def _per_tensor(spec: QuantizationSpec, is_qat: bool) -> QuantizationSpec:
    observer: Any = MinMaxObserver
    if is_qat:
        observer = FakeQuantize.with_args(observer=MovingAverageMinMaxObserver)
    return replace(
        spec,
        qscheme=torch.per_tensor_symmetric,
        ch_axis=None,
        observer_or_fake_quant_ctr=observer,
    )


def _annotate_sum_or_product(site: Site) -> list[Node] | None:
    """Two activations, or one and a constant, and the relu after them."""
    operands = site.node.args[:2]
    if site.node.kwargs.get("alpha", 1) != 1 or not any(n in site.activations for n in operands):
        return None
    inputs: dict[Node, Any] = {}
    for operand in operands:
        if not isinstance(operand, Node):
            return None
        if operand not in site.activations and not _is_constant_number(operand):
            return None
        inputs[operand] = get_input_act_qspec(site.config)
    covered = [site.node]
    if relu := site.only_user(site.node, _CLAMPS):
        covered.append(relu)
    for each in covered:
        _annotate(each)
    _annotate(site.node, inputs)
    covered[-1].meta[KEY].output_qspec = get_output_act_qspec(site.config)
    return covered


def _is_constant_number(node: Node) -> bool:
    value = constant_of(node)
    return value is not None and is_float(node) and is_number(node) and is_moderate(value)


@annotates("add", aten.add.Tensor, aten.add_.Tensor)
def _annotate_add(site: Site) -> list[Node] | None:
    return _annotate_sum_or_product(site)


@annotates("mul", aten.mul.Tensor, aten.mul_.Tensor)
def _annotate_mul(site: Site) -> list[Node] | None:
    return _annotate_sum_or_product(site)


@annotates("cat", aten.cat.default)
def _annotate_cat(site: Site) -> list[Node] | None:
    """All parts and the result share the quantization parameters of the first part."""
    parts: Any = site.node.args[0]
    if not all(p in site.activations for p in parts):
        return None
    first = parts[0]
    shared = SharedQuantizationSpec((first, site.node))
    inputs = {p: shared for p in parts} | {first: get_input_act_qspec(site.config)}
    _annotate(site.node, inputs, shared)
    return [site.node]


# Operators whose result has only values of the first operand, and so keeps its quantization
# parameters.
PASSING_ON = _passing_on(RULES.values()) | {
    aten.expand.default,
    aten.pixel_shuffle.default,
    aten.upsample_nearest2d.vec,
}
_PADS = {aten.constant_pad_nd.default: 2, aten.pad.default: 3}  # place of the value


def propagate_annotation(model: GraphModule, filter_fn: Filter = None) -> None:
    """Let operators that only pass values on share the quantization parameters of their operand, if
    it is quantized."""
    for node in model.graph.nodes:
        if node.target not in PASSING_ON or is_annotated(node) or not is_float(node):
            continue
        source = node.args[0]
        if (filter_fn is not None and not filter_fn(node)) or not is_float(source):
            continue
        if not is_annotated(source) or source.meta[KEY].output_qspec is None:
            continue
        if not _stays_in_range(node):
            continue
        shared = SharedQuantizationSpec(source)
        _annotate(node, {source: shared}, shared)


def _stays_in_range(node: Node) -> bool:
    """Whether a padding adds values of the operand, or zeros, which all quantized ranges have."""
    place = _PADS.get(node.target)
    return place is None or len(node.args) <= place or not node.args[place]


def change_quantization_config(
    original_qspec: QuantizationSpec, dtype: torch.dtype | None = None, **changes: Any
) -> QuantizationSpec:
    """`original_qspec` with the fields that are given and not None."""
    given = {k: v for k, v in {"dtype": dtype, **changes}.items() if v is not None}
    return replace(original_qspec, **given)
