"""Two backends that see the sub-graphs of all methods at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Node
from torch.fx.passes.operator_support import OperatorSupportBase

from executorch.exir.backend.backend_details import BackendDetails, PreprocessResult
from executorch.exir.backend.canonical_partitioners.pattern_op_partitioner import (
    generate_partitions_from_list_of_nodes,
)
from executorch.exir.backend.compile_spec_schema import CompileSpec
from executorch.exir.backend.partitioner import DelegationSpec, Partitioner, PartitionResult
from executorch.exir.backend.subgraphs import TAG
from executorch.exir.backend.tags import tag_constant_data
from executorch.exir.dialects._ops import ops as exir_ops
from executorch.exir.passes.external_constants_pass import is_param_node

__all__ = [
    "AddSinOperatorSupport",
    "BackendWithPreprocessAllPartitioner",
    "FirstBackendWithPreprocessAll",
    "SecondBackendWithPreprocessAll",
    "SubCosOperatorSupport",
    "get_total_num_ops_in_ep",
    "is_param_node",
]

_aten = exir_ops.edge.aten
_FIRST = (_aten.add.Tensor, _aten.sin.default)
_SECOND = (_aten.sub.Tensor, _aten.cos.default)


def get_total_num_ops_in_ep(
    edge_programs: dict[str, list[ExportedProgram]], supported_ops: Any
) -> int:
    """The number of supported calls in all programs."""
    return sum(
        node.op == "call_function" and node.target in supported_ops
        for programs in edge_programs.values()
        for program in programs
        for node in program.graph.nodes
    )


class _PreprocessAll(BackendDetails):
    """Writes `<letter>#<calls of all methods>#<names of its own calls>#`."""

    letter = ""
    ops: tuple[Any, ...] = ()

    @staticmethod
    def preprocess(
        edge_program: ExportedProgram, compile_specs: list[CompileSpec]
    ) -> PreprocessResult:
        raise NotImplementedError("this backend preprocesses all methods at once")

    @classmethod
    def preprocess_multimethod(
        cls,
        edge_programs: dict[str, list[ExportedProgram]],
        compile_specs: dict[str, list[list[CompileSpec]]],
    ) -> dict[str, list[PreprocessResult]]:
        total = get_total_num_ops_in_ep(edge_programs, cls.ops)

        def text(program: ExportedProgram) -> str:
            calls = [n for n in program.graph.nodes if n.op == "call_function"]
            names = "".join(f"{n.target.__name__}:{n.meta['val'].numel()};" for n in calls)
            return f"{cls.letter}#{total}#{names}#"

        return {
            method: [PreprocessResult(text(program).encode()) for program in programs]
            for method, programs in edge_programs.items()
        }


class FirstBackendWithPreprocessAll(_PreprocessAll):
    letter, ops = "1", _FIRST


class SecondBackendWithPreprocessAll(_PreprocessAll):
    letter, ops = "2", _SECOND


class _Supports(OperatorSupportBase):
    ops: tuple[Any, ...] = ()

    def __init__(self, original_program: ExportedProgram) -> None:
        self.original_program = original_program

    def is_node_supported(self, submodules: Mapping[str, torch.nn.Module], node: Node) -> bool:
        return node.op == "call_function" and node.target in self.ops


class AddSinOperatorSupport(_Supports):
    ops = _FIRST


class SubCosOperatorSupport(_Supports):
    ops = _SECOND


class BackendWithPreprocessAllPartitioner(Partitioner):
    """Additions and sines for one backend, subtractions and cosines for the other."""

    def partition(self, exported_program: ExportedProgram) -> PartitionResult:
        tags: dict[str, DelegationSpec] = {}
        for backend, support in (
            (FirstBackendWithPreprocessAll, AddSinOperatorSupport(exported_program)),
            (SecondBackendWithPreprocessAll, SubCosOperatorSupport(exported_program)),
        ):
            for partition in generate_partitions_from_list_of_nodes(
                exported_program.graph_module, op_support=support
            ):
                tag = f"{backend.__name__}_{partition.id}"
                tags[tag] = DelegationSpec(backend.__name__, [CompileSpec("max_value", bytes([4]))])
                for node in partition.nodes:
                    node.meta[TAG] = tag
        tag_constant_data(exported_program)
        return PartitionResult(exported_program, tags)
