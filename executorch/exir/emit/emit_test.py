import copy
import operator
import pickle

import pytest
import torch
from torch import nn
from torch.export import Dim, export

from executorch.exir import (
    EdgeCompileConfig,
    ExecutorchBackendConfig,
    emit_program,
    schema,
    to_edge,
)
from executorch.exir._serialize import _deserialize_pte_binary
from executorch.exir.delegate import executorch_call_delegate
from executorch.exir.error import ExportError
from executorch.exir.passes.init_mutable_pass import InitializedMutableBufferPass
from executorch.exir.print_program import print_program
from executorch.runtime import Module


def _lower(function, args, dynamic_shapes=None, config=None, constant_methods=None):
    model = function
    if not isinstance(function, nn.Module):
        model = type("Model", (nn.Module,), {"forward": lambda self, x: function(x)})()
    program = export(model.eval(), args, dynamic_shapes=dynamic_shapes)
    edge = to_edge(program, constant_methods, EdgeCompileConfig(_check_ir_validity=False))
    return edge.to_executorch(config)


def _plan(manager, method=0):
    return manager.executorch_program.execution_plan[method]


def _calls(plan):
    """Instructions as (what, arguments)."""
    found = []
    for instruction in plan.chains[0].instructions:
        call = instruction.instr_args
        if isinstance(call, schema.KernelCall):
            op = plan.operators[call.op_index]
            found.append((f"{op.name}.{op.overload}".rstrip("."), call.args))
        elif isinstance(call, schema.JumpFalseCall):
            found.append(("jump", [call.cond_value_index, call.destination_instruction]))
        elif isinstance(call, schema.MoveCall):
            found.append(("move", [call.move_from, call.move_to]))
    return found


def _names(plan):
    return [name for name, _ in _calls(plan)]


def _value(plan, index):
    return plan.values[index].val


class _LinearRelu(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 3)

    def forward(self, x):
        return self.linear(x).relu()


def test_linear_relu_is_two_instructions_on_numbered_values():
    plan = _plan(_lower(_LinearRelu(), (torch.randn(2, 4),)))
    assert _calls(plan) == [
        ("aten::addmm.out", [0, 2, 1, 4, 5, 3, 3]),
        ("aten::relu.out", [3, 6, 6]),
    ]
    assert (plan.inputs, plan.outputs) == ([2], [6])
    assert _value(plan, 0).data_buffer_idx == 1 and _value(plan, 0).requires_grad
    assert [_value(plan, i) for i in (4, 5)] == [schema.Int(1)] * 2
    assert plan.container_meta_type.encoded_out_str == (
        '[1, {"type": null, "context": null, "children_spec": []}]'
    )


def test_list_items_come_before_their_list():
    plan = _plan(_lower(lambda x: torch.cat([x, x + 1, x]).split(2), (torch.randn(2, 3),)))
    for index, value in enumerate(plan.values):
        if isinstance(value.val, (schema.TensorList, schema.OptionalTensorList)):
            assert all(item < index for item in value.val.items)


def test_several_results_end_with_one_list_of_all():
    plan = _plan(_lower(lambda x: torch.topk(x, 2), (torch.randn(4, 4),)))
    name, args = _calls(plan)[0]
    assert name == "aten::topk.values" and len(args) == 8
    assert _value(plan, args[-1]) == schema.TensorList(args[-3:-1])
    assert plan.outputs == args[-3:-1]


def test_symbolic_sizes_are_computed_at_run_time():
    def model(x):
        return x.reshape(x.shape[0] * 2, -1).relu(), x.shape[0]

    manager = _lower(model, (torch.randn(4, 4),), ({0: Dim("b", max=8)},))
    plan = _plan(manager)
    calls = dict(_calls(plan))
    size = calls["aten::sym_size.int"][-1]
    product = calls["executorch_prim::mul.Scalar"]
    assert product[0] == size and _value(plan, product[1]) == schema.Int(2)
    base, sizes, view = calls["executorch_prim::et_view.default"]
    assert base == plan.inputs[0]
    assert _value(plan, sizes).items[0] == product[-1]
    assert _value(plan, view).sizes == [16, 2]
    assert _value(plan, view).shape_dynamism == schema.TensorShapeDynamism.DYNAMIC_BOUND
    assert plan.outputs[1] == size


