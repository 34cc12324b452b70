import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.fx import GraphModule
from torch.fx.passes.infra.pass_base import PassResult

from executorch.exir import ExecutorchBackendConfig, _native, to_edge
from executorch.exir.error import ExportError, InternalError
from executorch.exir.memory_planning import (
    MemoryAlgoResult,
    MemoryPlanningAlgorithmSuite,
    SpecAllocResult,
    Verifier,
    check_no_conflict,
    greedy,
    naive,
    pick_shared_obj,
    smallest,
)
from executorch.exir.passes import MemoryPlanningPass
from executorch.exir.tensor import TensorSpec

ALGORITHMS = [naive, greedy, smallest]


def _spec(size: int, first: int, last: int) -> TensorSpec:
    spec = TensorSpec(torch.uint8, [size])
    spec.lifetime = [first, last]
    return spec


@st.composite
def _lives(draw):
    n = draw(st.integers(1, 40))
    lives = []
    for _ in range(n):
        first = draw(st.integers(0, 30))
        lives.append((draw(st.integers(0, 5000)), first, first + draw(st.integers(0, 12))))
    return lives


def _plan(algorithm, lives):
    specs = [_spec(*life) for life in lives]
    result = algorithm(16, specs, None, None, 0)
    for spec, place in result.spec_dict.items():
        spec.mem_id, spec.mem_offset = place.mem_id, place.mem_offset
    return specs, result.bufsizes[1]


def _lower_bound(specs):
    return max(
        sum(s.allocated_memory for s in specs if s.lifetime[0] <= t <= s.lifetime[1])
        for t in range(50)
    )


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@given(lives=_lives())
@settings(max_examples=80, deadline=None)
def test_no_two_live_tensors_overlap_and_all_fit(algorithm, lives):
    specs, size = _plan(algorithm, lives)
    for i, a in enumerate(specs):
        assert a.mem_offset % 16 == 0
        assert a.mem_offset + a.nbytes() <= size
        for b in specs[i + 1 :]:
            assert not (Verifier.lifetime_overlap(a, b) and Verifier.storage_overlap(a, b))


@given(lives=_lives())
@settings(max_examples=150, deadline=None)
def test_smallest_is_between_the_lower_bound_and_greedy(lives):
    specs, size = _plan(smallest, lives)
    blocks = [(s.allocated_memory, *s.lifetime) for s in specs]
    assert _native.lower_bound(blocks) == _lower_bound(specs)
    assert _lower_bound(specs) <= size <= _plan(greedy, lives)[1]


@given(lives=_lives())
@settings(max_examples=60, deadline=None)
def test_greedy_puts_each_tensor_where_pick_shared_obj_does(lives):
    specs = [_spec(*life) for life in lives]
    for spec in specs:
        spec.realign(16)
    objects: list = []
    picked = {}
    for spec in reversed(sorted(specs, key=lambda s: s.allocated_memory)):
        obj = pick_shared_obj(objects, spec)
        picked[spec] = (obj.idx, obj.allocations[-1].offset)
    starts = [sum(o.size for o in objects[:i]) for i in range(len(objects))]
    result = greedy(16, specs, None, None).spec_dict
    assert {s: (r.mem_obj_id, r.mem_offset) for s, r in result.items()} == {
        s: (i, starts[i] + offset) for s, (i, offset) in picked.items()
    }


def test_greedy_places_the_worked_example_as_documented():
    x, permute, addmm, relu = _spec(32, 0, 2), _spec(48, 1, 2), _spec(32, 2, 3), _spec(32, 3, 4)
    result = greedy(16, [x, permute, addmm, relu], None, None)
    offsets = [result.spec_dict[s].mem_offset for s in (permute, relu, addmm, x)]
    assert offsets == [0, 0, 48, 80]
    assert result.bufsizes == [0, 112]


def test_smallest_beats_greedy_where_gaps_of_several_objects_join():
    lives = [(96, 0, 0), (96, 0, 0), (128, 1, 1)]  # the last fits over both others
    assert _plan(smallest, lives)[1] == 192
    assert _plan(greedy, lives)[1] == 128 + 96


def test_suite_keeps_the_smallest_and_refuses_other_numbers_of_arenas():
    specs = [_spec(100, 0, 1), _spec(100, 2, 3)]
    assert MemoryPlanningAlgorithmSuite([naive, greedy])(16, specs, None, None, 0) == [0, 112]
    assert [s.mem_offset for s in specs] == [0, 0]

    def two_arenas(alignment, specs, *_):
        return MemoryAlgoResult({s: SpecAllocResult(2, 0, 0) for s in specs}, [0, 0, 500])

    with pytest.raises(InternalError, match="different numbers of arenas"):
        MemoryPlanningAlgorithmSuite([naive, two_arenas])(16, specs, None, None, 0)


