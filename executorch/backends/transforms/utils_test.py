from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind
from torch.fx import Node

from executorch.backends.transforms.utils import (
    create_constant_placeholder,
    create_mutable_buffer,
    delete_constant_placeholder,
    get_param_tensor,
    is_param_node,
)
from executorch.exir import EdgeProgramManager, to_edge
from executorch.exir.dialects._ops import ops
from executorch.runtime import Runtime

ONES = torch.ones(2)


class Scaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor([2.0, 3.0]))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.scale


def edge() -> ExportedProgram:
    return to_edge(torch.export.export(Scaled(), (ONES,))).exported_program()


def constant(program: ExportedProgram, name: str, kind: InputKind, persistent: bool | None) -> Node:
    graph = program.graph
    with graph.inserting_before(next(iter(graph.nodes))):
        return create_constant_placeholder(program, graph, name, kind, 5 * ONES, persistent)


def add_to_result(program: ExportedProgram, node: Node) -> Node:
    """y + node in the place of the result y."""
    output = program.graph.output_node()
    y = output.args[0][-1]  # type: ignore[index]
    assert isinstance(y, Node)
    with program.graph.inserting_before(output):
        total = program.graph.call_function(ops.edge.aten.add.Tensor, (y, node))
    total.meta["val"] = y.meta["val"]
    y.replace_all_uses_with(total, delete_user_cb=lambda user: user is output)
    specs = program.graph_signature.output_specs
    specs[-1].arg.name = total.name  # type: ignore[union-attr]
    return total


def run(program: ExportedProgram, *calls: Tensor) -> list[Tensor]:
    program.graph_module.recompile()
    buffer = EdgeProgramManager(program).to_executorch().buffer
    method = Runtime.get().load_program(buffer).load_method("forward")
    assert method is not None
    return [method.execute([x])[0].clone() for x in calls]


KINDS = [
    (InputKind.PARAMETER, None, True),
    (InputKind.BUFFER, True, True),
    (InputKind.BUFFER, False, False),
    (InputKind.CONSTANT_TENSOR, None, False),
]


@pytest.mark.parametrize(("kind", "persistent", "in_state"), KINDS)
@pytest.mark.parametrize("name", ["shift", "0.shift", "x"])
def test_a_constant_is_added_and_removed(
    kind: InputKind, persistent: bool | None, in_state: bool, name: str
) -> None:
    program = edge()
    node = constant(program, name, kind, persistent)
    assert (node.target, node.name == name) == (node.name, name == "shift")
    assert is_param_node(program, node)
    assert torch.equal(get_param_tensor(program, node), 5 * ONES)  # type: ignore[arg-type]
    assert (node.name in program.state_dict, node.name in program.constants) == (
        in_state,
        not in_state,
    )
    add_to_result(program, node)
    (y,) = run(program, ONES)
    torch.testing.assert_close(y, torch.tensor([7.0, 8.0]))

    program = edge()
    unread = constant(program, name, kind, persistent)
    delete_constant_placeholder(program, unread)
    assert list(program.state_dict) == ["scale"] and not program.constants
    torch.testing.assert_close(program.module()(ONES), torch.tensor([2.0, 3.0]))


def test_a_name_is_one_constant() -> None:
    program = edge()
    first = constant(program, "1_w", InputKind.PARAMETER, None)
    assert constant(program, "1_w", InputKind.PARAMETER, None) is first
    with pytest.raises(RuntimeError, match="already exists in the graph"):
        create_mutable_buffer(program, "1_w", ONES)
    create_mutable_buffer(program, "b_state", ONES)
    with pytest.raises(RuntimeError, match="already exists in state_dict"):
        create_mutable_buffer(program, "b_state", ONES)
    with pytest.raises(RuntimeError, match="as a mutable buffer"):
        constant(program, "b_state", InputKind.PARAMETER, None)
    with pytest.raises(ValueError, match="USER_INPUT"):
        constant(program, "y", InputKind.USER_INPUT, None)
    (x,) = [n for n in program.graph.nodes if n.name == "x"]
    with pytest.raises(RuntimeError, match="x is no constant"):
        delete_constant_placeholder(program, x)


def test_a_buffer_counts_calls() -> None:
    program = edge()
    before = program.graph_signature.input_specs
    state = create_mutable_buffer(program, "b_calls", torch.zeros(2))
    assert [s.kind for s in program.graph_signature.input_specs] == [
        InputKind.PARAMETER,
        InputKind.BUFFER,
        InputKind.USER_INPUT,
    ]
    assert len(before) == 2  # the signature that others hold stays as it was
    assert program.graph_signature.output_specs[0].kind is OutputKind.BUFFER_MUTATION
    total = add_to_result(program, state)
    with program.graph.inserting_after(total):
        moved = program.graph.call_function(ops.edge.aten.add.Tensor, (state, total))
    moved.meta["val"] = total.meta["val"]
    output = program.graph.output_node()
    output.args = ((moved, total),)
    program.graph_signature.output_specs[0].arg.name = moved.name  # type: ignore[union-attr]
    first, second = run(program, ONES, ONES)
    torch.testing.assert_close(first, torch.tensor([2.0, 3.0]))
    torch.testing.assert_close(second, 2 * first)
