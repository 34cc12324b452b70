import pytest
import torch
from torch.fx.passes.infra.pass_base import PassResult

from executorch.exir import ExecutorchBackendConfig, to_edge
from executorch.exir.dialects._ops import ops as exir_ops
from executorch.exir.error import ExportError
from executorch.exir.pass_base import (
    ExportedProgramPassBase,
    ExportedProgramPassResult,
    ExportPass,
    map_args,
)
from executorch.exir.pass_manager import ExportedProgramPassManager, PassManager
from executorch.exir.testing import targets

edge = exir_ops.edge


class ReluToSigmoid(ExportPass):
    def call_operator(self, op, args, kwargs, meta):
        if op == edge.aten.relu.default:
            op = edge.aten.sigmoid.default
        return super().call_operator(op, args, kwargs, meta)


class SplitAdd(ExportPass):
    """x + y as x + 2y - y, which needs a constant and two more nodes."""

    def call_operator(self, op, args, kwargs, meta):
        if op != edge.aten.add.Tensor:
            return super().call_operator(op, args, kwargs, meta)
        two = torch.tensor(2.0)
        x, y = args
        doubled = super().call_operator(edge.aten.mul.Tensor, (y, two), {}, meta)
        more = super().call_operator(op, (x, doubled), {}, meta)
        return super().call_operator(edge.aten.sub.Tensor, (more, y), {}, meta)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 4)

    def forward(self, x):
        return torch.nn.functional.relu(self.linear(x)), x.shape[0]


class Branches(torch.nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda x: x.relu() + x, lambda x: x - x.relu(), (x,))


def edge_of(module, *args, **options):
    return to_edge(torch.export.export(module, args, **options))


def test_transform_replaces_an_operator():
    model, x = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU()), torch.randn(2, 3)
    manager = edge_of(model, x)
    changed = manager.transform((ReluToSigmoid(),)).exported_program()
    assert "aten.sigmoid.default" in targets(changed)
    assert "aten.relu.default" not in targets(changed)
    assert "aten.relu.default" in targets(manager.exported_program())
    torch.testing.assert_close(changed.module()(x), model[0](x).sigmoid())


def test_metadata_and_dynamic_sizes_survive():
    shapes = ({0: torch.export.Dim("n", max=8)},)
    manager = edge_of(Model(), torch.randn(4, 3), dynamic_shapes=shapes)
    before, after = manager.exported_program(), manager.transform([ReluToSigmoid()])
    after = after.exported_program()
    for old, new in zip(before.graph.nodes, after.graph.nodes, strict=True):
        for key in ("stack_trace", "nn_module_stack", "debug_handle"):
            assert old.meta.get(key) == new.meta.get(key)
        assert str(old.meta["val"]) == str(new.meta["val"])
    assert after.module()(torch.randn(7, 3))[1] == 7


def test_constants_of_a_pass_are_lifted_and_new_nodes_get_handles():
    class Add(torch.nn.Module):
        def forward(self, x, y):
            return x + y

    x, y = torch.randn(3), torch.randn(3)
    program = edge_of(Add(), x, y).transform([SplitAdd()]).exported_program()
    assert list(program.state_dict) == ["_lifted_tensor_constant0"]
    calls = [n for n in program.graph.nodes if n.op == "call_function"]
    assert all(n.meta["debug_handle"] >= 1 for n in calls)
    torch.testing.assert_close(program.module()(x, y), x + y)


def test_branches_are_traced_too():
    manager = edge_of(Branches(), torch.randn(3))
    program = manager.transform([ReluToSigmoid()]).exported_program()
    for x in (torch.ones(3), -torch.ones(3)):
        want = x.sigmoid() + x if x.sum() > 0 else x - x.sigmoid()
        torch.testing.assert_close(program.module()(x), want)


