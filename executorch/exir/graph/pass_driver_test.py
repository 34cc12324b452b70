"""The driver runs passes, keeps facts right, and says which pass broke a program, and where."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.export import Dim
from torch.fx import GraphModule, Node

from executorch.exir import to_edge
from executorch.exir.dialects._ops import ops
from executorch.exir.error import ExportError
from executorch.exir.graph.pass_driver import CallPass, GraphPass, Pass, run_passes
from executorch.exir.graph.program_view import Dialect, ProgramView

aten = ops.edge.aten


class Model(nn.Module):
    count: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 4)
        self.register_buffer("count", torch.zeros(1))
        self.register_buffer("offset", torch.ones(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.count.add_(x.sum())
        return (self.linear(x) + self.offset).relu() * self.count


def edge_view() -> ProgramView:
    shapes = ({0: Dim("n", max=8)},)
    exported = torch.export.export(Model(), (torch.randn(2, 3),), dynamic_shapes=shapes)
    return ProgramView(to_edge(exported).exported_program(), Dialect.EDGE)


class OnRelu(CallPass):
    """Does one thing to the relu."""

    def __init__(self, change: Callable[[Node], object]) -> None:
        self.rules = {torch.ops.aten.relu.default: lambda call: (change(call), True)[1]}


def halve(relu: Node) -> None:
    relu.meta["val"] = relu.meta["val"].half()


def repeat_rows(relu: Node) -> None:
    relu.target = aten.tanh.default
    relu.meta["val"] = relu.meta["val"].repeat(2, 1)


def fix_the_size(relu: Node) -> None:
    relu.meta["val"] = torch.ops.aten.new_zeros(relu.meta["val"], (2, 4))


def transpose_in_memory(relu: Node) -> None:
    value = relu.meta["val"]
    with value.fake_mode:
        relu.meta["val"] = torch.empty_strided(value.shape, (1, value.shape[0]))


def use_late(relu: Node) -> None:
    relu.args[0].replace_all_uses_with(relu)  # type: ignore[union-attr]


def call_torch(relu: Node) -> None:
    relu.target = torch.ops.aten.relu.default


def write(relu: Node) -> None:
    relu.target = aten.relu_.default


def rename_an_input(relu: Node) -> None:
    relu.graph.find_nodes(op="placeholder")[0].name = "other"


@pytest.mark.parametrize(
    "change, said",
    [
        (halve, "aten_relu_default.*left torch.float16 .*gives torch.float32"),
        (repeat_rows, r"aten_relu_default = .*tanh.*left torch.float32 \[2\*s.*, 4\]"),
        (fix_the_size, r"aten_relu_default.*left torch.float32 \[2, 4\].*gives torch.float32 \[s"),
        (transpose_in_memory, r"left .*in the order \(1, 0\), the operator gives .*order \(0, 1\)"),
        (use_late, "not well formed.*aten_relu_default"),
        (call_torch, "aten_relu_default.*a torch operator in the edge dialect"),
        (write, "aten_relu_default.*no operators that write"),
        (rename_an_input, "the signature names .*the graph .*other"),
    ],
)
def test_what_breaks_a_program_is_named_with_its_node(
    change: Callable[[Node], object], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXECUTORCH_CHECK_PASSES", "1")
    with pytest.raises(ExportError, match=f"after OnRelu: (?s:.*){said}"):
        run_passes([edge_view()], [OnRelu(change)])


def test_checks_are_on_in_this_suite_and_can_be_off(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ExportError, match="after OnRelu"):
        run_passes([edge_view()], [OnRelu(halve)])
    monkeypatch.delenv("EXECUTORCH_CHECK_PASSES")
    assert run_passes([edge_view()], [OnRelu(halve)])


def test_a_pass_that_changes_nothing_is_not_blamed_for_what_was_there() -> None:
    view = edge_view()
    (relu,) = view.graph.find_nodes(op="call_function", target=aten.relu.default)
    halve(relu)
    assert not run_passes([view], [GraphPassThatLooks()])


class GraphPassThatLooks(GraphPass):
    def edit_graph(self, graph_module: GraphModule) -> bool:
        return False


class ToBackend(GraphPassThatLooks):
    takes = frozenset({Dialect.EDGE})
    gives = Dialect.BACKEND


def test_dialects_are_followed() -> None:
    view = edge_view()
    run_passes([view], [ToBackend()])
    assert view.dialect is Dialect.BACKEND
    with pytest.raises(ExportError, match="ToBackend takes the dialects edge; .*of backend"):
        run_passes([view], [ToBackend()])
    view.dialect = None  # a user's own order is the user's
    run_passes([view], [ToBackend(), ToBackend()])


def test_facts_say_what_the_inputs_are() -> None:
    view = edge_view()
    names = {spec.target: node for node, spec in view.inputs.items()}
    assert set(view.stored) == {names["linear.weight"], names["linear.bias"], names["offset"]}
    assert view.changing_buffers == set(view.next_values) == {names["count"]}
    assert view.first_input is names[None] and view.placeholders["offset"] is names["offset"]
    assert not view.is_trained and all(n == 1 for n in view.readers.values())
    assert ProgramView(view.graph_module).inputs == {}


def test_facts_are_kept_until_a_pass_changes_something() -> None:
    view = edge_view()
    stored = view.stored
    run_passes([view], [GraphPassThatLooks()])
    assert view.stored is stored

    class DropOffset(Pass):
        def edit(self, view: ProgramView) -> bool:
            offset = view.placeholders["offset"]
            (add,) = offset.users
            add.replace_all_uses_with(add.args[0])
            view.graph.erase_node(add)
            view.graph.erase_node(offset)
            view.update_inputs()
            return True

    run_passes([view], [DropOffset()])
    assert "offset" not in view.placeholders and len(view.stored) == 2
    assert view.program is not None and "offset" not in view.program.state_dict
    view.program.validate()


def test_a_pass_is_called_on_modules_and_programs_too() -> None:
    program = edge_view().program
    assert program is not None
    to_tanh = OnRelu(lambda relu: setattr(relu, "target", aten.tanh.default))
    assert to_tanh(program.graph_module).modified
    result = to_tanh(program)
    assert result.exported_program is program and not result.modified
    assert program.graph.find_nodes(op="call_function", target=aten.tanh.default)


def test_a_pass_that_fixes_a_dynamic_size_is_named() -> None:
    def decide(relu: Node) -> None:
        size = relu.meta["val"].shape[0]
        size.node.shape_env.freeze()  # as after an export: what is decided now is not kept
        if size == 2:  # of this example
            relu.target = aten.tanh.default

    with pytest.raises(RuntimeError, match="dimension 0 of input x was declared.*OnRelu fixes it"):
        run_passes([edge_view()], [OnRelu(decide)])