def test_unbounded_dimension_is_refused_with_advice():
    with pytest.raises(ExportError) as error:
        _lower(lambda x: x * 2, (torch.randn(4, 4),), ({0: Dim("batch")},))
    message = str(error.value)
    assert "dimension 0" in message and "max=" in message and "input" in message


def test_static_views_are_names_for_planned_memory():
    plan = _plan(_lower(lambda x: (x + 1).view(8, 2).relu(), (torch.randn(4, 4),)))
    assert not any("view" in name for name in _names(plan))
    relu = dict(_calls(plan))["aten::relu.out"][0]
    add = dict(_calls(plan))["aten::add.out"][-1]
    assert _value(plan, relu).sizes == [8, 2]
    assert _value(plan, relu).allocation_info == _value(plan, add).allocation_info


def test_view_that_is_an_output_is_copied():
    plan = _plan(_lower(lambda x: x.view(8, 2), (torch.randn(4, 4),)))
    assert _names(plan) == ["aten::view_copy.out"]


def test_lowering_twice_gives_the_same_program():
    class Views(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("state", torch.ones(8, 2))

        def forward(self, x):
            y = (x + 1).view(8, 2)
            self.state.add_(y)
            values, _ = torch.topk((x * 2).view(8, 2).relu() + y, 1)
            return values

    edge = to_edge(export(Views(), (torch.randn(4, 4),)))
    first = edge.to_executorch().buffer
    assert edge.to_executorch().buffer == first


class _Cond(nn.Module):
    def forward(self, x):
        y = torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos().sin(), (x,))
        return y.reshape(-1).exp()


def test_cond_is_laid_out_as_jumps_and_moves():
    plan = _plan(_lower(_Cond(), (torch.randn(4),)))
    calls = _calls(plan)
    names = [name for name, _ in calls]
    first = names.index("jump")
    assert names[first:] == [
        "jump",
        "aten::sin.out",
        "move",
        "jump",
        "aten::cos.out",
        "aten::sin.out",
        "move",
        *names[first + 7 :],
    ]
    assert calls[first][1][1] == first + 4
    assert calls[first + 3][1][1] == first + 7
    assert _value(plan, calls[first + 3][1][0]) == schema.Bool(False)
    assert calls[first + 2][1][1] == calls[first + 6][1][1]


def test_view_of_a_branch_result_is_made_at_run_time():
    # The result is handed on where the branch put it, so its planned place is not where it lies.
    class Reshaped(_Cond):
        def forward(self, x):
            y = torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos(), (x,))
            return y.reshape(2, 2).exp()

    assert "executorch_prim::et_view.default" in _names(
        _plan(_lower(Reshaped(), (torch.randn(4),)))
    )


def test_branches_of_two_conds_do_not_share_memory():
    class Two(nn.Module):
        def forward(self, x):
            a = torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos(), (x,))
            b = torch.cond(x.sum() > 1, lambda x: x.exp(), lambda x: x.tan(), (x,))
            return a + b

    plan = _plan(_lower(Two(), (torch.randn(64),)))
    calls = dict(_calls(plan))

    def place(op):
        return _value(plan, calls[op][-1]).allocation_info.memory_offset

    assert abs(place("aten::sin.out") - place("aten::exp.out")) >= 256
    assert place("aten::sin.out") == place("aten::cos.out")


