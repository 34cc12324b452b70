"""Programs with `while_loop` against eager PyTorch, on the runtime's kernels and on XNNPACK's."""

import io

import pytest
import torch
from torch import nn
from torch._higher_order_ops.while_loop import while_loop
from torch.export import Dim, export
from torch.utils import _pytree as pytree

from executorch import exir
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
    XNNPACKQuantizer,
    get_symmetric_quantization_config,
)
from executorch.exir import ExecutorchBackendConfig, schema
from executorch.exir.error import ExportError
from executorch.exir.graph_module import all_graph_modules
from executorch.exir.passes import MemoryPlanningPass
from executorch.runtime import Runtime


class _Model(nn.Module):
    """Calls `function` with itself, for its weights, and the inputs."""

    def __init__(self, function):
        super().__init__()
        torch.manual_seed(0)
        self.function = function
        self.linear = nn.Linear(3, 3)
        self.conv = nn.Conv2d(4, 4, 3, padding=1)
        self.register_buffer("ones", torch.ones(2, 3))

    def forward(self, *inputs):
        return self.function(self, *inputs)


def _model(function):
    return _Model(function).eval().requires_grad_(False)


def _edge(model, inputs, dynamic_shapes=None, partitioner=None):
    shapes = None if dynamic_shapes is None else (dynamic_shapes,)
    program = export(model, inputs, dynamic_shapes=shapes, strict=True)
    return exir.to_edge_transform_and_lower(program, partitioner=partitioner)


def _run(buffer, inputs):
    return Runtime.get().load_program(buffer).load_method("forward").execute(list(inputs))


def _compare(model, buffer, calls):
    method = Runtime.get().load_program(buffer).load_method("forward")
    for inputs in calls:
        kept = [x.clone() for x in inputs]
        for got, wanted in zip(
            method.execute(list(inputs)), pytree.tree_leaves(model(*inputs)), strict=True
        ):
            torch.testing.assert_close(got, wanted)
        assert all(torch.equal(x, k) for x, k in zip(inputs, kept, strict=True))


def _n(count):
    return torch.tensor(count)


def _delegated(edge):
    """Operators that backends took out of loops' bodies, by the sub-graph's name."""
    return [
        str(node.target)
        for gm in list(all_graph_modules(edge.exported_program().graph_module))[1:]
        for lowered in gm.children()
        if hasattr(lowered, "original_module")
        for node in lowered.original_module.graph.nodes
        if node.op == "call_function"
    ]


x = torch.randn(2, 3, generator=torch.Generator().manual_seed(0))
image = torch.rand(1, 4, 8, 8, generator=torch.Generator().manual_seed(1))
rows = {0: Dim("n", min=2, max=10)}
starts = [_n(i) for i in (0, 3, 5, 9)]

