"""What a partitioner can be restricted to."""

from __future__ import annotations

from enum import Enum
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from executorch.backends.xnnpack.lowering import is_channels_last, tensor_of
from executorch.backends.xnnpack.operators.images import BATCH_NORM
from executorch.backends.xnnpack.rules import RULES
from executorch.backends.xnnpack.serialization.payload import MAX_RANK
from executorch.exir.backend.canonical_partitioners.config_partitioner import (
    PartitionerConfig,
    format_target_name,
)
from executorch.exir.backend.tags import is_constant_data, set_refusal
from executorch.exir.graph.operator_kind import makes_contiguous
from executorch.exir.sym_util import largest_seen
from executorch.exir.torch_internals import OpOverload

Types = tuple[torch.dtype, ...]


class ConfigPrecisionType(Enum):
    """Kinds of computation."""

    FP32 = 1
    STATIC_QUANT = 2
    DYNAMIC_QUANT = 3


class XNNPartitionerConfig(PartitionerConfig):
    """One operator: a subclass gives its `target_name`, such as "linear.default". How it is lowered
    is in `backends/xnnpack/operators/`; what a subclass refuses in `check_constraints` stays with
    the program.

    kwargs  those of the partitioner; `enable_bf16` takes bfloat16 too
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__()
        self.types = float_types(bool(kwargs.get("enable_bf16")))
        self.enabled_precision_types = self.supported_precision_types()

    def supported_precision_types(self) -> list[ConfigPrecisionType]:
        return list(ConfigPrecisionType)

    def set_enabled_precision_types(
        self, precision_types: list[ConfigPrecisionType] | None
    ) -> None:
        """Enable those of the given precisions that are supported; without a list, all that are."""
        self.enabled_precision_types = [
            p
            for p in self.supported_precision_types()
            if not precision_types or p in precision_types
        ]

    def get_original_aten(self) -> OpOverload | None:
        return None

    def check_common_constraints(self, node: Node, ep: ExportedProgram) -> bool:
        """Whether the node calls this operator, and a payload can hold its operands and result."""
        if node.op != "call_function" or target_name(node) != self.target_name:
            return False
        for each in node.all_input_nodes:
            each.meta["is_constant"] = is_constant_data(ep, each)
        return _accepted(node, type_refusal(node, self.types))

    def check_constraints(self, node: Node, ep: ExportedProgram) -> bool:
        rule = RULES.get(node.target)
        common = rule is not None and self.check_common_constraints(node, ep)
        return common and _accepted(node, rule.unless(node))  # type: ignore[union-attr]

    def get_node_and_deps(self, node: Node, ep: ExportedProgram) -> list[Node]:
        """The call, the constants that it reads, and the calls that compute its operands from
        constants."""
        found = [node]
        for each in node.all_input_nodes:
            if _is_constant(each, ep):
                found += self.get_node_and_deps(each, ep)
        return list(dict.fromkeys(found))

    def get_partition(self, node: Node, ep: ExportedProgram) -> list[Node]:
        return self.get_node_and_deps(node, ep) if self.check_constraints(node, ep) else []


def _accepted(node: Node, reason: str | None) -> bool:
    if reason is not None:
        set_refusal(node, reason)
    return reason is None


def _is_constant(node: Node, ep: ExportedProgram) -> bool:
    if node.op == "placeholder":
        return is_constant_data(ep, node)
    inputs = node.all_input_nodes
    return bool(inputs) and all(_is_constant(n, ep) for n in inputs)


def float_types(with_bf16: bool) -> Types:
    return (torch.float32, torch.float16, *((torch.bfloat16,) if with_bf16 else ()))


def target_name(node: Node) -> str:
    """The `target_name` of the config class for a call's operator."""
    rule = RULES.get(node.target)
    if rule is not None:
        return rule.name
    return format_target_name(node.target.__name__)  # type: ignore[union-attr]


def type_refusal(node: Node, types: Types) -> str | None:
    """Why no payload can hold a call's operands or result: types, rank, extents or dim order. None
    if it can."""
    dtype = tensor_of(node).dtype
    if dtype not in types:
        return f"XnnpackBackend computes in {', '.join(map(str, types))}, not in {dtype}"
    # A batch norm's parameters are folded into other constants, so their types do not matter.
    inputs = node.all_input_nodes[:1] if node.target is BATCH_NORM else node.all_input_nodes
    for each in (node, *inputs):
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
        if any(type(extent) is not int and largest_seen(extent) is None for extent in value.shape):
            return f"{each} has an extent without an upper bound"
        if each.meta.get("is_constant") or _is_in_order(value):
            continue
        if makes_contiguous(each) or not is_channels_last(value):
            return f"{each} is neither contiguous nor channels-last"
    return None


def _is_in_order(value: torch.Tensor) -> bool:
    """Whether the dim order is the identity. Looks at strides first, which are faster to get and
    mostly suffice."""
    expected = 1
    for size, stride in zip(reversed(value.shape), reversed(value.stride()), strict=True):
        if type(size) is not int or size == 0 or stride != expected:
            return value.dim_order() == tuple(range(value.dim()))
        expected *= size
    return True