def test_map_is_a_loop_over_slices():
    from torch._higher_order_ops.map import map as over

    class Map(nn.Module):
        def forward(self, xs, y):
            return over(lambda x, y: x + y, xs, y)

    plan = _plan(_lower(Map(), (torch.randn(5, 3), torch.randn(3))))
    names = _names(plan)
    assert [n for n in names if not n.startswith("aten::add")] == [
        "executorch_prim::sub.Scalar",
        "aten::sym_size.int",
        "aten::select_copy.int_out",
        "executorch_prim::et_copy_index.tensor",
        "executorch_prim::add.Scalar",
        "executorch_prim::eq.Scalar",
        "jump",
    ]
    assert _calls(plan)[-1][1][1] == 2  # back to the first slice


class _State(nn.Module):
    def __init__(self, start):
        super().__init__()
        self.register_buffer("state", torch.full((3,), float(start)))

    def forward(self, x):
        self.state.add_(x)
        return self.state * 1.0


@pytest.mark.parametrize("is_scan", [False, True])
def test_stacked_rows_have_the_size_that_they_have_in_this_call(is_scan):
    from torch._higher_order_ops.map import map as over
    from torch._higher_order_ops.scan import scan

    def step(carry, row):
        carry = carry * 0.5 + row
        return carry, carry.exp()

    class Loop(nn.Module):
        def forward(self, first, rows):
            return scan(step, first, rows) if is_scan else over(torch.mul, rows, first)

    size, count = Dim("size", max=10), Dim("count", max=6)
    args = (torch.randn(5), torch.randn(4, 5))
    manager = _lower(Loop(), args, ({0: size}, {0: count, 1: size}))
    module = Module(manager.buffer)
    for n, rows in [(5, 4), (3, 6), (10, 2), (2, 3), (7, 1)]:
        given = (torch.randn(n), torch.randn(rows, n))
        found, expected = module.forward(*given), Loop()(*given)
        torch.testing.assert_close(found, list(expected) if is_scan else expected)


def test_initial_state_is_kept_unless_it_is_zero():
    kept = _lower(_State(7), (torch.ones(3),))
    file = _deserialize_pte_binary(kept.buffer)
    assert bytes(file.mutable_data[1].storage) == torch.full((3,), 7.0).numpy().tobytes()
    state = _value(_plan(kept), 0)
    assert state.data_buffer_idx == 1 and state.allocation_info is not None
    assert _calls(_plan(kept))[-1][0] == "aten::copy_"

    zero = _lower(_State(0), (torch.ones(3),))
    assert _deserialize_pte_binary(zero.buffer).mutable_data is None
    config = ExecutorchBackendConfig(passes=[InitializedMutableBufferPass(["state"])])
    asked = _lower(_State(0), (torch.ones(3),), config=config)
    assert _value(_plan(asked), 0).data_buffer_idx == 1


def test_mutations_are_no_outputs_and_names_are_stored_on_request():
    config = ExecutorchBackendConfig(emit_mutable_buffer_names=True)
    plan = _plan(_lower(_State(0), (torch.ones(3),), config=config))
    assert len(plan.outputs) == 1
    assert _value(plan, 0).extra_tensor_info.fully_qualified_name == "state"