def test_conflict_is_named():
    a, b = _spec(64, 0, 3), _spec(64, 2, 5)
    for spec in (a, b):
        spec.mem_id, spec.mem_offset = 1, 0
    with pytest.raises(InternalError, match="alive together and overlap"):
        check_no_conflict([a, b])
    b.lifetime = [4, 5]
    check_no_conflict([a, b])


class _Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(8, 16), nn.Linear(16, 8)

    def forward(self, x):
        return self.b(self.a(x).relu())


def _planned(planning):
    edge = to_edge(torch.export.export(_Mlp().eval(), (torch.randn(4, 8),)))
    return edge.to_executorch(ExecutorchBackendConfig(memory_planning_pass=planning))


def _plan_of(manager):
    return manager.executorch_program.execution_plan[0]


@pytest.mark.parametrize("choice", [None, "greedy", "naive", greedy, smallest])
def test_pass_accepts_names_functions_and_nothing(choice):
    planning = MemoryPlanningPass(choice)
    plan = _plan_of(_planned(planning))
    report = planning.report[0][0]
    assert plan.non_const_buffer_sizes == [0, report.size]
    assert report.size >= report.lower_bound > 0


def test_pass_accepts_algorithms_that_write_into_the_specs():
    def earlier_style(alignment, specs, graph_module, graph_signature, extra_padding):
        offset = 0
        for spec in specs:
            spec.mem_id, spec.mem_obj_id, spec.mem_offset = 1, 0, offset
            offset += spec.allocated_memory
        return [0, offset]

    assert (
        _plan_of(_planned(MemoryPlanningPass(earlier_style))).non_const_buffer_sizes
        == _plan_of(_planned(MemoryPlanningPass("naive"))).non_const_buffer_sizes
    )


def test_pass_refuses_plans_that_would_corrupt_memory():
    def overlapping(alignment, specs, *_):
        return MemoryAlgoResult({s: SpecAllocResult(1, 0, 0) for s in specs}, [0, 4096])

    with pytest.raises(InternalError, match="overlap"):
        _planned(MemoryPlanningPass(overlapping))

    def too_small(alignment, specs, *_):
        result = naive(alignment, specs, *_)
        return MemoryAlgoResult(result.spec_dict, [0, result.bufsizes[1] - 16])

    with pytest.raises(ExportError, match="beyond the arenas"):
        _planned(MemoryPlanningPass(too_small))
    with pytest.raises(TypeError, match="expected a MemoryAlgoResult or the sizes .*, found None"):
        _planned(MemoryPlanningPass(lambda *_: None))


def test_unknown_name_and_alignment_are_refused():
    with pytest.raises(ValueError, match="'best'"):
        MemoryPlanningPass("best")
    with pytest.raises(ValueError, match="power of two"):
        MemoryPlanningPass(alignment=24)
    with pytest.raises(ValueError, match="power of two up to 1073741824"):
        MemoryPlanningPass(alignment=2**63)
    with pytest.raises(TypeError, match="alignment: expected a number of bytes, found 'a'"):
        MemoryPlanningPass(alignment="a")


def test_inputs_and_outputs_are_left_to_the_caller_on_request():
    planning = MemoryPlanningPass(alloc_graph_input=False, alloc_graph_output=False)
    plan = _plan_of(_planned(planning))
    for index in (*plan.inputs, *plan.outputs):
        assert plan.values[index].val.allocation_info is None
        assert plan.values[index].val.data_buffer_idx == 0


@pytest.mark.parametrize("alloc_graph_output", [True, False])
@pytest.mark.parametrize("remove_view_copy", [True, False])
def test_a_result_whose_last_copies_were_dropped_is_planned_as_asked(
    alloc_graph_output, remove_view_copy
):
    class TwiceTransposed(nn.Module):
        def forward(self, x):
            return torch.sin(x).permute(1, 0).permute(1, 0)

    shapes = ({0: torch.export.Dim("n", max=16)},)
    program = torch.export.export(TwiceTransposed(), (torch.ones(3, 4),), dynamic_shapes=shapes)
    planning = MemoryPlanningPass(alloc_graph_output=alloc_graph_output)
    config = ExecutorchBackendConfig(
        memory_planning_pass=planning, remove_view_copy=remove_view_copy
    )
    plan = _plan_of(to_edge(program).to_executorch(config))
    (result,) = (plan.values[i].val for i in plan.outputs)
    assert (result.allocation_info is not None) is alloc_graph_output
    n_planned = 2 if alloc_graph_output else 1  # float32 [16, 4]: the input, and the result
    assert plan.non_const_buffer_sizes == [0, n_planned * 256]


