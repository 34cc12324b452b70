"""What the package relies on in interfaces that PyTorch keeps to itself, one test for each."""

import copy
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import sympy
import torch
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram

from executorch.exir import torch_internals as internals
from executorch.exir.dialects._ops import ops as exir_ops

ADD = torch.ops.aten.add.Tensor


class Scaled(nn.Module):
    offset: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))
        self.register_buffer("offset", torch.zeros(3))
        self.constant = torch.full((3,), 2.0)

    def forward(self, x: Tensor) -> Tensor:
        return x * self.weight + self.offset + self.constant


@pytest.fixture
def program() -> ExportedProgram:
    return torch.export.export(Scaled(), (torch.ones(2, 3),))


@pytest.fixture
def dynamic() -> ExportedProgram:
    shapes = {"x": {0: Dim("n", min=2, max=7)}}
    return torch.export.export(Scaled(), (torch.ones(4, 3),), dynamic_shapes=shapes)


def node_of(program: ExportedProgram, op: str) -> torch.fx.Node:
    return next(n for n in program.graph.nodes if n.op == op)


def test_late_names_exist_and_others_do_not():
    assert all(getattr(internals, name) is not None for name in internals._LATE)
    with pytest.raises(AttributeError, match="no attribute 'sympy_interpreter'"):
        _ = internals.sympy_interpreter


