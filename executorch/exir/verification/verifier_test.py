import operator

import pytest
import torch
from torch._export.verifier import SpecViolationError

from executorch.exir import EdgeCompileConfig, EdgeProgramManager, to_edge
from executorch.exir.dialects._ops import ops as exir_ops
from executorch.exir.verification.verifier import (
    EXIRATenDialectVerifier,
    EXIREdgeDialectVerifier,
)

edge = exir_ops.edge


def program_of(module, *args, config=None):
    return to_edge(torch.export.export(module, args), compile_config=config).exported_program()


def replaced(target, *, args=None, kwargs=None, dtype=None):
    """The edge program of relu, with its one call changed."""
    program = program_of(torch.nn.ReLU(), torch.randn(1, 2, 3, 4))
    (node,) = [n for n in program.graph.nodes if n.op == "call_function"]
    node.target = target
    node.args = node.args if args is None else args(node.args[0])
    node.kwargs = kwargs or {}
    if dtype is not None:
        node.meta["val"] = node.meta["val"].to(dtype)
    return program


@pytest.mark.parametrize(
    "program, message",
    [
        (lambda: replaced(torch.ops.aten.relu.default), "not an edge operator"),
        (lambda: replaced(edge.aten.relu_.default), "writes to its arguments"),
        (lambda: replaced(edge.aten.alias.default), "returns a view"),
        (lambda: replaced(edge.aten.silu.default), "not a core ATen operator"),
        (lambda: replaced(edge.aten.clone.default), "takes a memory format"),
        (
            lambda: replaced(edge.aten.mul.Tensor, args=lambda x: (x, 2)),
            "argument other is the number 2",
        ),
        (
            lambda: replaced(operator.add, args=lambda x: (x, 1)),
            r"aten_relu_default = <built-in function add>: Python's function on input, a tensor of "
            r"torch.float32 and shape \[1, 2, 3, 4\]; expected an edge operator",
        ),
    ],
)
def test_what_breaks_the_dialect_is_refused(program, message):
    with pytest.raises(SpecViolationError, match=message):
        EdgeProgramManager(program())


def test_mixed_dtypes_are_refused():
    class Add(torch.nn.Module):
        def forward(self, x, y):
            return x + y

    program = program_of(Add(), torch.ones(2), torch.ones(2))
    placeholder = next(iter(program.graph.nodes))
    placeholder.meta["val"] = placeholder.meta["val"].to(torch.int64)
    with pytest.raises(SpecViolationError, match="operands must have one dtype.*int64.*float32"):
        EdgeProgramManager(program)


def test_checks_can_be_switched_off():
    config = EdgeCompileConfig(_check_ir_validity=False)
    EdgeProgramManager(replaced(edge.aten.silu.default), compile_config=config)


def test_listed_exceptions_are_allowed():
    config = EdgeCompileConfig(_core_aten_ops_exception_list=[torch.ops.aten.silu.default])
    EdgeProgramManager(replaced(edge.aten.silu.default), compile_config=config)


def test_memory_formats_are_kept_where_dim_orders_are_skipped():
    class ToChannelsLast(torch.nn.Module):
        def forward(self, x):
            return x.to(memory_format=torch.channels_last)

    config = EdgeCompileConfig(_skip_dim_order=True)
    program = program_of(ToChannelsLast(), torch.randn(1, 2, 3, 4), config=config)
    (node,) = [n for n in program.graph.nodes if n.op == "call_function"]
    assert node.kwargs["memory_format"] == torch.channels_last
    with pytest.raises(SpecViolationError, match="memory format"):
        EdgeProgramManager(program)


def test_a_verifier_says_whether_a_graph_keeps_the_rules():
    class Triple(torch.nn.Module):
        def forward(self, x):
            return x * 3

    exported = torch.export.export(Triple(), (torch.ones(2),))
    verifier = EXIREdgeDialectVerifier()
    assert verifier.is_valid(to_edge(exported).exported_program().graph_module)
    assert not verifier.is_valid(exported.graph_module)
    verifier.check_valid_edge_op(edge.aten.mul.Tensor)
    with pytest.raises(SpecViolationError, match="not an edge operator"):
        verifier.check_valid_edge_op(torch.ops.aten.mul.Tensor)


def test_the_verifier_of_aten_graphs_refuses_what_is_not_core():
    class Split(torch.nn.Module):
        def forward(self, x):
            return x.view(2, 2).unflatten(0, (1, 2))

    program = torch.export.export(Split(), (torch.ones(4),))
    op = torch.ops.aten.unflatten.int
    for given in (program, program.graph_module):
        with pytest.raises(SpecViolationError, match="unflatten.int is not a core ATen operator"):
            EXIRATenDialectVerifier()(given)
        EXIRATenDialectVerifier(core_aten_ops_exception_list=[op])(given)
        EXIRATenDialectVerifier(EdgeCompileConfig(_core_aten_ops_exception_list=[op]))(given)
        EXIRATenDialectVerifier(class_only=True, preserve_ops=[op])()(given)
