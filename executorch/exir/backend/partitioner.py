"""What a partitioner gets and gives."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from torch.export import ExportedProgram
from torch.fx import Node

from executorch.exir.backend.compile_spec_schema import CompileSpec
from executorch.exir.torch_internals import OpOverload


class DelegationSpec(NamedTuple):
    """The backend that takes a sub-graph, and the compile specs that it gets."""

    backend_id: str
    compile_specs: list[CompileSpec]


@dataclass
class PartitionResult:
    """The given program, its nodes tagged with `meta["delegation_tag"]`, and each tag's backend.

    The nodes of one tag become one delegate call. Constants that are tagged become the delegate's
    own. User inputs and the output are never tagged.
    """

    tagged_exported_program: ExportedProgram
    partition_tags: dict[str, DelegationSpec]


class Partitioner(ABC):
    """Chooses what is delegated. `partition` may tag nodes, and must not change the graph."""

    def __init__(
        self, spec: Mapping[str | int | float | bool, object] = MappingProxyType({})
    ) -> None:
        self._spec = spec

    def __call__(self, exported_program: ExportedProgram) -> PartitionResult:
        return self.partition(exported_program)

    @property
    def spec(self) -> Mapping[str | int | float | bool, object]:
        return self._spec

    @abstractmethod
    def partition(self, exported_program: ExportedProgram) -> PartitionResult:
        """Tag the nodes of an edge program. Sub-graphs of control flow are given one by one, as
        programs whose inputs are all user inputs."""

    def ops_to_not_decompose(
        self, ep: ExportedProgram
    ) -> tuple[list[OpOverload], Callable[[Node], bool] | None]:
        """Operators that `to_edge_transform_and_lower` keeps whole for this partitioner, and a
        filter for the calls that it wants (None: all)."""
        return [], None

    def constant_operands(self, call: Node) -> Iterable[Node]:
        """The operands of a call of the edge program that must be constants for it to be taken.
        What they are computed from constants is computed before `partition`."""
        return ()

    def transform_for_pre_decomposition(self, exported_program: ExportedProgram) -> ExportedProgram:
        """Called on the ATen program first; returns the program to go on with."""
        return exported_program