class _Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("state", torch.zeros(3))

    def forward(self, x):
        self.state.add_(x)
        return self.state * 2

    def read(self, x):
        return self.state + x


def test_mutable_buffers_are_shared_between_methods():
    model, x = _Counter(), torch.ones(3)
    reader = _Counter()
    reader.forward = reader.read  # type: ignore[method-assign]
    programs = {
        "add": torch.export.export(model, (x,)),
        "read": torch.export.export(reader, (x,)),
    }
    planning = MemoryPlanningPass(share_mutable_buffers=True)
    manager = to_edge(programs).to_executorch(
        ExecutorchBackendConfig(memory_planning_pass=planning)
    )
    places = []
    for plan in manager.executorch_program.execution_plan:
        assert plan.non_const_buffer_sizes[2] == 16
        state = plan.values[0].val
        places.append((state.allocation_info.memory_id, state.allocation_info.memory_offset))
        assert state.data_buffer_idx == 0
    assert places == [(2, 0), (2, 0)]


class _State(nn.Module):
    """A buffer that one method adds to and the other one reads."""

    def __init__(self, state, reads=False):
        super().__init__()
        self.register_buffer("state", state)
        self.reads = reads

    def forward(self, x):
        if self.reads:
            return (self.state * 2).relu() + x
        return self.state.add_(1) + x


def _shared(first, second, **partitioners):
    modules = {"add": _State(first), "read": _State(second, reads=True)}
    inputs = {"add": (torch.zeros(1),), "read": (torch.zeros(1),)}
    programs = {n: torch.export.export(m, inputs[n]) for n, m in modules.items()}
    edge = to_edge(programs).to_backend(partitioners)
    planning = MemoryPlanningPass(share_mutable_buffers=True)
    return edge.to_executorch(ExecutorchBackendConfig(memory_planning_pass=planning))


def test_what_reads_a_shared_buffer_is_computed_at_run_time():
    from executorch.extension.pybindings.portable_lib import _load_for_executorch_from_buffer

    module = _load_for_executorch_from_buffer(_shared(torch.ones(3), torch.ones(3)).buffer)
    x = [torch.zeros(1)]
    for n in (2.0, 3.0):
        assert module.run_method("add", x)[0].tolist() == [n] * 3
        assert module.run_method("read", x)[0].tolist() == [2 * n] * 3


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (torch.zeros(4), r"float32 of shape \[3\] in method add, .*\[4\] in method read"),
        (torch.zeros(3, dtype=torch.int32), "torch.int32 of shape .* in method read"),
        (torch.ones(3), "state begins with other values in method add than in read"),
    ],
)
def test_buffers_that_cannot_be_shared_are_named(second, message):
    with pytest.raises(ExportError, match=f"share_mutable_buffers: buffer .*{message}"):
        _shared(torch.zeros(3), second)


def test_a_shared_buffer_that_a_backend_took_is_named():
    from executorch.exir.backend.canonical_partitioners.all_node_partitioner import (
        AllNodePartitioner,
    )
    from executorch.exir.backend.test.demo_backend import DemoBackend

    partitioner = AllNodePartitioner(DemoBackend.__name__, [])
    with pytest.raises(ExportError) as error:
        _shared(torch.zeros(3), torch.zeros(3), read=partitioner)
    assert "DemoBackend took buffer state of method read as a constant" in str(error.value)
    assert "partitioner={'add': [...]} leaves read to operators" in str(error.value)


@pytest.mark.parametrize("name", ["run", "__call__"])
def test_a_class_of_the_user_may_plan(name: str) -> None:
    seen = []

    def plan(self: object, graph_module: GraphModule, signature: object = None) -> PassResult:
        seen.append(signature)
        return MemoryPlanningPass().run(graph_module, signature)  # type: ignore[arg-type]

    config = ExecutorchBackendConfig(memory_planning_pass=type("Planner", (), {name: plan})())
    edge = to_edge(torch.export.export(torch.nn.ReLU(), (torch.ones(2),)))
    assert edge.to_executorch(config).buffer == edge.to_executorch().buffer
    assert len(seen) == 1 and (seen[0] is None) == (name == "__call__")
