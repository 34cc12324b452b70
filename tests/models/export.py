"""Cases of the zoo to program files, through the public export API only."""

from __future__ import annotations

from pathlib import Path

import torch

from .zoo import Method


def export(methods: dict[str, Method], path: Path) -> None:
    """torch.export, to_edge, to_executorch, without any backend."""
    from executorch.exir import ExecutorchBackendConfig, to_edge
    from executorch.exir.passes.init_mutable_pass import InitializedMutableBufferPass

    kept = [name for method in methods.values() for name in method.initial_state]
    config = ExecutorchBackendConfig(passes=[InitializedMutableBufferPass(kept)] if kept else [])
    programs = {name: method.export() for name, method in methods.items()}
    with torch.no_grad():
        program = to_edge(programs).to_executorch(config)
    path.write_bytes(program.buffer)