# name: (function of model and inputs, calls, dynamic shapes)
CASES = {
    "tensors": (
        lambda m, i, x: while_loop(
            lambda i, x: i < 5, lambda i, x: (i + 1, torch.tanh(m.linear(x)) + m.ones), (i, x)
        ),
        [(i, x) for i in starts],
        None,
    ),
    "condition of data": (
        lambda m, x: while_loop(lambda x: x.sum() < 100, lambda x: (x * 2 + 1,), (x,)),
        [(x,), (x + 100,)],
        None,
    ),
    "integers": (
        lambda m, x: while_loop(lambda i, x: i < 4, lambda i, x: (i + 1, x * i + x), (1, x)),
        [(x,)],
        None,
    ),
    "swapped integers": (
        lambda m, x: while_loop(
            lambda i, a, b, x: i < x.shape[0],
            lambda i, a, b, x: (i + 1, b, a + b, x + a),
            (0, 0, 1, x),
        ),
        [(torch.zeros(n, 3),) for n in (4, 2, 9)],
        (rows,),
    ),
    "rotated": (
        lambda m, i, x, y, z: while_loop(
            lambda i, x, y, z: i < 5,
            lambda i, x, y, z: (i + 1, z.clone(), x.clone(), y.clone()),
            (i, x, y, z),
        ),
        [(i, x, x + 1, x + 2) for i in starts],
        None,
    ),
    "kept and outer": (
        lambda m, i, x, y: while_loop(
            lambda i, x, y: i < 5, lambda i, x, y: (i + 1, x.clone(), m.ones.clone()), (i, x, y)
        ),
        [(i, x, x + 1) for i in starts],
        None,
    ),
    "constant start": (
        lambda m, i: while_loop(lambda i, x: i < 5, lambda i, x: (i + 1, x * 2), (i, m.ones)),
        [(i,) for i in (*starts, *starts)],
        None,
    ),
    "dynamic": (
        lambda m, i, x: while_loop(
            lambda i, x: i < 4, lambda i, x: (i + 1, torch.softmax(x @ x.t(), 0) @ x), (i, x)
        ),
        [(i, torch.randn(n, 3)) for n in (3, 10, 2) for i in starts],
        (None, rows),
    ),
    "nested": (
        lambda m, x: while_loop(
            lambda i, x: i < 4,
            lambda i, x: (
                i + 1,
                while_loop(lambda j, x: j < i, lambda j, x: (j + 1, x + j), (0, x))[1] * 2,
            ),
            (0, x),
        ),
        [(x,)],
        None,
    ),
    "in a branch": (
        lambda m, x: torch.cond(
            x.sum() > 0,
            lambda x: while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2 + i), (0, x))[1],
            lambda x: x.sin(),
            (x,),
        ),
        [(x.abs(),), (-x.abs(),)],
        None,
    ),
    "branches inside": (
        lambda m, x: while_loop(
            lambda i, x: i < 6,
            lambda i, x: (i + 1, torch.cond(x.sum() > 0, lambda x: x - 3, lambda x: x + 2, (x,))),
            (0, x),
        ),
        [(x,), (x + 1,)],
        None,
    ),
    "channels last": (
        lambda m, x: while_loop(
            lambda i, x: i < 3, lambda i, x: (i + 1, torch.relu(m.conv(x)) + x), (0, x)
        ),
        [(image.to(memory_format=torch.channels_last),)],
        None,
    ),
    "two in a row": (
        lambda m, x: while_loop(
            lambda i, y: i < 3,
            lambda i, y: (i + 1, y * 2 + x),
            (0, while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x.sin()), (0, x))[1].t().t()),
        ),
        [(x,)],
        None,
    ),
    "never": (
        lambda m, x: while_loop(lambda x: False, lambda x: (x + 1,), (x,)),
        [(x,)],
        None,
    ),
    "empty": (
        lambda m, x: while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (0, x)),
        [(torch.zeros(0, 3),)],
        None,
    ),
    "float16": (
        lambda m, x: while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (0, x)),
        [(x.half(),)],
        None,
    ),
    "bool": (
        lambda m, x: while_loop(lambda x: x.all(), lambda x: (x.roll(1, 0) ^ (m.ones > 0),), (x,)),
        [(x == x,), (x > 0,)],
        None,
    ),
    "int32": (
        lambda m, x: while_loop(lambda x: x.sum() < 90, lambda x: (x + 7,), (x,)),
        [(x.int(),)],
        None,
    ),
}


@pytest.mark.parametrize("backend", ["portable", "xnnpack"])
@pytest.mark.parametrize("name", CASES)
def test_results_are_those_of_pytorch(name, backend):
    function, calls, dynamic_shapes = CASES[name]
    model = _model(function)
    partitioner = [XnnpackPartitioner()] if backend == "xnnpack" else None
    edge = _edge(model, calls[0], dynamic_shapes, partitioner)
    _compare(model, edge.to_executorch().buffer, calls)


def _swap():
    return CASES["rotated"][0], (_n(0), x, x + 1, x + 2)


@pytest.mark.parametrize(
    "config",
    [
        ExecutorchBackendConfig(memory_planning_pass=MemoryPlanningPass("naive")),
        ExecutorchBackendConfig(memory_planning_pass=MemoryPlanningPass("greedy")),
        ExecutorchBackendConfig(
            memory_planning_pass=MemoryPlanningPass(
                alloc_graph_input=False, alloc_graph_output=False
            )
        ),
        ExecutorchBackendConfig(run_reinplace_pass=True, remove_view_copy=False),
    ],
    ids=["naive", "greedy", "memory of the caller", "in place"],
)
def test_every_plan_of_memory(config):
    function, inputs = _swap()
    model = _model(function)
    _compare(model, _edge(model, inputs).to_executorch(config).buffer, [inputs])


def _without_abs(edge):
    for gm in all_graph_modules(edge.exported_program().graph_module):
        for node in list(gm.graph.nodes):
            if "abs" in str(node.target):
                node.replace_all_uses_with(node.args[0])
                gm.graph.erase_node(node)
        gm.recompile()
    return edge


@pytest.mark.parametrize(
    "body",
    [
        lambda i, a, b, c: (i + 1, b.abs(), a.abs(), c.abs()),
        lambda i, a, b, c: (i + 1, c.abs(), a.abs(), b.abs()),
        lambda i, a, b, c: (i + 1, a.abs(), a.abs(), a.abs()),
        lambda i, a, b, c: (i + 1, b * 2, a.abs(), a.abs()),
    ],
    ids=["swap", "rotate", "same", "new and old"],
)
def test_a_body_may_return_its_inputs_where_a_pass_dropped_an_operator(body):
    model = _model(lambda m, *carried: while_loop(lambda i, *_: i < 3, body, carried))
    inputs = (_n(0), x.abs(), x.abs() + 1, x.abs() + 2)
    buffer = _without_abs(_edge(model, inputs)).to_executorch().buffer
    _compare(model, buffer, [(i, *inputs[1:]) for i in starts])


