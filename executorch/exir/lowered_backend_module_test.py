from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils import _pytree as pytree

from executorch.exir import to_edge
from executorch.exir.backend.backend_api import to_backend
from executorch.exir.backend.canonical_partitioners.all_node_partitioner import AllNodePartitioner
from executorch.exir.backend.test.backend_with_compiler_demo import (
    BackendWithCompilerDemo,  # noqa: F401 (found by name)
)
from executorch.runtime import Runtime

A, B = torch.linspace(0, 1, 3), torch.linspace(1, 2, 4)


class Plain(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        return torch.sin(x)


class Lists(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        return [torch.sin(x[0]), x[1] + x[1]]


class Dicts(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        return {"a": torch.sin(x["p"]), "b": (x["q"] + x["q"],)}


class Single(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        return (torch.sin(x),)


CASES = {
    "plain": (Plain, (A,)),
    "lists": (Lists, ([A, B],)),
    "dicts": (Dicts, ({"p": A, "q": B},)),
    "single": (Single, (A,)),
}


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("case", CASES)
def test_a_lowered_module_is_called_inside_another_module(case: str, strict: bool) -> None:
    make, inputs = CASES[case]
    edge = to_edge(torch.export.export(make(), inputs)).exported_program()
    lowered = to_backend("BackendWithCompilerDemo", edge, [])

    class Outer(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lowered = lowered

        def forward(self, *args: Any) -> Any:
            return pytree.tree_map(lambda t: t * 2, self.lowered(*args))

    want = pytree.tree_map(lambda t: t * 2, make()(*inputs))
    program = to_edge(torch.export.export(Outer(), inputs, strict=strict))
    exported = program.exported_program()
    torch.testing.assert_close(exported.module()(*inputs), want)
    assert exported.graph_module.lowered_module_0 is lowered
    method = Runtime.get().load_program(program.to_executorch().buffer).load_method("forward")
    assert method is not None
    found = method.execute(pytree.tree_leaves(inputs))
    torch.testing.assert_close(list(found), pytree.tree_leaves(want))


def test_the_whole_graph_goes_to_one_backend() -> None:
    edge = to_edge(torch.export.export(Lists(), ([A, B],)))
    edge = edge.to_backend(AllNodePartitioner("BackendWithCompilerDemo", []))
    calls = [n for n in edge.exported_program().graph.nodes if n.op == "call_function"]
    assert [c.name for c in calls if "getitem" not in c.name] == ["executorch_call_delegate"]
    torch.testing.assert_close(edge.exported_program().module()([A, B]), Lists()([A, B]))


def test_the_edge_programs_stay_as_they_are_when_a_program_is_written() -> None:
    manager = to_edge(torch.export.export(Plain(), (A,)), generate_etrecord=True)
    before = str(manager.exported_program().graph)
    manager.to_executorch()
    assert str(manager.exported_program().graph) == before
