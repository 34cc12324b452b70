import pytest
import torch
from torch.export import export

from executorch.exir import to_edge
from executorch.exir.backend.backend_api import lower_all_submodules_to_backend
from executorch.exir.backend.compile_spec_schema import CompileSpec
from executorch.exir.backend.test.demo_backend import DemoBackend  # noqa: F401 (found by name)
from executorch.exir.lowered_backend_module import (
    create_exported_program_from_submodule,
    create_submodule_from_nodes,
    get_lowered_backend_modules,
)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.randn(3, 3))
        self.register_buffer("sum", torch.zeros(3, 3))

    def forward(self, x, y):
        self.sum.add_(x)
        a = torch.mm(x, self.w) + y
        return a.tanh() * self.sum, torch.mm(a, self.w)


INPUTS = (torch.randn(3, 3), torch.randn(3, 3))


def tagged(chosen, owned):
    program = to_edge(export(Net(), INPUTS)).exported_program()
    graph = program.graph
    calls = [n for n in graph.nodes if any(c in n.name for c in chosen)]
    for node in [*calls, *(n for n in graph.nodes if n.name in owned)]:
        node.meta["delegation_tag"] = "t"
    submodule, call = create_submodule_from_nodes(program.graph_module, calls, "t")
    made, inputs, outputs = create_exported_program_from_submodule(
        submodule, program, "t", call, False
    )
    call.meta |= {
        "submodule_program": made,
        "compile_spec": [CompileSpec("max_value", b"4")],
        "toplevel_input_specs_to_delete": inputs,
        "toplevel_output_specs_to_delete": outputs,
    }
    return program, made, call


def test_a_submodule_is_a_program_that_owns_what_has_the_tag():
    program, made, _ = tagged(("aten_mm_default", "add_tensor_1"), ("p_w",))
    assert list(made.graph_signature.parameters) == ["w"]
    assert [n.name for n in made.graph.find_nodes(op="placeholder")] == ["p_w", "x", "y"]
    assert isinstance(made.graph.output_node().args[0], list)
    x, y = INPUTS
    got = made.graph_module(program.state_dict["w"], x, y)
    a = x @ program.state_dict["w"] + y
    torch.testing.assert_close(got, [a, a @ program.state_dict["w"]])


@pytest.mark.parametrize("owned", [(), ("p_w",), ("p_w", "b_sum")])
def test_submodules_become_delegate_calls_that_compute_the_same(owned):
    chosen = ("aten_mm_default", "add_tensor_1")
    if "b_sum" in owned:
        chosen = (*chosen, "aten_add_tensor", "aten_mul", "aten_tanh")
    program, made, call = tagged(chosen, owned)
    expected = Net()
    expected.load_state_dict(program.state_dict)
    lower_all_submodules_to_backend("DemoBackend", {"forward": [call]}, {"forward": program})
    (lowered,) = get_lowered_backend_modules(program.graph_module)
    assert lowered.compile_specs[0].key == "max_value" and lowered.original_module is made
    assert set(made.state_dict) == {{"p_w": "w", "b_sum": "sum"}[name] for name in owned}
    stored = {s.target for s in program.graph_signature.input_specs if s.target}
    assert stored == {"w", "sum"} - set(made.state_dict) == set(program.state_dict)
    module = program.module()
    for _ in range(2):
        torch.testing.assert_close(module(*INPUTS), expected(*INPUTS))


class Halves(torch.nn.Module):
    def forward(self, x):
        low, high = torch.split(x, 3)
        return low.tanh() * high


def test_parts_of_a_result_move_along():
    x = torch.randn(6, 2)
    program = to_edge(export(Halves(), (x,))).exported_program()
    nodes = [n for n in program.graph.nodes if "split" in n.name]
    submodule, call = create_submodule_from_nodes(program.graph_module, nodes, "t")
    assert [value.shape for value in call.meta["val"]] == [(3, 2), (3, 2)]
    torch.testing.assert_close(submodule(x), list(torch.split(x, 3)))
    torch.testing.assert_close(program.graph_module(x), (Halves()(x),))
    made, _, _ = create_exported_program_from_submodule(submodule, program, "t", call, False)
    assert [n.meta["val"].shape for n in made.graph.output_node().args[0]] == [(3, 2), (3, 2)]