class _Swap(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("a", torch.ones(2))
        self.register_buffer("b", torch.zeros(2))

    def forward(self, x):
        old = self.a + 0
        self.a.copy_(self.b)
        self.b.copy_(old)
        return x + self.a


def test_write_backs_read_no_overwritten_buffer():
    plan = _plan(_lower(_Swap(), (torch.ones(2),)))
    written = set()
    for name, args in _calls(plan):
        if name == "aten::copy_":
            assert args[1] not in written
            written.add(args[0])
    assert len(written) == 2


def test_equal_constants_are_stored_once_across_methods():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.one = nn.Parameter(torch.arange(6.0))
            self.two = nn.Parameter(torch.arange(6.0))
            self.view = nn.Parameter(self.one.detach())

        def forward(self, x):
            return x * self.one + self.two - self.view

    model = Tied()
    programs = {name: export(model, (torch.randn(6),)) for name in ("b", "a")}
    manager = to_edge(programs).to_executorch()
    assert [p.name for p in manager.executorch_program.execution_plan] == ["a", "b"]
    assert len(manager.executorch_program.constant_buffer) == 2


def test_constant_methods_follow_the_methods():
    table = torch.arange(4).reshape(2, 2).t()
    constants = {"n": 3, "pair": (1.5, [True, "s"]), "table": table, "kind": torch.int64}
    manager = _lower(_LinearRelu(), (torch.randn(2, 4),), constant_methods=constants)
    plans = manager.executorch_program.execution_plan
    assert [p.name for p in plans] == ["forward", "n", "pair", "table", "kind"]
    assert plans[1].values[0].val == schema.Int(3) and plans[1].outputs == [0]
    assert [v.val for v in plans[2].values] == [
        schema.Double(1.5),
        schema.Bool(True),
        schema.String("s"),
    ]
    index = plans[3].values[0].val.data_buffer_idx
    stored = bytes(manager.executorch_program.constant_buffer[index].storage)
    assert stored == table.contiguous().numpy().tobytes()
    assert plans[4].values[0].val == schema.Int(4)
    assert manager.config_methods == set(constants)


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, [1, 2**70]])
def test_integers_of_more_than_64_bits_are_refused_by_name(number):
    with pytest.raises(ExportError, match="constant method n: -?[0-9]+ does not fit into the 64 b"):
        _lower(_LinearRelu(), (torch.randn(2, 4),), constant_methods={"n": number})


def test_missing_operator_is_named_with_its_line(monkeypatch):
    monkeypatch.setattr(
        "executorch.exir.program._executorch.known_operators", lambda: frozenset({"aten::mul.out"})
    )

    class Model(nn.Module):
        def forward(self, x):
            return x.erfinv()

    with pytest.raises(ExportError) as error:
        _lower(Model(), (torch.rand(4),))
    message = str(error.value)
    assert "aten::erfinv.out" in message and "emit_test.py" in message
    assert "return x.erfinv()" in message


def test_conversion_of_float8_is_refused_with_its_line():
    class Widen(nn.Module):
        def forward(self, x):
            return x.to(torch.float32) + 1

    with pytest.raises(ExportError) as error:
        _lower(Widen(), (torch.ones(4).to(torch.float8_e5m2),))
    message = str(error.value)
    assert "_to_dim_order_copy" in message and "x.to(torch.float32)" in message
    assert "is torch.float8_e5m2" in message and "is torch.float32" in message
    _lower(lambda x: torch.cat([x, x]), (torch.ones(4).to(torch.float8_e5m2),))  # is moved only


def test_operator_without_out_variant_is_named():
    with torch.library._scoped_library("emit_test", "DEF") as lib:
        lib.define("twice(Tensor x) -> Tensor")
        lib.impl("twice", lambda x: x * 2, "CompositeExplicitAutograd")
        with pytest.raises(ExportError, match=r"emit_test::twice"):
            _lower(lambda x: torch.ops.emit_test.twice(x), (torch.rand(4),))


def test_complex_tensors_are_refused_by_operators_of_real_ones():
    with pytest.raises(Exception, match="complex64"):
        _lower(lambda x: torch.view_as_real(torch.tanh(torch.fft.fft(x))), (torch.rand(4),))


def test_stack_traces_are_stored_on_request():
    config = ExecutorchBackendConfig(emit_stacktrace=True)
    chain = _plan(_lower(_LinearRelu(), (torch.randn(2, 4),), config=config)).chains[0]
    assert len(chain.stacktrace) == len(chain.instructions)
    frames = chain.stacktrace[-1].items
    assert any(f.context == "return self.linear(x).relu()" for f in frames)


def test_debug_handles_are_noted_per_instruction():
    manager = _lower(_LinearRelu(), (torch.randn(2, 4),))
    handles = manager.debug_handle_map["forward"]
    assert list(handles) == [0, 1]
    assert handles[0] != handles[1]


