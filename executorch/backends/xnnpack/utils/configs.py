"""How programs for the XNNPACK backend are made."""

from __future__ import annotations

from typing import Any

from executorch.backends.xnnpack._passes.remove_noop_expand_copy_pass import (
    RemoveNoopExpandCopyPass,
)
from executorch.exir import EdgeCompileConfig, ExecutorchBackendConfig


def get_xnnpack_edge_compile_config(skip_dim_order: bool = False) -> EdgeCompileConfig:
    return EdgeCompileConfig(_check_ir_validity=False, _skip_dim_order=skip_dim_order)


def get_transform_passes(additional_passes: list[Any] | None = None) -> list[Any]:
    """Of edge programs before they are lowered; the given ones come last."""
    return [RemoveNoopExpandCopyPass(), *(additional_passes or [])]


def get_xnnpack_executorch_backend_config(
    additional_passes: list[Any] | None = None,
) -> ExecutorchBackendConfig:
    return ExecutorchBackendConfig(passes=list(additional_passes or []))