def test_scan_may_swap_what_it_carries():
    from torch._higher_order_ops.scan import scan

    def combine(carried, x):
        a, b = carried
        return (b.abs(), a.abs()), a + x

    model = _model(lambda m, a, b, xs: scan(combine, (a, b), xs))
    inputs = (x[0].abs(), x[1].abs(), torch.randn(3, 3))
    buffer = _without_abs(_edge(model, inputs)).to_executorch().buffer
    _compare(model, buffer, [inputs])


def test_scan_of_dynamic_carries():
    from torch._higher_order_ops.scan import scan

    model = _model(lambda m, a, xs: scan(lambda a, x: (a * 2 + x, x.sum(0)), a, xs))
    sizes = {0: Dim("n", min=2, max=8)}
    inputs = [(torch.randn(n), torch.randn(4, n)) for n in (5, 2, 8)]
    shapes = (sizes, {1: sizes[0]})
    _compare(model, _edge(model, inputs[0], shapes).to_executorch().buffer, inputs)


def test_layout_is_copies_and_two_jumps():
    function, calls, _ = CASES["constant start"]
    manager = _edge(_model(function), calls[0]).to_executorch()
    plan = manager.executorch_program.execution_plan[0]
    calls = [i.instr_args for i in plan.chains[0].instructions]
    jumps = [(k, c) for k, c in enumerate(calls) if isinstance(c, schema.JumpFalseCall)]
    (out, leave), (back, repeat) = jumps
    assert leave.destination_instruction == len(calls)
    assert plan.values[repeat.cond_value_index].val == schema.Bool(False)
    names = [plan.operators[c.op_index].name for c in calls if isinstance(c, schema.KernelCall)]
    assert names[:2] == ["aten::copy_", "aten::copy_"] and names[-2:] == names[:2]
    assert (repeat.destination_instruction, out, back) == (2, 3, len(calls) - 1)


def test_bodies_are_delegated():
    model = _model(
        lambda m, x: while_loop(
            lambda i, x: i < 5, lambda i, x: (i + 1, torch.tanh(m.linear(x))), (0, x)
        )
    )
    edge = _edge(model, (x,), partitioner=[XnnpackPartitioner()])
    assert sum("linear" in op for op in _delegated(edge)) == 1
    assert sum("tanh" in op for op in _delegated(edge)) == 1
    _compare(model, edge.to_executorch().buffer, [(x,)])


@pytest.mark.parametrize("is_dynamic", [False, True])
def test_a_loop_between_quantized_layers(is_dynamic):
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    model = _model(
        lambda m, x: while_loop(
            lambda i, x: i < 5, lambda i, x: (i + 1, torch.tanh(x + x) * 0.5), (0, m.linear(x))
        )[1]
    )
    config = get_symmetric_quantization_config(is_per_channel=True, is_dynamic=is_dynamic)
    program = export(model, (x,), strict=True).module()
    prepared = prepare_pt2e(program, XNNPACKQuantizer().set_global(config))
    prepared(x)
    quantized = convert_pt2e(prepared)
    edge = exir.to_edge_transform_and_lower(
        export(quantized, (x,)), partitioner=[XnnpackPartitioner()]
    )
    assert any("tanh" in op for op in _delegated(edge))
    (got,) = _run(edge.to_executorch().buffer, (x,))
    step = 4 / 255  # of a sum of two values within -1 and 1; a tie may be rounded either way
    torch.testing.assert_close(got, quantized(x), atol=2 * step, rtol=0)


def test_a_saved_program_with_a_loop():
    function, inputs = _swap()
    model = _model(function)
    file = io.BytesIO()
    exir.save(_edge(model, inputs).exported_program(), file)
    file.seek(0)
    edge = exir.EdgeProgramManager(exir.load(file))
    _compare(model, edge.to_executorch().buffer, [inputs])


def test_an_endless_loop_ends_with_an_error():
    model = _model(lambda m, x: while_loop(lambda x: x.sum() < 1, lambda x: (x * 1,), (x,)))
    method = Runtime.get().load_program(_edge(model, (x,)).to_executorch().buffer)
    with pytest.raises(RuntimeError, match="a loop does not end"):
        method.load_method("forward").execute([x * 0])


def test_a_carried_tensor_keeps_its_shape():
    model = _model(
        lambda m, i, x: while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x.sin()), (i, x))
    )
    edge = _edge(model, (_n(0), x))
    body = list(all_graph_modules(edge.exported_program().graph_module))[2]
    (sin,) = (n for n in body.graph.nodes if "sin" in str(n.target))
    sin.meta["val"] = sin.meta["val"].new_empty(2, 4)
    with pytest.raises(ExportError, match=r"(?s)carried value 1 .*\[2, 3\].*\[2, 4\].*in your mod"):
        edge.to_executorch()
