"""What a partitioner can be restricted to."""

from __future__ import annotations

from enum import Enum
from typing import Any

from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.fx import Node

from executorch.exir.backend.canonical_partitioners.config_partitioner import PartitionerConfig


class ConfigPrecisionType(Enum):
    """Kinds of computation."""

    FP32 = 1
    STATIC_QUANT = 2
    DYNAMIC_QUANT = 3


class XNNPartitionerConfig(PartitionerConfig):
    """One operator: a subclass gives its `target_name`, such as "linear.default". How
    it is lowered is in `backends/xnnpack/operators/`."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__()
        self.enabled_precision_types = self.supported_precision_types()

    def supported_precision_types(self) -> list[ConfigPrecisionType]:
        return list(ConfigPrecisionType)

    def set_enabled_precision_types(
        self, precision_types: list[ConfigPrecisionType] | None
    ) -> None:
        if precision_types:
            self.enabled_precision_types = precision_types

    def get_original_aten(self) -> OpOverload | None:
        return None

    def check_constraints(self, node: Node, ep: ExportedProgram) -> bool:
        return True

    def get_partition(self, node: Node, ep: ExportedProgram) -> list[Node]:
        return [node]
