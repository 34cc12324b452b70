import copy

import pytest
import torch
from torch._higher_order_ops.while_loop import while_loop
from torch.export import Dim

from executorch.exir import ExecutorchBackendConfig, schema, to_edge, to_edge_transform_and_lower
from executorch.exir.backend.backend_api import (
    LoweredBackendModule,
    MethodProgramsPartitionerSpec,
    to_backend,
)
from executorch.exir.backend.backend_details import BackendDetails, PreprocessResult
from executorch.exir.backend.partitioner import DelegationSpec, Partitioner, PartitionResult
from executorch.exir.backend.subgraphs import TAG
from executorch.exir.backend.tags import tag_constant_data, tag_mutated_buffer
from executorch.exir.backend.test.backend_with_compiler_demo import (
    BackendWithCompilerDemo,  # noqa: F401 (found by name)
)
from executorch.exir.backend.test.backend_with_preprocess_all_demo import (
    BackendWithPreprocessAllPartitioner,
)
from executorch.exir.backend.test.demo_backend import DemoBackend  # noqa: F401
from executorch.exir.backend.test.op_partitioner_demo import (
    AddMulPartitionerDemo,
    AllNodesPartitionerDemo,
    NonDecompTestPartitioner,
)
from executorch.exir.backend.utils import get_delegation_info
from executorch.exir.capture._callable import as_module
from executorch.exir.dialects._ops import ops

_aten = ops.edge.aten


class Recorder(BackendDetails):
    """Writes the names of its calls; can be told what to keep."""

    @staticmethod
    def preprocess(edge_program, compile_specs):
        names = [n.target.__name__ for n in edge_program.graph.nodes if n.op == "call_function"]
        return PreprocessResult(",".join(names).encode())


class Tagging(Partitioner):
    """Tags nodes by name -> tag; constants and buffers on request."""

    def __init__(self, tags, constants=False, buffers=False):
        super().__init__()
        self.tags, self.constants, self.buffers = tags, constants, buffers

    def partition(self, program):
        for node in program.graph.nodes:
            if node.name in self.tags:
                node.meta[TAG] = self.tags[node.name]
        if self.constants:
            tag_constant_data(program)
        if self.buffers:
            tag_mutated_buffer(program)
        spec = DelegationSpec("Recorder", [])
        return PartitionResult(program, dict.fromkeys(self.tags.values(), spec))


def edge(function, *args, **options):
    return to_edge(torch.export.export(as_module(function), args, **options))


def delegates(program):
    return [
        m for n, m in program.graph_module.named_children() if isinstance(m, LoweredBackendModule)
    ]


def calls(program):
    return [n.target.__name__ for n in program.graph.nodes if n.op == "call_function"]


def demo(a, x, b):
    y = torch.mm(a, x)
    z = y + b
    a = z - a
    y = torch.mm(a, x)
    return y + b


def square(n):
    return tuple(torch.randn(2, 2) for _ in range(n))


class Linear(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(2, 2))

    def forward(self, x):
        return (x @ self.weight).relu() @ self.weight


