"""A partitioner made of one rule per operator."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any

from torch.export import ExportedProgram
from torch.fx import Node
from torch.fx.passes.infra.partitioner import Partition

from executorch.exir.backend.canonical_partitioners.acyclic_groups import DSJ
from executorch.exir.backend.canonical_partitioners.pattern_op_partitioner import (
    generate_grouped_partitions_from_list_of_nodes,
)
from executorch.exir.backend.partitioner import DelegationSpec, Partitioner, PartitionResult
from executorch.exir.backend.subgraphs import TAG
from executorch.exir.backend.tags import is_constant_data, set_refusal
from executorch.exir.torch_internals import OpOverload

__all__ = [
    "DSJ",
    "ConfigerationBasedPartitioner",
    "PartitionerConfig",
    "format_target_name",
    "is_constant_data",
]

logger = logging.getLogger(__name__)


def format_target_name(target_name: str) -> str:
    """`aten::add.Tensor`, `aten.add.Tensor` and `aten.add.default` by the names that rules have:
    `add.Tensor`, `add.default`."""
    name = target_name.replace("::", ".")
    return name.partition(".")[2] if name.startswith("aten.") else name


class PartitionerConfig(ABC):
    """The rule of one operator, whose name is `target_name`."""

    target_name: Any = None  # str, such as "add.Tensor"

    def __init__(self) -> None:
        return

    @abstractmethod
    def check_constraints(self, node: Node, ep: ExportedProgram) -> bool:
        """Whether the backend takes this call. A reason for no: `set_refusal(node, reason)`."""

    @abstractmethod
    def get_original_aten(self) -> OpOverload | None:
        """The ATen operator that must stay whole for this rule, if it is one that decomposes."""

    @abstractmethod
    def get_partition(self, node: Node, ep: ExportedProgram) -> list[Node]:
        """The nodes that go with `node`, it among them: constants, casts, activations ..."""


class ConfigerationBasedPartitioner(Partitioner):
    """Delegates what the rules take; every rule's nodes stay together, connected ones are joined.
    Constants among a rule's nodes become the delegate's own."""

    def __init__(
        self, delegation_spec: DelegationSpec, partitioner_configs: Iterable[PartitionerConfig]
    ) -> None:
        super().__init__()
        self.delegation_spec = delegation_spec
        self.target_partitioner_configs: dict[str, PartitionerConfig] = {}
        for config in partitioner_configs:
            name = str(config.target_name)
            if name in self.target_partitioner_configs:
                other = self.target_partitioner_configs[name]
                raise RuntimeError(
                    f"two rules for {name}: {type(other).__name__}, {type(config).__name__}"
                )
            self.target_partitioner_configs[name] = config

    def ops_to_not_decompose(
        self, ep: ExportedProgram
    ) -> tuple[list[OpOverload], Callable[[Node], bool] | None]:
        def is_wanted(node: Node) -> bool:
            config = self._config_of(node)
            return config is not None and config.check_constraints(node, ep)

        configs = self.target_partitioner_configs.values()
        kept = [op for config in configs if (op := config.get_original_aten()) is not None]
        return kept, is_wanted

    def _config_of(self, node: Node) -> PartitionerConfig | None:
        if node.op != "call_function":
            return None
        name = format_target_name(getattr(node.target, "__name__", str(node.target)))
        return self.target_partitioner_configs.get(name)

    def get_matched_nodes_from_configs(self, ep: ExportedProgram) -> list[list[Node]]:
        """For every call that a rule takes, the nodes that go together."""
        matched = []
        for node in ep.graph_module.graph.nodes:
            config = self._config_of(node)
            if config is None:
                if node.op == "call_function":
                    set_refusal(node, "no rule for the operator")
            elif config.check_constraints(node, ep):
                matched.append(config.get_partition(node, ep))
            else:
                set_refusal(node, f"{type(config).__name__}: a constraint is not met")
        return matched

    def generate_partitions(self, ep: ExportedProgram) -> list[Any]:
        self._matched = self.get_matched_nodes_from_configs(ep)
        joined = DSJ()
        for nodes in self._matched:
            calls = [n for n in nodes if n.op == "call_function"]
            for node in calls[1:]:
                joined.union(calls[0], node)
            for node in calls[:1]:
                joined.find(node)
        groups = [list(group) for group in joined.gen_groups()]
        return generate_grouped_partitions_from_list_of_nodes(ep.graph_module, groups)

    def partition(self, exported_program: ExportedProgram) -> PartitionResult:
        partitions: list[Partition] = self.generate_partitions(exported_program)
        tags = {}
        for partition in partitions:
            tag = f"tag{partition.id}"
            tags[tag] = self.delegation_spec
            for node in partition.nodes:
                node.meta[TAG] = tag
        for nodes in self._matched:
            taken = next((n.meta[TAG] for n in nodes if TAG in n.meta), None)
            for node in nodes:
                if taken is not None and is_constant_data(exported_program, node):
                    node.meta.setdefault(TAG, taken)
        logger.debug("%d partitions", len(partitions))
        return PartitionResult(exported_program, tags)
