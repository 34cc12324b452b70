"""Which tensors a planned program keeps in memory at each of its steps, as a Chrome trace."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch.fx import Node

from executorch.exir import memory
from executorch.exir.graph.source_line import source_line
from executorch.exir.program import ExecutorchProgramManager
from executorch.exir.tensor import TensorSpec
from executorch.exir.tensor_lifetimes import get_node_tensor_specs, storage_of


@dataclass
class Allocation:
    """One tensor's place: offset and size in bytes, in the arena `memory_id`."""

    name: str
    op_name: str
    memory_id: int
    memory_offset: int
    size_bytes: int
    fqn: str
    file_and_line_num: str


@dataclass
class MemoryTimeline:
    """The tensors that are alive at one step."""

    allocations: list[Allocation] = field(default_factory=list)


def create_tensor_allocation_info(graph: torch.fx.Graph) -> list[MemoryTimeline]:
    """For every node of a planned graph, what is alive while it runs. A result that is written
    where an operand lies is that operand's tensor."""
    nodes = list(graph.nodes)
    timeline = [MemoryTimeline() for _ in nodes]
    seen: set[TensorSpec] = set()
    for node in nodes:
        if node.op == "output" or node.target is memory.alloc:  # which its operator describes
            continue
        for spec in map(storage_of, get_node_tensor_specs(node)):
            if spec in seen or spec.const or spec.storage_base is not None:
                continue
            if spec.mem_id is None or spec.mem_offset is None:
                continue
            seen.add(spec)
            first, last = spec.lifetime
            allocation = Allocation(
                node.name,
                str(node.target),
                spec.mem_id,
                spec.mem_offset,
                spec.allocated_memory,
                _module_path(node),
                source_line(node) if node.op == "call_function" else "",
            )
            for step in timeline[first : last + 1]:
                step.allocations.append(allocation)
    return timeline


def _module_path(node: Node) -> str:
    """The innermost module that the node comes from."""
    stack = node.meta.get("nn_module_stack")
    return str(list(stack.values())[-1][0]) if stack else ""


def generate_memory_trace(
    executorch_program_manager: ExecutorchProgramManager,
    chrome_trace_filename: str,
    enable_memory_offsets: bool = False,
    method_name: str = "forward",
    ommit_metadata: bool = False,
) -> None:
    """Write a trace for chrome://tracing or Perfetto: a thread for each step of the method, on
    which the tensors that are alive lie side by side, one microsecond for each byte.

    enable_memory_offsets  let tensors stand at their offsets, with the gaps between them
    ommit_metadata         leave operators, modules and lines out
    TypeError for what is no ExecutorchProgramManager, ValueError for a method without a plan.
    """
    if not isinstance(executorch_program_manager, ExecutorchProgramManager):
        raise TypeError(
            "generate_memory_trace: expected an ExecutorchProgramManager, found "
            f"{type(executorch_program_manager).__name__}"
        )
    graph_module = executorch_program_manager.exported_program(method_name).graph_module
    if "non_const_buffer_sizes" not in graph_module.meta:
        raise ValueError(f"method {method_name!r} has no memory plan")
    events = []
    for step, now in enumerate(create_tensor_allocation_info(graph_module.graph)):
        end = 0
        for allocation in now.allocations:
            start = allocation.memory_offset if enable_memory_offsets else end
            end += allocation.size_bytes
            events.append(_event(step, start, allocation, ommit_metadata))
    Path(chrome_trace_filename).write_text(json.dumps({"traceEvents": events}))


def _event(step: int, start: int, allocation: Allocation, plain: bool) -> dict[str, Any]:
    described = {
        "op_name": allocation.op_name,
        "Memory ID": allocation.memory_id,
        "fqn": allocation.fqn,
        "source": allocation.file_and_line_num,
        "bytes": allocation.size_bytes,
    }
    return {
        "name": allocation.name,
        "cat": "memory_allocation",
        "ph": "X",
        "ts": start,
        "dur": allocation.size_bytes,
        "pid": allocation.memory_id,
        "tid": step,
        "args": {} if plain else described,
    }