class Stateful(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("sum", torch.zeros(2))

    def forward(self, x):
        self.sum.add_(x)
        return self.sum.neg()


# ---- the whole module, and composition ----


def test_a_whole_program_becomes_one_module():
    lowered = to_backend(
        "BackendWithCompilerDemo", edge(torch.sin, torch.ones(1)).exported_program(), []
    )
    assert (lowered.backend_id, lowered.compile_specs) == ("BackendWithCompilerDemo", [])
    assert lowered.processed_bytes == (
        b"1version:0#op:demo::aten.sin.default, numel:1, dtype:torch.float32<debug_handle>1#"
    )
    assert lowered.meta["debug_handle_map"] == {1: (1,)}
    x = torch.randn(1)
    torch.testing.assert_close(lowered(x), x.sin())
    assert str(lowered) == "LoweredBackendModule()"


def test_a_lowered_module_is_a_program_of_one_call():
    lowered = to_backend(
        "BackendWithCompilerDemo", edge(torch.sin, torch.ones(1)).exported_program(), []
    )
    plan = lowered.program().execution_plan[0]
    assert [type(i.instr_args) for i in plan.chains[0].instructions] == [schema.DelegateCall]
    assert plan.operators == [] and plan.delegates[0].id == "BackendWithCompilerDemo"
    assert lowered.processed_bytes in lowered.buffer()


def test_lowered_modules_compose_and_share_their_bytes():
    lowered = to_backend(
        "BackendWithCompilerDemo", edge(torch.sin, torch.ones(1)).exported_program(), []
    )

    class Composed(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.lowered = lowered

        def forward(self, x):
            a = self.lowered(x)
            return a, self.lowered(a) + x

    manager = edge(Composed(), torch.ones(1))
    program = manager.exported_program()
    assert program.graph_module.lowered_module_0.processed_bytes == lowered.processed_bytes
    assert calls(program).count("executorch_call_delegate") == 2
    x = torch.randn(1)
    torch.testing.assert_close(program.module()(x), (x.sin(), x.sin().sin() + x))
    written = manager.to_executorch().executorch_program
    assert len(written.backend_delegate_data) == 1
    assert len(written.execution_plan[0].delegates) == 2


def test_unknown_backend_is_named():
    with pytest.raises(NotImplementedError, match="Backend Missing was not found"):
        to_backend("Missing", edge(torch.sin, torch.ones(1)).exported_program(), [])


# ---- partitions ----


def test_the_tutorial_program_becomes_two_delegates_around_a_subtraction():
    manager, args = edge(demo, *square(3)), square(3)
    program = to_backend(manager.exported_program(), AddMulPartitionerDemo)
    assert [n for n in calls(program) if n != "getitem"] == [
        "executorch_call_delegate",
        "aten.sub.Tensor",
        "executorch_call_delegate",
    ]
    assert len(delegates(program)) == 2
    assert delegates(program)[0].compile_specs[0].value == bytes([4])
    torch.testing.assert_close(program.module()(*args), demo(*args))
    assert not delegates(manager.exported_program())  # which stays as it is


def test_manager_takes_partitioners_by_method():
    method = torch.export.export(Linear(), square(1))
    manager = to_edge({"a": method, "b": method}).to_backend({"a": AddMulPartitionerDemo()})
    assert delegates(manager.exported_program("a"))
    assert not delegates(manager.exported_program("b"))


def test_unknown_method_is_named():
    with pytest.raises(KeyError, match="typo"):
        edge(torch.sin, torch.ones(1)).to_backend({"typo": AddMulPartitionerDemo()})
    program = torch.export.export(as_module(torch.sin), (torch.ones(1),))
    with pytest.raises(KeyError, match="no methods .'typo'.; there are .'forward'."):
        to_edge_transform_and_lower(program, partitioner={"typo": [AddMulPartitionerDemo()]})


@pytest.mark.parametrize("given", [5, "xnnpack", [None], {"forward": [torch.nn.Identity]}])
def test_what_is_no_partitioner_is_refused(given):
    program = torch.export.export(as_module(torch.sin), (torch.ones(1),))
    with pytest.raises(TypeError, match="partitioner: expected a Partitioner, or its class, found"):
        to_edge_transform_and_lower(program, partitioner=given)


def test_what_is_no_configuration_is_refused():
    program = torch.export.export(as_module(torch.sin), (torch.ones(1),))
    with pytest.raises(TypeError, match="compile_config: expected an EdgeCompileConfig, found"):
        to_edge(program, compile_config=ExecutorchBackendConfig())
    with pytest.raises(TypeError, match="expected an ExecutorchBackendConfig, found {'a': 1}"):
        to_edge(program).to_executorch({"a": 1})


def test_nodes_between_a_part_move_behind_it():
    """mul stands between the part's nodes and reads the first."""

    def function(x):
        a = x + 1.0
        b = a * x
        c = x.sin()
        return b, (a + c)

    manager = edge(function, torch.randn(3))
    tags = dict.fromkeys(("aten_add_tensor", "aten_sin_default", "aten_add_tensor_1"), "t")
    program = to_backend(manager.exported_program(), Tagging(tags))
    program.graph.lint()
    x = torch.randn(3)
    torch.testing.assert_close(program.module()(x), function(x))


def test_circular_tags_are_refused():
    manager = edge(lambda x: ((x + 1.0) * x).sin() + x, torch.randn(3))
    tags = dict.fromkeys(("aten_add_tensor", "aten_sin_default"), "t")
    with pytest.raises(RuntimeError, match=r"\['t'\] depend on each other in a circle"):
        to_backend(manager.exported_program(), Tagging(tags))


def test_user_inputs_cannot_be_tagged():
    manager = edge(lambda x: x + 1.0, torch.randn(3))
    tags = {"x": "t", "aten_add_tensor": "t"}
    with pytest.raises(RuntimeError, match="input x has the tag 't'"):
        to_backend(manager.exported_program(), Tagging(tags))


def test_a_partitioner_that_names_no_delegates_is_refused():
    class Untold(Partitioner):
        def partition(self, program):
            return PartitionResult(program, None)

    manager = edge(lambda x: x + 1.0, torch.randn(3))
    with pytest.raises(AssertionError, match="partition_tags, a mapping"):
        to_backend(manager.exported_program(), Untold())


def test_partitioners_that_edit_the_graph_are_refused():
    class Editing(Partitioner):
        def partition(self, program):
            program.graph.eliminate_dead_code()
            node = next(n for n in program.graph.nodes if n.op == "call_function")
            node.args = (*node.args[:1], node.args[0])
            return PartitionResult(program, {})

    manager = edge(lambda x: x + 1.0, torch.randn(3))
    with pytest.raises(AssertionError, match="only tags nodes"):
        to_backend(manager.exported_program(), Editing())


def test_results_that_are_lists_stay_within_a_part():
    manager = edge(lambda x: sum(x.split(1)), torch.randn(2, 3))
    name = next(n.name for n in manager.exported_program().graph.nodes if "split" in n.name)
    program = to_backend(manager.exported_program(), Tagging({name: "t"}))
    assert "getitem" in [
        n.target.__name__
        for n in delegates(program)[0].original_module.graph.nodes
        if n.op == "call_function"
    ]


# ---- constants and state ----


def test_untagged_constants_are_passed_at_every_call():
    program = to_backend(edge(Linear(), *square(1)).exported_program(), AddMulPartitionerDemo())
    assert "weight" in program.state_dict
    assert not delegates(program)[0].original_module.state_dict


def test_tagged_constants_become_the_delegates_own():
    tags = dict.fromkeys(("aten_mm_default", "aten_mm_default_1"), "t")
    tags |= {"aten_relu_default": "t"}
    program = to_backend(
        edge(Linear(), *square(1)).exported_program(), Tagging(tags, constants=True)
    )
    original = delegates(program)[0].original_module
    assert not program.state_dict and list(original.state_dict) == ["weight"]
    assert [s.target for s in original.graph_signature.input_specs][0] == "weight"
    x = torch.randn(2, 2)
    assert program.module()(x).shape == (2, 2)


def test_constants_of_two_parts_belong_to_both():
    tags = {"aten_mm_default": "a", "aten_mm_default_1": "b"}
    module = Linear()
    program = to_backend(edge(module, *square(1)).exported_program(), Tagging(tags, constants=True))
    assert not program.state_dict
    assert [list(d.original_module.state_dict) for d in delegates(program)] == [["weight"]] * 2
    x = torch.randn(2, 2)
    torch.testing.assert_close(program.module()(x), module(x))


def test_constants_that_must_not_be_copied_are_refused_in_two_parts():
    manager = edge(Linear(), *square(1))
    next(iter(manager.exported_program().graph.nodes)).meta["no_copy"] = True
    tags = {"aten_mm_default": "a", "aten_mm_default_1": "b"}
    with pytest.raises(RuntimeError, match="may not be copied"):
        to_backend(manager.exported_program(), Tagging(tags, constants=True))


def test_untagged_buffers_are_passed_and_returned():
    program = to_backend(
        edge(Stateful(), torch.ones(2)).exported_program(), Tagging({"aten_add_tensor": "t"})
    )
    assert program.graph_signature.buffers_to_mutate == {"getitem": "sum"}
    plan = to_executorch_plan(program)
    assert any(o.name == "aten::copy_" for o in plan.operators)


def to_executorch_plan(program):
    from executorch.exir import EdgeProgramManager

    return EdgeProgramManager(program).to_executorch().executorch_program.execution_plan[0]


def test_tagged_buffers_vanish_from_the_program():
    tags = dict.fromkeys(("aten_add_tensor", "aten_neg_default"), "t")
    program = to_backend(
        edge(Stateful(), torch.ones(2)).exported_program(), Tagging(tags, buffers=True)
    )
    assert not program.state_dict and not program.graph_signature.buffers_to_mutate
    original = delegates(program)[0].original_module
    assert list(original.graph_signature.buffers_to_mutate.values()) == ["sum"]
    run = program.module()
    assert [float(run(torch.ones(2))[0]) for _ in range(3)] == [-1.0, -2.0, -3.0]


# ---- several methods, control flow ----


def test_backends_that_preprocess_all_methods_see_them_at_once():
    methods = {
        name: edge(function, torch.ones(2)).exported_program()
        for name, function in {
            "a": lambda x: (x + x).sin() - x,
            "b": lambda x: x.cos() + x.sin(),
        }.items()
    }
    partitioner = BackendWithPreprocessAllPartitioner()
    lowered = to_backend(
        MethodProgramsPartitionerSpec(methods, dict.fromkeys(methods, partitioner))
    )
    blobs = [d.processed_bytes for program in lowered.values() for d in delegates(program)]
    assert sorted(blob[:4] for blob in blobs) == [b"1#4#", b"1#4#", b"2#2#", b"2#2#"]


def test_branches_are_lowered_like_the_rest():
    def function(x):
        return torch.cond(x.sum() > 0, lambda x: x + x, lambda x: (x * x) @ x + x, (x,))

    manager = edge(function, torch.ones(2, 2)).to_backend(AddMulPartitionerDemo())
    info = get_delegation_info(manager.exported_program().graph_module)
    assert (info.num_delegated_subgraphs, info.num_delegated_nodes) == (2, 3)
    plan = manager.to_executorch().executorch_program.execution_plan[0]
    assert len(plan.delegates) == 2


def test_bodies_of_loops_are_lowered_beside_conditions_that_are_not():
    def function(x):
        return while_loop(lambda x: x.norm() < 9, lambda x: (x + x,), (x,))

    manager = edge(function, torch.ones(2, 2)).to_backend(AddMulPartitionerDemo())
    info = get_delegation_info(manager.exported_program().graph_module)
    assert (info.num_delegated_subgraphs, info.num_delegated_nodes) == (1, 1)


def test_conditions_of_loops_are_lowered():
    def function(x):
        return while_loop(lambda x: (x + x).sum() < 9, lambda x: (x.exp(),), (x,))

    manager = edge(function, torch.ones(2, 2)).to_backend(AddMulPartitionerDemo())
    info = get_delegation_info(manager.exported_program().graph_module)
    assert (info.num_delegated_subgraphs, info.num_delegated_nodes) == (1, 1)
    assert len(manager.to_executorch().executorch_program.execution_plan[0].delegates) == 1


# ---- to_edge_transform_and_lower ----


class TwoLinears(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(3, 4), torch.nn.Linear(4, 3, bias=False)

    def forward(self, x):
        return self.b(self.a(x).relu())


def test_wanted_calls_stay_whole_and_others_come_apart():
    program = torch.export.export(TwoLinears(), (torch.randn(2, 3),))
    manager = to_edge_transform_and_lower(program, partitioner=[NonDecompTestPartitioner()])
    lowered = manager.exported_program()
    (delegate,) = delegates(lowered)
    assert calls(delegate.original_module) == ["aten.linear.default"]
    assert "aten.mm.default" in calls(lowered) and "aten.linear.default" not in calls(lowered)


def test_passes_run_before_partitioners_and_partitioners_in_turn():
    seen = []

    class Seeing(Tagging):
        def partition(self, program):
            seen.append(calls(program))
            return super().partition(program)

    def drop_relu(graph_module):
        for node in graph_module.graph.find_nodes(op="call_function", target=_aten.relu.default):
            node.target = _aten.sigmoid.default

    to_edge_transform_and_lower(
        torch.export.export(torch.nn.ReLU(), (torch.ones(2),)),
        transform_passes=[drop_relu],
        partitioner=[Seeing({"aten_relu_default": "t"}), Seeing({})],
    )
    assert seen == [["aten.sigmoid.default"], ["executorch_call_delegate", "getitem"]]


def test_dynamic_shapes_reach_the_delegate():
    program = torch.export.export(
        TwoLinears(), (torch.randn(2, 3),), dynamic_shapes=({0: Dim("n", max=8)},)
    )
    manager = to_edge_transform_and_lower(program, partitioner=[AllNodesPartitionerDemo()])
    plan = manager.to_executorch().executorch_program.execution_plan[0]
    tensor = plan.values[plan.outputs[0]].val
    assert tensor.sizes == [8, 3] and tensor.shape_dynamism.name == "DYNAMIC_BOUND"


# ---- emission ----


def test_delegate_calls_have_debug_handles_of_their_own():
    graph = edge(demo, *square(3)).to_backend(AddMulPartitionerDemo()).exported_program().graph
    calls = [n for n in graph.nodes if "call_delegate" in str(n.target)]
    handles = [n.meta["debug_handle"] for n in calls]
    others = [n.meta["debug_handle"] for n in graph.nodes if n.op == "call_function"]
    assert len(calls) == 2 and len(set(handles)) == 2
    assert all(others.count(h) == 1 for h in handles)


def test_delegate_calls_are_mapped_for_debugging():
    manager = edge(demo, *square(3)).to_backend(AddMulPartitionerDemo()).to_executorch()
    assert manager.debug_handle_map["forward"] == {0: [1, 2], 1: 3, 2: [4, 5]}
    assert manager.instruction_id_to_num_outs_map["forward"] == {0: 1, 2: 1}
    assert manager.delegate_map["forward"][0]["name"] == "BackendWithCompilerDemo"
    assert manager.delegate_map["forward"][0]["delegate_map"] == {1: (1,), 2: (2,)}


@pytest.mark.parametrize("extract", [True, False])
def test_blobs_lie_in_segments_or_inline(extract):
    config = ExecutorchBackendConfig(extract_delegate_segments=extract)
    manager = edge(demo, *square(3)).to_backend(AddMulPartitionerDemo()).to_executorch(config)
    from executorch.exir._serialize._program import deserialize_pte_binary

    again = deserialize_pte_binary(manager.buffer).program
    assert [d.id for d in again.execution_plan[0].delegates] == ["BackendWithCompilerDemo"] * 2
    blobs = [bytes(b.data) for b in again.backend_delegate_data]
    assert blobs == [bytes(b.data) for b in manager.executorch_program.backend_delegate_data]


def test_managers_can_be_copied_after_lowering():
    manager = edge(demo, *square(3)).to_backend(AddMulPartitionerDemo())
    other = copy.deepcopy(manager)
    assert other.to_executorch().buffer == manager.to_executorch().buffer


def test_many_parts_are_numbered_in_order():
    def chain(x):
        for _ in range(50):
            x = (x + x).sin()
        return x

    program = to_backend(edge(chain, torch.ones(1)).exported_program(), AddMulPartitionerDemo())
    names = [str(n.target) for n in program.graph.find_nodes(op="get_attr")]
    assert names == [f"lowered_module_{i}" for i in range(50)]