class _Lowered(nn.Module):
    backend_id = "Demo"
    processed_bytes = b"blob"
    compile_specs = [schema.CompileSpec("k", b"v")]


def test_delegate_calls_list_inputs_then_outputs():
    manager = _lower(lambda x: (x.sin() + 0.5).cos(), (torch.randn(4),))
    graph_module = copy.deepcopy(manager.exported_program().graph_module)
    program = manager.exported_program()
    sin = next(n for n in graph_module.graph.nodes if "sin" in n.name)
    graph_module.lowered_module_0 = _Lowered()

    with graph_module.graph.inserting_before(sin):
        module = graph_module.graph.get_attr("lowered_module_0")
        call = graph_module.graph.call_function(executorch_call_delegate, (module, sin.args[0], 2))
    call.meta = {"val": [sin.meta["val"]], "spec": [sin.meta["spec"]]}
    with graph_module.graph.inserting_before(sin):
        item = graph_module.graph.call_function(operator.getitem, (call, 0))
    item.meta = {"val": sin.meta["val"], "spec": sin.meta["spec"]}
    sin.replace_all_uses_with(item)
    graph_module.graph.erase_node(sin)
    program._graph_module = graph_module
    output = emit_program(program)
    plan = output.program.execution_plan[0]
    delegate = next(
        i.instr_args
        for i in plan.chains[0].instructions
        if isinstance(i.instr_args, schema.DelegateCall)
    )
    assert delegate.args[0] == plan.inputs[0]
    assert _value(plan, delegate.args[1]) == schema.Int(2)
    assert isinstance(_value(plan, delegate.args[2]), schema.Tensor)
    assert (
        plan.delegates[0].id == "Demo" and output.program.backend_delegate_data[0].data == b"blob"
    )
    assert list(output.instruction_id_to_num_outs_map["forward"].values()) == [1]


def test_printed_program_names_operators_and_places(capsys):
    print_program(_lower(_LinearRelu(), (torch.randn(2, 4),)).executorch_program)
    text = capsys.readouterr().out
    assert "0: aten::addmm.out" in text and "1CT[4, 3]float32" in text and "I0" in text


@pytest.mark.parametrize("external", [False, True])
def test_programs_are_copied_with_their_bytes(external):
    layers = nn.Sequential(nn.Linear(64, 32), nn.Conv1d(1, 2, 3))  # the first is stored transposed
    config = ExecutorchBackendConfig(external_constants=external)
    program = _lower(layers, (torch.ones(1, 1, 64),), config=config)
    copied = copy.deepcopy(program)
    assert copied.buffer == program.buffer
    files = {name: bytes(cord) for name, cord in program._tensor_data.items()}
    assert {name: bytes(cord) for name, cord in copied._tensor_data.items()} == files
    storages = [schema.bytes_of(b.storage) for b in program.executorch_program.constant_buffer]
    read = pickle.loads(pickle.dumps(program.executorch_program))
    assert [b.storage for b in read.constant_buffer] == storages
    assert len(storages) + len(files) > 1


def test_a_view_of_an_external_weight_has_no_entry_in_the_file(tmp_path):
    class Reads(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.randn(4, 6))

        def forward(self, x):
            return x @ self.weight + (x @ self.weight.view(6, 4).t()).relu()

    model, x = Reads(), torch.randn(2, 4)
    program = _lower(model, (x,), config=ExecutorchBackendConfig(external_constants=True))
    infos = [getattr(v.val, "extra_tensor_info", None) for v in _plan(program).values]
    assert [info.fully_qualified_name for info in infos if info is not None] == ["weight"]
    program.write_tensor_data_to_file(str(tmp_path))
    (file,) = tmp_path.iterdir()
    torch.testing.assert_close(Module(program.buffer, data_path=file)(x), model(x))
