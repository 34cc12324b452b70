"""The steps from a language model in PyTorch to a program, one after the other.

LLMEdgeManager(model, "llama", 128, True, inputs, metadata={"get_max_seq_len": 128})
    .to_dtype(DType.fp32).source_transform([quantize]).export()
    .to_edge_transform_and_lower([XnnpackPartitioner()]).to_executorch().save_to_pte("llama.pte")
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.export import ExportedProgram

from executorch._text_enum import StrEnum
from executorch.exir import (
    EdgeCompileConfig,
    EdgeProgramManager,
    ExecutorchBackendConfig,
    ExecutorchProgramManager,
    to_edge,
    to_edge_transform_and_lower,
)
from executorch.exir.passes.memory_planning_pass import MemoryPlanningPass

log = logging.getLogger(__name__)


class DType(StrEnum):
    fp32 = "fp32"
    fp16 = "fp16"
    bf16 = "bf16"

    def to_torch_dtype(self) -> torch.dtype:
        return {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}[self.value]

    @staticmethod
    def from_torch_dtype(dtype: torch.dtype) -> DType:
        for known in DType:
            if known.to_torch_dtype() is dtype:
                return known
        raise ValueError(f"expected torch.float32, torch.float16 or torch.bfloat16, found {dtype}")


class LLMEdgeManager:
    """Every step changes the manager and returns it.

    example_inputs   to trace with; `dynamic_shapes` as torch.export takes them
    metadata         constants that the program returns from methods of these names
    """

    def __init__(
        self,
        model: nn.Module,
        modelname: str,
        max_seq_len: int,
        use_kv_cache: bool,
        example_inputs: tuple[Any, ...],
        dtype: DType | None = None,
        example_kwarg_inputs: dict[str, Any] | None = None,
        enable_dynamic_shape: bool = False,
        generate_full_logits: bool = False,
        calibration_tasks: list[str] | None = None,
        calibration_limit: int | None = None,
        calibration_seq_length: int | None = None,
        calibration_data: str | None = None,
        tokenizer_path: str | None = None,
        verbose: bool = False,
        metadata: dict[str, Any] | None = None,
        dynamic_shapes: Any = None,
        save_exported_program: bool = False,
        generate_etrecord: bool = False,
        skip_dim_order: bool = True,
    ) -> None:
        self.model = model
        self.modelname = modelname
        self.max_seq_len = max_seq_len
        self.use_kv_cache = use_kv_cache
        self.example_inputs = example_inputs
        self.example_kwarg_inputs = example_kwarg_inputs
        self.enable_dynamic_shape = enable_dynamic_shape
        self.generate_full_logits = generate_full_logits
        self.dtype = dtype
        self.tokenizer_path = tokenizer_path
        self.verbose = verbose
        self.metadata = metadata
        self.dynamic_shapes = dynamic_shapes
        self.generate_etrecord = generate_etrecord
        self.output_dir = "."
        self.exported_program: ExportedProgram | None = None
        self.pre_autograd_graph_module: nn.Module | None = None
        self.edge_manager: EdgeProgramManager | None = None
        self.export_program: ExecutorchProgramManager | None = None
        self._quantized_graph: Any = None
        self._saved_pte_filename: str | None = None
        self._save_exported_program = save_exported_program

    def set_output_dir(self, output_dir: str) -> LLMEdgeManager:
        self.output_dir = output_dir
        return self

    def to_dtype(self, dtype_override: DType | None) -> LLMEdgeManager:
        if dtype_override is not None:
            self.dtype = dtype_override
            self.model = self.model.to(dtype_override.to_torch_dtype())
        return self

    def source_transform(
        self, transforms: list[Callable[[nn.Module], nn.Module]]
    ) -> LLMEdgeManager:
        for transform in transforms:
            self.model = transform(self.model)
        return self

    def _export(self, module: Any) -> ExportedProgram:
        with torch.no_grad():
            return torch.export.export(
                module,
                self.example_inputs,
                self.example_kwarg_inputs,
                dynamic_shapes=self.dynamic_shapes,
                strict=False,
            )

    def export(self) -> LLMEdgeManager:
        self.exported_program = self._export(self.model.eval())
        self.pre_autograd_graph_module = self.exported_program.module()
        if self._save_exported_program:
            self.save_exported_program(f"{self.modelname}.pt2")
        return self

    def save_exported_program(self, name: str) -> None:
        path = Path(self.output_dir) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        torch.export.save(self._exported(), path)

    def _exported(self) -> ExportedProgram:
        if self.exported_program is None:
            self.export()
        assert self.exported_program is not None
        return self.exported_program

    def run_canonical_optimizations(self) -> LLMEdgeManager:
        """All that every program profits from is done by to_executorch."""
        return self

    def pt2e_calibrate(
        self,
        prepared_module: Any,
        calibration_tasks: Any = None,
        calibration_limit: Any = None,
        calibration_seq_length: Any = None,
        calibration_data: Any = None,
        tokenizer_path: Any = None,
    ) -> None:
        """Ranges of values that depend on data: those of the example inputs."""
        with torch.no_grad():
            prepared_module(*self.example_inputs)

    def pt2e_quantize(self, quantizers: list[Any] | None) -> LLMEdgeManager:
        """Quantizes the exported graph; without quantizers it stays as it is."""
        if not quantizers:
            return self
        from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
        from torchao.quantization.pt2e.quantizer import ComposableQuantizer

        quantizer = quantizers[0] if len(quantizers) == 1 else ComposableQuantizer(quantizers)
        prepared = prepare_pt2e(self._exported().module(), quantizer)
        self.pt2e_calibrate(prepared)
        self.pre_autograd_graph_module = convert_pt2e(prepared)
        self.exported_program = self._export(self.pre_autograd_graph_module)
        return self

    def _edge_config(self) -> EdgeCompileConfig:
        return EdgeCompileConfig(_check_ir_validity=False)

    def export_to_edge(self) -> LLMEdgeManager:
        self.edge_manager = to_edge(
            self._exported(),
            constant_methods=self.metadata,
            compile_config=self._edge_config(),
            generate_etrecord=self.generate_etrecord,
        )
        return self

    def to_backend(self, partitioners: list[Any] | None) -> LLMEdgeManager:
        if self.edge_manager is None:
            self.export_to_edge()
        for partitioner in partitioners or []:
            assert self.edge_manager is not None
            self.edge_manager = self.edge_manager.to_backend(partitioner)
        return self

    def to_edge_transform_and_lower(
        self, partitioners: list[Any] | None, transform_passes: list[Any] | None = None
    ) -> LLMEdgeManager:
        self.edge_manager = to_edge_transform_and_lower(
            self._exported(),
            transform_passes=transform_passes,
            partitioner=partitioners,
            constant_methods=self.metadata,
            compile_config=self._edge_config(),
            generate_etrecord=self.generate_etrecord,
        )
        return self

    def to_executorch(
        self,
        passes: list[Any] | None = None,
        external_constants_tag: Callable[[torch.fx.Node], str | None] | None = None,
        share_mutable_buffers: bool = False,
    ) -> LLMEdgeManager:
        if self.edge_manager is None:
            self.export_to_edge()
        assert self.edge_manager is not None
        options: dict[str, Any] = {"passes": passes} if passes else {}
        if external_constants_tag is not None:
            options["external_constants"] = external_constants_tag
        if share_mutable_buffers:
            options["memory_planning_pass"] = MemoryPlanningPass(share_mutable_buffers=True)
        self.export_program = self.edge_manager.to_executorch(ExecutorchBackendConfig(**options))
        return self

    def save_to_pte(self, output_name: str) -> None:
        """Into the output folder, with .pte at the end; weights in files of their own beside it."""
        if self.export_program is None:
            raise RuntimeError("to_executorch() comes before save_to_pte()")
        path = Path(self.output_dir) / output_name
        if path.suffix != ".pte":
            path = path.with_name(path.name + ".pte")
        path.parent.mkdir(parents=True, exist_ok=True)
        self.export_program.save(str(path))
        self.export_program.write_tensor_data_to_file(str(path.parent))
        if self.generate_etrecord:
            self.export_program.get_etrecord().save(str(path.with_name("etrecord.bin")))
        self._saved_pte_filename = str(path)
        log.info("saved %s, %.1f MB", path, path.stat().st_size / 1e6)

    def get_saved_pte_filename(self) -> str | None:
        return self._saved_pte_filename
