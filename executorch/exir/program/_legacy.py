"""The program classes of the first releases, on top of the managers of today."""

from __future__ import annotations

from functools import cached_property
from io import BufferedIOBase
from typing import TYPE_CHECKING, Any

from torch.export import ExportedProgram

from executorch.exir.program._program import EdgeProgramManager, to_edge

if TYPE_CHECKING:
    from executorch.exir.capture._config import EdgeCompileConfig, ExecutorchBackendConfig
    from executorch.exir.program._executorch import ExecutorchProgramManager


class ExirExportedProgram:
    """One exported program on its way to the edge dialect and on."""

    def __init__(
        self,
        exported_program: ExportedProgram,
        after_to_edge_passes: bool,
        compile_config: EdgeCompileConfig | None = None,
    ) -> None:
        self.exported_program = exported_program
        self.after_to_edge_passes = after_to_edge_passes
        self._config = compile_config

    @property
    def graph_module(self) -> Any:
        return self.exported_program.graph_module

    def to_edge(self, config: EdgeCompileConfig | None = None) -> ExirExportedProgram:
        return _to_edge(self, config)

    def transform(self, *passes: Any) -> ExirExportedProgram:
        """Run passes in order; edge programs are verified after them."""
        if self.after_to_edge_passes:
            changed = self._manager().transform(passes).exported_program()
        else:
            from executorch.exir.pass_manager import run_user_passes
            from executorch.exir.torch_internals import Verifier

            changed = run_user_passes(self.exported_program, passes, Verifier)
        return ExirExportedProgram(changed, self.after_to_edge_passes, self._config)

    def to_executorch(self, config: ExecutorchBackendConfig | None = None) -> ExecutorchProgram:
        if not self.after_to_edge_passes:
            raise RuntimeError("to_executorch: call to_edge() first")
        return ExecutorchProgram._of(self._manager().to_executorch(config))

    def dump(self) -> None:
        print(self.exported_program.graph)

    def __call__(self, *args: Any) -> Any:
        return self.exported_program.module()(*args)

    def _manager(self) -> EdgeProgramManager:
        return EdgeProgramManager(self.exported_program, compile_config=self._config)


class ExecutorchProgram:
    """One executable program; see ExecutorchProgramManager."""

    def __init__(
        self,
        exir_exported_program: ExirExportedProgram,
        emit_stacktrace: bool,
        extract_delegate_segments: bool,
        segment_alignment: int,
        constant_tensor_alignment: int | None = None,
        delegate_alignment: int | None = None,
    ) -> None:
        from executorch.exir.capture._config import ExecutorchBackendConfig

        config = ExecutorchBackendConfig(
            emit_stacktrace=emit_stacktrace,
            extract_delegate_segments=extract_delegate_segments,
            segment_alignment=segment_alignment,
            constant_tensor_alignment=constant_tensor_alignment,
            delegate_alignment=delegate_alignment,
        )
        self._manager: Any = exir_exported_program._manager().to_executorch(config)

    @classmethod
    def _of(cls, manager: ExecutorchProgramManager) -> ExecutorchProgram:
        new = cls.__new__(cls)
        new._manager = manager
        return new

    @property
    def buffer(self) -> bytes:
        return self._manager.buffer

    @property
    def program(self) -> Any:
        return self._manager.executorch_program

    @property
    def debug_handle_map(self) -> Any:
        return self._manager.debug_handle_map

    @property
    def delegate_map(self) -> Any:
        return self._manager.delegate_map

    @property
    def instruction_id_to_num_outs_map(self) -> Any:
        return self._manager.instruction_id_to_num_outs_map

    @property
    def graph_module(self) -> Any:
        return self.dump_graph_module()

    @cached_property
    def data_files(self) -> dict[str, bytes]:
        return {name: bytes(data) for name, data in self._manager._tensor_data.items()}

    def dump_graph_module(self) -> Any:
        return self.dump_exported_program().graph_module

    def dump_exported_program(self) -> ExportedProgram:
        return self._manager.exported_program()

    def write_to_file(self, open_file: BufferedIOBase) -> None:
        self._manager.write_to_file(open_file)

    def write_tensor_data_to_file(self, outdir: str) -> None:
        self._manager.write_tensor_data_to_file(outdir)


def _to_edge(
    ep: ExirExportedProgram, config: EdgeCompileConfig | None = None
) -> ExirExportedProgram:
    manager = to_edge(ep.exported_program, compile_config=config)
    return ExirExportedProgram(manager.exported_program(), True, config)


class MultiMethodExirExportedProgram:
    """Several exported programs under their method names, and constants to report."""

    def __init__(
        self, progs: dict[str, ExirExportedProgram], getters: dict[str, Any] | None = None
    ) -> None:
        self._programs = progs
        self._prim_getters = getters

    def find_method(self, name: str) -> ExirExportedProgram | None:
        return self._programs.get(name)

    def methods(self) -> dict[str, ExirExportedProgram]:
        return self._programs

    def prim_getters(self) -> dict[str, Any] | None:
        return self._prim_getters

    def to_edge(self, config: EdgeCompileConfig | None = None) -> MultiMethodExirExportedProgram:
        edge = {name: _to_edge(program, config) for name, program in self._programs.items()}
        return MultiMethodExirExportedProgram(edge, self._prim_getters)

    def to_executorch(
        self, config: ExecutorchBackendConfig | None = None
    ) -> MultiMethodExecutorchProgram:
        return multi_method_program_to_executorch(self, config)


class MultiMethodExecutorchProgram(ExecutorchProgram):
    """One executable program with several methods."""

    def dump_exported_program(self) -> ExportedProgram:
        return self._manager.exported_program(sorted(self._manager.methods)[0])


def multi_method_program_to_executorch(
    edge_dialect_program: MultiMethodExirExportedProgram,
    config: ExecutorchBackendConfig | None = None,
) -> MultiMethodExecutorchProgram:
    methods = {n: p.exported_program for n, p in edge_dialect_program.methods().items()}
    manager = EdgeProgramManager(methods, edge_dialect_program.prim_getters())
    program = MultiMethodExecutorchProgram._of(manager.to_executorch(config))
    assert isinstance(program, MultiMethodExecutorchProgram)
    return program