def test_map_and_scan_survive_a_pass_that_changes_nothing():
    from torch._higher_order_ops.map import map as map_over
    from torch._higher_order_ops.scan import scan

    class Loops(torch.nn.Module):
        def forward(self, xs, y):
            carry, stacked = scan(lambda c, x: (c + x, c * x), torch.zeros(2), xs)
            return map_over(lambda x, y: x * 2 + y, xs, y), carry, stacked

    args = torch.randn(3, 2), torch.randn(2)
    program = edge_of(Loops(), *args).transform([ExportPass()]).exported_program()
    for got, want in zip(program.module()(*args), Loops()(*args), strict=True):
        torch.testing.assert_close(got, want)


def test_passes_of_one_method_leave_the_others():
    model, x = torch.nn.ReLU(), torch.randn(2)
    program = torch.export.export(model, (x,))
    manager = to_edge({"a": program, "b": program}, constant_methods={"version": 3})
    changed = manager.transform({"a": [ReluToSigmoid()]})
    assert targets(changed.exported_program("a")) == ["aten.sigmoid.default"]
    assert targets(changed.exported_program("b")) == ["aten.relu.default"]
    assert changed.methods == {"a", "b"} and changed.config_methods == {"version"}


def test_invalid_results_are_refused():
    class ToAten(ExportPass):
        def call_operator(self, op, args, kwargs, meta):
            return super().call_operator(torch.ops.aten.sigmoid.default, args, kwargs, meta)

    with pytest.raises(Exception, match="sigmoid.*not an edge operator"):
        edge_of(torch.nn.ReLU(), torch.randn(2)).transform([ToAten()])
    with pytest.raises(TypeError, match="expected a PassResult with a GraphModule, found None"):
        edge_of(torch.nn.ReLU(), torch.randn(2)).transform([lambda _: PassResult(None, True)])


def test_a_call_in_front_of_its_argument_is_named(monkeypatch):
    monkeypatch.delenv("EXECUTORCH_CHECK_PASSES", raising=False)

    def swap(graph_module):
        first, second = graph_module.graph.find_nodes(
            op="call_function", target=exir_ops.edge.aten.relu.default
        )
        first.prepend(second)

    edge = edge_of(torch.nn.Sequential(torch.nn.ReLU(), torch.nn.ReLU()), torch.randn(2))
    with pytest.raises(ExportError, match="relu.*: its argument .* is not computed before it"):
        edge.to_executorch(ExecutorchBackendConfig(passes=[swap]))


def test_functions_and_program_passes_are_passes():
    class Rename(ExportedProgramPassBase):
        def call(self, exported_program):
            exported_program.graph_module.meta["seen"] = True
            return ExportedProgramPassResult(exported_program, False)

    def in_place(gm):
        for node in gm.graph.nodes:
            if node.target == edge.aten.relu.default:
                node.target = edge.aten.sigmoid.default
        gm.recompile()

    manager = edge_of(torch.nn.ReLU(), torch.randn(2)).transform([Rename(), in_place])
    program = manager.exported_program()
    assert program.graph_module.meta["seen"]
    torch.testing.assert_close(program.module()(torch.ones(2)), torch.ones(2).sigmoid())


def test_error_in_a_hook_names_the_node():
    class Fails(ExportPass):
        def call_operator(self, op, args, kwargs, meta):
            raise ValueError("no")

    with pytest.raises(ValueError) as caught:
        edge_of(torch.nn.ReLU(), torch.randn(2)).transform([Fails()])
    assert "aten_relu_default" in "".join(caught.value.__notes__)


def test_pass_managers():
    program = edge_of(torch.nn.ReLU(), torch.randn(2)).exported_program()
    result = PassManager([ReluToSigmoid()], run_checks_after_each_pass=True)(program.graph_module)
    assert isinstance(result, PassResult) and result.modified
    outcome = ExportedProgramPassManager([[ReluToSigmoid()]])(program)
    assert outcome.modified and targets(outcome.exported_program) == ["aten.sigmoid.default"]


def test_map_args_sees_the_schema():
    seen = []
    args, kwargs = map_args(
        torch.ops.aten.add.Tensor,
        lambda value, schema: seen.append(schema.name) or value + 1,
        (1, 2),
        {"alpha": 3},
    )
    assert (args, kwargs, seen) == ((2, 3), {"alpha": 4}, ["self", "other", "alpha"])
