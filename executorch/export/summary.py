"""Facts of a program: what backends run, the memory it needs, the speed that bandwidth allows."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind

from executorch.exir.backend.utils import get_delegation_info
from executorch.export.measure import megabytes

if TYPE_CHECKING:
    from executorch.export.export import ExportSession


@dataclass(frozen=True)
class Summary:
    """Of the method forward.

    memory_bytes      planned for values, caches among them; weights are used in the file
    read_bytes        weights that every run reads: all but tables of embeddings
    bandwidth         bytes a second that this machine reads, as just measured
    tokens_per_second of a language model whose step reads these weights once, at most; None for
                      other models
    """

    delegates: int
    delegated_calls: int
    other_calls: int
    memory_bytes: int
    read_bytes: int
    bandwidth: float
    tokens_per_second: float | None

    def rows(self) -> list[tuple[str, str, str]]:
        """name, program, what it is beside"""
        calls = f"{self.delegated_calls} calls in {self.delegates} delegates"
        rows = [
            ("delegation", calls, f"{self.other_calls} calls outside"),
            ("memory", megabytes(self.memory_bytes), "beside the weights in the file"),
        ]
        if self.tokens_per_second is not None:
            reads = f"{megabytes(self.read_bytes)} at {self.bandwidth / 1e9:.1f} GB/s"
            rows.append(("tokens/s, at most", f"{self.tokens_per_second:.1f}", reads))
        return rows


def summarize(session: ExportSession, is_language_model: bool) -> Summary:
    info = get_delegation_info(session.get_edge_program_manager().exported_program().graph_module)
    (plan,) = [p for p in session.get_executorch_program().execution_plan if p.name == "forward"]
    size = len(session.get_pte_buffer())
    read = max(size - _table_bytes(session.get_exported_program()), 1)
    bandwidth = read_bandwidth()
    return Summary(
        info.num_delegated_subgraphs,
        info.num_delegated_nodes,
        info.num_non_delegated_nodes,
        sum(plan.non_const_buffer_sizes),
        read,
        bandwidth,
        bandwidth / read if is_language_model else None,
    )


def _table_bytes(program: ExportedProgram) -> int:
    """Bytes of the weights that are only looked up."""
    tables = {
        s.arg.name: program.state_dict[s.target]  # type: ignore[union-attr, index]
        for s in program.graph_signature.input_specs
        if s.kind is InputKind.PARAMETER and s.target in program.state_dict
    }
    found = 0
    for node in program.graph.find_nodes(op="placeholder"):
        users = [u.target for u in node.users]
        if node.name in tables and users and set(users) == {torch.ops.aten.embedding.default}:
            found += tables[node.name].nbytes
    return found


def read_bandwidth(n_bytes: int = 2**28, seconds: float = 0.5) -> float:
    """Bytes a second at which all of PyTorch's threads read memory: the best of some turns."""
    data = torch.ones(n_bytes // 4)
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end or best == float("inf"):
        began = time.perf_counter()
        data.sum()
        best = min(best, time.perf_counter() - began)
    return data.nbytes / best
