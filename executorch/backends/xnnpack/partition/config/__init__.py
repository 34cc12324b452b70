"""One class for each operator that a partitioner can be restricted to."""

from __future__ import annotations

from executorch.backends.xnnpack.partition.config import (
    gemm_configs,
    generic_node_configs,
    node_configs,
    quant_affine_configs,
)
from executorch.backends.xnnpack.partition.config.xnnpack_config import XNNPartitionerConfig

# The operators that are delegated if a partitioner gets no configs. ELU is delegated then, too, but
# kept whole only where its class is given.
ALL_PARTITIONER_CONFIGS: list[type[XNNPartitionerConfig]] = [
    config
    for module in (gemm_configs, generic_node_configs, node_configs, quant_affine_configs)
    for config in vars(module).values()
    if isinstance(config, type)
    and issubclass(config, XNNPartitionerConfig)
    and config.target_name
    and config.__name__ != "EluConfig"
]