class Stepwise(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        state = torch.zeros(3)
        for i in range(x.shape[0]):  # this line
            state = state * 0.5 + x[i]
        return state


def test_the_line_that_takes_a_dynamic_size_for_a_number_is_found():
    with pytest.raises(RuntimeError) as error:
        shapes = ({0: Dim("n", min=2, max=7)},)
        torch.export.export(Stepwise(), (torch.ones(4, 3),), dynamic_shapes=shapes, strict=False)
    line = internals.line_of_fixed_size(error.value)
    assert line is not None
    path, _, number = line.rpartition(":")
    assert "# this line" in Path(path).read_text().splitlines()[int(number) - 1]
    assert internals.line_of_fixed_size(ValueError("of another kind")) is None


def test_importing_loads_nothing_that_torch_does_not_load():
    code = (
        "import sys, torch; before = set(sys.modules)\n"
        "import executorch.exir.torch_internals\n"
        "new = set(sys.modules) - before\n"
        "print([m for m in sorted(new) if not m.startswith('executorch')])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stdout.strip() == "[]", result.stderr


# Operators


def test_operator_types():
    assert isinstance(ADD, internals.OpOverload)
    assert isinstance(ADD.overloadpacket, internals.OpOverloadPacket)
    assert isinstance(torch.ops.higher_order.cond, internals.HigherOrderOperator)
    assert torch.ops.higher_order.cond.name() == "cond"


@pytest.mark.parametrize("op", [ADD, exir_ops.edge.aten.add.Tensor])
def test_names_and_schema_of_an_operator(op):
    assert internals.op_name(op) == "add"
    assert internals.overload_name(op) == "Tensor"
    assert internals.schema_of(op).name == "aten::add"
    assert [a.name for a in internals.schema_of(op).arguments] == ["self", "other", "alpha"]
    assert internals.find_schema(op) is internals.schema_of(op)


def test_the_overload_without_a_name_is_default():
    assert internals.overload_name(torch.ops.aten.relu.default) == "default"


def test_functions_have_no_schema():
    assert internals.find_schema(len) is None
    with pytest.raises(AttributeError):
        internals.schema_of(len)


def test_packet_name():
    assert internals.packet_name(torch.ops.aten.add) == "aten::add"


def test_all_operator_names_and_schemas():
    assert "aten::add.Tensor" in internals.all_operator_names()
    named = {(s.name, s.overload_name) for s in internals.all_schemas()}
    assert ("aten::add", "Tensor") in named


def test_define_quantized_operators():
    internals.define_quantized_operators()
    assert "quantized_decomposed::quantize_per_tensor" in internals.all_operator_names()


def test_a_higher_order_operator_has_kernels_by_key_and_by_mode():
    class Twice(internals.HigherOrderOperator):
        def __init__(self) -> None:
            super().__init__("twice_of_torch_internals_test")

        def __call__(self, x):
            return super().__call__(x)

    twice = Twice()
    twice.py_autograd_impl(internals.autograd_not_implemented(twice, deferred_error=True))
    twice.py_impl(internals.DispatchKey.CompositeExplicitAutograd)(lambda x: x + x)

    @twice.py_impl(internals.FakeTensorMode)
    def fake(mode, x):
        with mode:
            return x + x

    assert twice(torch.ones(2)).tolist() == [2.0, 2.0]
    with internals.FakeTensorMode() as mode:
        assert twice(mode.from_tensor(torch.ones(2))).shape == (2,)
    with pytest.raises(RuntimeError, match="Autograd not implemented"):
        twice(torch.ones(2, requires_grad=True)).sum().backward()


# Decompositions


def test_composites_can_be_decomposed():
    assert internals.can_decompose(torch.ops.aten.reshape.default)
    assert not internals.can_decompose(ADD)


def test_has_composite_kernel():
    assert internals.has_composite_kernel(torch.ops.aten.reshape.default)
    assert not internals.has_composite_kernel(ADD)


def test_composites_are_seen_while_python_dispatches():
    linear = torch.ops.aten.linear.default
    kernels = dict(linear.py_kernels)
    found = []

    def see(op, own, *args, **kwargs):
        found.append(op)
        return own(*args, **kwargs)

    x, cell = torch.ones(2, 3), nn.LSTMCell(3, 4)
    with torch.no_grad(), internals.enable_python_dispatcher():
        with internals.composites_seen_by(see, [linear]):
            seen = nn.functional.linear(x, torch.ones(4, 3))
            cell(x)  # calls it from C++
        nn.functional.linear(x, torch.ones(4, 3))
    assert found == [linear] * 3 and torch.equal(seen, torch.full((2, 4), 3.0))
    assert linear.py_kernels == kernels


def test_only_composites_that_may_return_a_view_are_not_preservable():
    assert internals.is_preservable_composite(torch.ops.aten.upsample_nearest2d.vec)
    assert not internals.is_preservable_composite(torch.ops.aten.reshape.default)


def test_get_decompositions_are_functions_by_overload():
    table = internals.get_decompositions([torch.ops.aten.log_sigmoid_forward])
    result, _ = table[torch.ops.aten.log_sigmoid_forward.default](torch.tensor([0.0]))
    torch.testing.assert_close(result, torch.tensor([0.5]).log())


def test_reference_linspace_takes_tensors():
    result = internals.reference_linspace(
        torch.tensor(0.0), 1.0, steps=3, dtype=torch.float32, device="cpu"
    )
    assert result.tolist() == [0.0, 0.5, 1.0]


def test_without_mkldnn_restores_the_setting():
    before = torch._C._get_mkldnn_enabled()
    with pytest.raises(KeyError), internals.without_mkldnn():
        assert not torch._C._get_mkldnn_enabled()
        raise KeyError
    assert torch._C._get_mkldnn_enabled() == before


# Dispatch and fake tensors


def test_a_dispatch_mode_sees_calls_unless_dispatch_is_off():
    seen = []

    class Seeing(internals.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))

    with Seeing():
        guard = internals.DisableTorchDispatch()
        torch.ones(1) + 1
        del guard
        assert seen == []
        torch.ones(1) + 1
    assert ADD in seen


def test_the_python_dispatcher_takes_python_kernels():
    with torch.library._scoped_library("torch_internals_test", "FRAGMENT") as library:
        library.define("twice(Tensor x) -> Tensor")
        library.impl("twice", lambda x: x * 2, "CPU")
        twice = torch.ops.torch_internals_test.twice.default
        twice.py_impl(internals.DispatchKey.CPU)(lambda x: x + x + 1)
        assert twice(torch.ones(1)).item() == 2
        with internals.enable_python_dispatcher():
            assert twice(torch.ones(1)).item() == 3


def test_fake_modes_are_found():
    assert internals.active_fake_mode() is None
    with internals.FakeTensorMode(allow_non_fake_inputs=True) as mode:
        assert internals.active_fake_mode() is mode
    fake = mode.from_tensor(torch.ones(2, 3), static_shapes=True)
    assert isinstance(fake, internals.FakeTensor)
    assert fake.shape == (2, 3)
    assert internals.detect_fake_mode([1, fake]) is mode
    assert internals.detect_fake_mode([torch.ones(1)]) is None


def test_traceable_wrapper_subclasses():
    from torch.testing._internal.two_tensor import TwoTensor

    assert internals.is_traceable_wrapper_subclass(TwoTensor(torch.ones(1), torch.ones(1)))
    assert not internals.is_traceable_wrapper_subclass(torch.ones(1))


# Graphs


def test_codegen_of_an_exported_module_knows_its_inputs(program):
    graph = program.module().graph
    assert internals.codegen_of(graph).pytree_info.orig_args == ["x"]
    other = torch.fx.Graph()
    other.set_codegen(internals.codegen_of(graph))
    assert internals.codegen_of(other) is internals.codegen_of(graph)


def test_rename_after_target(program):
    call = node_of(program, "call_function")
    assert call.name == "mul"
    call.target = torch.ops.aten.sub.Tensor
    internals.rename_after_target(call)
    assert call.name == "sub_tensor"


def test_take_name_is_kept_from_others():
    graph = torch.fx.Graph()
    node = graph.placeholder("input")
    assert node.name != "input"
    internals.take_name(node, "input")
    assert node.name == "input"
    assert graph.create_node("placeholder", "input", name="input").name != "input"


def test_lazy_graph_modules_compile_when_called():
    graph = torch.fx.Graph()
    graph.output(graph.placeholder("x"))
    module = internals.LazyGraphModule(nn.Module(), graph)
    assert module._needs_recompile()
    assert module(3) == 3
    assert not module._needs_recompile()


# Exported programs


def test_set_parts_are_what_the_properties_read(program):
    parts = {
        "graph_module": copy.deepcopy(program.graph_module),
        "graph_signature": copy.deepcopy(program.graph_signature),
        "state_dict": dict(program.state_dict),
        "constants": dict(program.constants),
        "range_constraints": {},
        "module_call_graph": list(program.module_call_graph),
        "example_inputs": ((torch.zeros(2, 3),), {}),
        "verifiers": list(program.verifiers),
    }
    new = copy.copy(program)
    internals.set_parts(new, **parts)
    assert all(getattr(new, name) is value for name, value in parts.items())
    new.validate()


def test_set_parts_drops_guards(dynamic):
    internals.set_parts(dynamic, guards_code=[])
    assert dynamic.module()(torch.ones(5, 3)).shape == (5, 3)
    assert dynamic._guards_code == []


def test_set_parts_refuses_other_names(program):
    with pytest.raises(TypeError, match="set_parts: graph: no part; expected constants"):
        internals.set_parts(program, graph=program.graph)


def test_stored_data_by_node(program):
    inputs = {n.name: n for n in program.graph.find_nodes(op="placeholder")}
    weight, offset, constant = (
        inputs[n] for n in ("p_weight", "b_offset", "c_constant") if n in inputs
    )
    assert internals.is_param(program, weight) and not internals.is_param(program, offset)
    assert internals.is_buffer(program, offset) and not internals.is_buffer(program, weight)
    assert internals.is_lifted_tensor_constant(program, constant)
    assert internals.get_param(program, weight).tolist() == [1.0] * 3
    assert internals.get_buffer(program, offset).tolist() == [0.0] * 3
    assert internals.get_lifted_tensor_constant(program, constant).tolist() == [2.0] * 3


def test_a_verifier_of_ones_own_is_asked(program):
    class NoCalls(internals.Verifier):
        dialect = "TORCH_INTERNALS_TEST"

        def check_valid_op(self, op):
            raise internals.SpecViolationError(f"{op} is a call")

    internals.set_parts(program, verifiers=[NoCalls])
    with pytest.raises(internals.SpecViolationError, match="is a call"):
        program.validate()


def test_text_of_an_exported_program_comes_back(program):
    serializer = internals.torch_serde.ExportedProgramSerializer()
    stored = serializer.serialize(program).exported_program
    fields = internals.dataclass_to_dict(stored)
    assert [n["target"] for n in fields["graph_module"]["graph"]["nodes"]][0] == (
        "torch.ops.aten.mul.Tensor"
    )
    text = json.dumps(fields, cls=internals.torch_serde.EnumEncoder)
    again = internals.dict_to_dataclass(internals.ExportedProgramFields, json.loads(text))
    loaded = internals.torch_serde.ExportedProgramDeserializer().deserialize(
        again, program.state_dict, program.constants, ((), {}), _unsafe_skip_version_check=True
    )
    assert [n.name for n in loaded.graph.nodes] == [n.name for n in program.graph.nodes]
    assert issubclass(internals.SerializeError, Exception)


def test_extensions_of_the_text_are_registered_by_type():
    class Operator:
        pass

    class Handler(internals.ExtensionHandler):
        @classmethod
        def namespace(cls):
            return "torch_internals_test"

    assert Operator not in internals.registered_extension_types()
    internals.register_extension(Operator, Handler)
    assert Operator in internals.registered_extension_types()


def test_reduced_fake_tensors_are_their_meta_data():
    fake = internals.FakeTensorMode().from_tensor(torch.ones(2, 3))
    make, (meta, is_parameter) = internals.reduce_fake_tensor(fake)
    assert callable(make) and not is_parameter
    assert json.loads(meta)["sizes"] == [{"as_int": 2}, {"as_int": 3}]
    with internals.fake_tensors_read_into(internals.FakeTensorMode()):
        assert make(meta, is_parameter).shape == (2, 3)
    with pytest.raises(AssertionError):
        make(meta, is_parameter)


# Symbols


def size_of(program: ExportedProgram) -> torch.SymInt:
    results: Any = node_of(program, "output").args[0]
    return results[0].meta["val"].shape[0]


def test_hint_of_a_size(dynamic):
    assert internals.hint_of(size_of(dynamic)) == 4


def test_bounds_of_symbols_and_their_version(dynamic):
    node = size_of(dynamic).node
    ranges = node.shape_env.var_to_range
    assert int(internals.bound_sympy(node.expr * 2, ranges).upper) == 14
    version = internals.bounds_version(node.shape_env)
    internals.forget_bounds(node.shape_env)
    assert internals.bounds_version(node.shape_env) != version


def test_ranges_have_two_ends():
    assert internals.ValueRanges(1, 5).upper == 5


def test_expressions_are_computed_with_other_values():
    x, y = sympy.symbols("x y", integer=True)
    analysis = internals.PythonReferenceAnalysis
    assert internals.sympy_interp(analysis, {x: 3, y: 4}, x * y + 1) == 13


def test_constant_sources_name_symbols(dynamic):
    from torch.fx.experimental.symbolic_shapes import DimDynamic

    shape_env = size_of(dynamic).node.shape_env
    source = internals.ConstantSource("rows")
    symbol = shape_env.create_symbol(3, source, DimDynamic.DYNAMIC, None)
    assert shape_env.create_symintnode(symbol, hint=3, source=source).node.hint == 3


# Containers


def test_trees_are_flat_and_back():
    tree = {"a": [1, 2], "b": (3,)}
    leaves, spec = internals.tree_flatten(tree)
    assert leaves == internals.tree_leaves(tree) == [1, 2, 3]
    assert internals.tree_unflatten(leaves, spec) == tree
    assert isinstance(spec, internals.TreeSpec)
    assert internals.treespec_loads(internals.treespec_dumps(spec)) == spec
    assert internals.tree_map(str, tree) == {"a": ["1", "2"], "b": ("3",)}
    assert internals.pytree.tree_map_only(int, lambda n: -n, [1, "x"]) == [-1, "x"]


def test_values_are_broadcast_to_a_tree():
    spec = internals.tree_flatten([1, (2, 3)])[1]
    assert internals.broadcast_to_and_flatten([7, 8], spec) == [7, 8, 8]


def test_registered_containers_are_flattened():
    class Pair:
        def __init__(self, left, right):
            self.sides = (left, right)

    internals.register_pytree_node(Pair, lambda p: (list(p.sides), None), lambda s, _: Pair(*s))
    assert internals.tree_leaves([Pair(1, 2)]) == [1, 2]


def test_annotations_are_marked():
    from torchao.quantization.pt2e.quantizer import QuantizationAnnotation

    assert internals.is_marked_annotated(QuantizationAnnotation(_annotated=True))
    assert not internals.is_marked_annotated(QuantizationAnnotation())


def test_compiled_modules_have_the_original_one():
    module = torch.nn.Linear(2, 2)
    assert internals.original_module(torch.compile(module)) is module
    assert internals.original_module(module) is module


def test_while_loop_repeats_while_its_condition_holds():
    i, x = internals.while_loop(
        lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (torch.tensor(0), torch.ones(2))
    )
    assert i == 3 and torch.equal(x, torch.full((2,), 8.0))


def test_operators_with_and_without_meta_kernels_are_told_apart():
    torch.library.define("internals_test::unknown_result", "(Tensor x) -> Tensor")
    assert internals.has_meta_kernel(torch.ops.aten.add.Tensor)
    assert not internals.has_meta_kernel(torch.ops.internals_test.unknown_result.default)
