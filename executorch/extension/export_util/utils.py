"""From a module to a program in one call, as scripts of former releases spell it."""

from __future__ import annotations

import logging
import os
from typing import Any

import torch
from torch.export import export

from executorch.exir import EdgeCompileConfig, ExecutorchBackendConfig, to_edge
from executorch.exir.program import EdgeProgramManager, ExecutorchProgramManager

_log = logging.getLogger(__name__)


def _config() -> EdgeCompileConfig:
    return EdgeCompileConfig(_check_ir_validity=True, _skip_dim_order=True)


def export_to_edge(
    model: torch.nn.Module,
    example_inputs: tuple[Any, ...],
    *,
    example_kwarg_inputs: dict[str, Any] | None = None,
    dynamic_shapes: dict[str, Any] | tuple[Any, ...] | None = None,
    edge_constant_methods: dict[str, Any] | None = None,
    edge_compile_config: EdgeCompileConfig | None = None,
    strict: bool = True,
    verbose: bool = True,
    generate_etrecord: bool = False,
) -> EdgeProgramManager:
    """`torch.export.export`, then `to_edge`; without a configuration, copies keep memory formats
    instead of dim orders. `verbose` logs both graphs at the level INFO."""
    program = export(
        model, example_inputs, example_kwarg_inputs, dynamic_shapes=dynamic_shapes, strict=strict
    )
    if verbose:
        _log.info("Exported graph:\n%s", program.graph)
    edge = to_edge(
        program,
        edge_constant_methods,
        edge_compile_config or _config(),
        generate_etrecord=generate_etrecord,
    )
    if verbose:
        _log.info("Edge graph:\n%s", edge.exported_program().graph)
    return edge


def export_to_exec_prog(
    model: torch.nn.Module,
    example_inputs: tuple[Any, ...],
    *,
    example_kwarg_inputs: dict[str, Any] | None = None,
    dynamic_shapes: dict[str, Any] | tuple[Any, ...] | None = None,
    edge_constant_methods: dict[str, Any] | None = None,
    edge_compile_config: EdgeCompileConfig | None = None,
    backend_config: ExecutorchBackendConfig | None = None,
    strict: bool = True,
) -> ExecutorchProgramManager:
    """`export_to_edge`, then `to_executorch`."""
    edge = export_to_edge(
        model,
        example_inputs,
        example_kwarg_inputs=example_kwarg_inputs,
        dynamic_shapes=dynamic_shapes,
        edge_constant_methods=edge_constant_methods,
        edge_compile_config=edge_compile_config,
        strict=strict,
        verbose=False,
    )
    return edge.to_executorch(backend_config)


def save_pte_program(prog: ExecutorchProgramManager, model_name: str, output_dir: str = "") -> str:
    """Write `model_name`, with `.pte` at its end, and the program's .ptd files into a folder; the
    path of the program. OSError names what could not be written."""
    name = model_name if model_name.endswith(".pte") else f"{model_name}.pte"
    path = os.path.join(output_dir, name)
    prog.save(path)
    prog.write_tensor_data_to_file(output_dir or ".")
    _log.info("Saved exported program to %s", path)
    return path
