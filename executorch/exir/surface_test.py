"""Modules that scripts import beside the main ones: each does what its name says."""

from __future__ import annotations

import io
import logging
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx import GraphModule

from executorch.exir import EdgeCompileConfig, to_edge
from executorch.exir._serialize._cord import Cord, FileBackedData
from executorch.exir._serialize._named_data_store import NamedDataStore
from executorch.exir._warnings import ExperimentalWarning, experimental
from executorch.exir.capture._callable import as_module
from executorch.exir.common import (
    extract_out_arguments,
    get_schema_for_operators,
    override_logger,
    setting_python_recursive_limit,
)
from executorch.exir.debug_handle_utils import get_greatest_ancestor_node_identifier
from executorch.exir.dialects._ops import ops
from executorch.exir.error import ExportError
from executorch.exir.graph_module import contains_any_call_fn_target_op
from executorch.exir.pass_base import ExportPassBaseError, ProxyValue
from executorch.exir.passes import (
    CSEPass,
    DebugPass,
    dead_code_elimination_pass,
    propagate_dynamic_shape,
    remove_unused_parameters_pass,
)
from executorch.exir.passes.convert_constant_dim_order_pass import convert_constant_dim_order_pass
from executorch.exir.passes.memory_format_ops_pass import DimOrderOpsRevertPass
from executorch.exir.passes.pass_registry import PassRegistry
from executorch.exir.passes.reinplace import DEFAULT_INPLACEABLE_OPS, reinplace_pass
from executorch.exir.program import get_fake_program
from executorch.exir.program._fake_program import update_to_real_program
from executorch.exir.program._program import (
    _remove_invalid_ops_for_not_decompose,
    _transform,
    lift_constant_tensor_pass,
)
from executorch.exir.testing import edge
from executorch.exir.tracer import _default_decomposition_table
from executorch.exir.verification.verifier import EXIREdgeDialectVerifier

X = torch.linspace(-1, 1, 6).reshape(2, 3)


def test_data_in_a_file_is_written_without_being_kept(tmp_path: Path) -> None:
    source = tmp_path / "weights"
    source.write_bytes(b"in a file")
    with FileBackedData.move_from(str(source)) as data:
        assert not source.exists() and len(data) == 9 and data.prefix(4) == b"in a"
        cord = Cord(b"bytes, ")
        cord.append(data)
        out = io.BytesIO()
        cord.write_to_file(out)
        assert out.getvalue() == bytes(cord) == b"bytes, in a file"
        store = NamedDataStore()
        store.add_named_data("key", data)
        assert store.buffers[0] is data
    assert not list(tmp_path.iterdir())


def test_named_data_is_moved_to_files_of_a_size_that_depends_on_keys_only() -> None:
    def moved(order: str) -> dict[str, list[str]]:
        store = NamedDataStore()
        sizes = {"a": 6, "b": 4, "c": 5}
        for key in order:
            store.add_named_data(key, key.encode() * sizes[key])
        store.externalize_pte_data(10, "part")
        assert not store.pte_data
        return {tag: list(entries) for tag, entries in store.external_data.items()}

    assert moved("abc") == moved("cba")
    assert sorted(moved("abc").values()) == [["a", "b"], ["c"]]
    store = NamedDataStore()
    store.add_named_data("large", b"x" * 11)
    with pytest.raises(ValueError, match="exceeds external data shard cap 10.*large"):
        store.externalize_pte_data(10, "part")
    assert list(store.pte_data) == ["large"]


def test_passes_are_found_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PassRegistry, "registry", {})

    @PassRegistry.register()
    class RemoveNothing:
        pass

    assert PassRegistry.get("remove_nothing") == [RemoveNothing]
    with pytest.warns(UserWarning, match="already exists"):
        PassRegistry.register_list("remove_nothing", [])
    with pytest.raises(ExportError, match="no pass 'other'; registered: remove_nothing"):
        PassRegistry.get("other")


def test_equal_calls_are_merged_and_dead_ones_go() -> None:
    program = edge(lambda x: (x + 1) * (x + 1), X)
    assert CSEPass()(program.graph_module).modified
    adds = program.graph.find_nodes(op="call_function", target=ops.edge.aten.add.Tensor)
    assert len(adds) == 1
    module = program.module()
    torch.testing.assert_close(module.forward(X), (X + 1) ** 2)
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    graph.call_function(torch.ops.aten.sin.default, (x,))
    graph.output((x,))
    module = GraphModule({}, graph)
    assert dead_code_elimination_pass(module).modified
    assert not dead_code_elimination_pass(module).modified
    assert contains_any_call_fn_target_op(program.graph_module, {torch.ops.aten.add.Tensor})
    assert not contains_any_call_fn_target_op(program.graph_module, {torch.ops.aten.sin.default})


def test_unused_parameters_leave_the_program() -> None:
    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.used, self.unused = torch.nn.Linear(3, 2), torch.nn.Linear(3, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.used(x)

    model = Model()
    exported = torch.export.export(model, (X,))
    program = remove_unused_parameters_pass(exported)  # type: ignore[operator]
    assert set(program.state_dict) == {"used.weight", "used.bias"}
    torch.testing.assert_close(program.module()(X), model(X))


def test_dim_orders_become_memory_formats_again() -> None:
    x = torch.randn(1, 2, 3, 4)
    program = edge(lambda x: x.to(memory_format=torch.channels_last), x)
    unchecked = EXIREdgeDialectVerifier(EdgeCompileConfig(_check_ir_validity=False), True)
    program = _transform(program, DimOrderOpsRevertPass(), override_verifiers=[unchecked])
    (copy,) = program.graph.find_nodes(
        op="call_function", target=ops.edge.aten._to_copy.default
    ) or program.graph.find_nodes(op="call_function", target=ops.edge.aten.clone.default)
    assert copy.kwargs["memory_format"] is torch.channels_last


def test_transform_takes_passes_one_by_one_and_keeps_an_unchanged_program() -> None:
    program = edge(torch.sin, X)
    assert _transform(program, CSEPass()) is program
    with pytest.raises(AssertionError, match="override_verifiers"):
        _transform(program, [CSEPass()])


def test_constants_become_dense_and_inputs() -> None:
    table = torch.randn(3, 2, 4).permute(2, 0, 1)
    program = edge(lambda x: x + table, torch.ones(4, 3, 2))
    convert_constant_dim_order_pass(program)
    stores = [*program.state_dict.values(), *program.constants.values()]
    assert stores and all(t.is_contiguous() for t in stores)
    assert lift_constant_tensor_pass(program) is program


def test_specs_know_dynamic_sizes() -> None:
    dynamic = ({0: torch.export.Dim("n", max=7)},)
    exported = torch.export.export(as_module(lambda x: x + x), (X,), dynamic_shapes=dynamic)
    config = EdgeCompileConfig(_check_ir_validity=False)
    manager = to_edge(exported, compile_config=config).transform(propagate_dynamic_shape())
    (add,) = manager.exported_program().graph.find_nodes(
        op="call_function", target=ops.edge.aten.add.Tensor
    )
    assert list(add.meta["spec"].shape) == [7, 3]


def test_writing_operators_are_named_by_the_caller() -> None:
    program = edge(lambda x: torch.sin(x) + 1, X)
    add = ops.edge.aten.add.Tensor
    reinplace_pass(program, ops_to_inplace=DEFAULT_INPLACEABLE_OPS | {add})
    assert program.graph.find_nodes(op="call_function", target=ops.edge.aten.add_.Tensor)
    program = edge(lambda x: torch.sin(x) + 1, X)
    reinplace_pass(program, ops_to_inplace=())
    assert program.graph.find_nodes(op="call_function", target=add)
    with pytest.raises(ValueError, match="argument types differ"):
        reinplace_pass(program, inplace_overrides={add: ops.edge.aten.relu_.default})


def test_operators_that_cannot_stay_whole_are_taken_off_a_list() -> None:
    aten = torch.ops.aten
    asked = [aten.linear.default, aten.split.Tensor, aten.add_.Tensor, aten.view.default]
    assert _remove_invalid_ops_for_not_decompose(asked) == [aten.linear.default]
    assert aten.linear.default in _default_decomposition_table()


def test_symbolic_numbers_are_not_made_constants_silently() -> None:
    exported = torch.export.export(
        as_module(lambda x: x.view(x.size(0), -1)),
        (X,),
        dynamic_shapes=({0: torch.export.Dim("n", max=7)},),
    )
    size = next(
        n.meta["val"] for n in exported.graph.nodes if isinstance(n.meta.get("val"), torch.SymInt)
    )
    value = ProxyValue(size, torch.fx.Graph().placeholder("x"))
    for convert, said in ((bool, "boolean context"), (int, "to int"), (range, "index context")):
        with pytest.raises(ExportPassBaseError, match=said):
            convert(value)
    assert int(ProxyValue(3, torch.fx.Graph().placeholder("x"))) == 3


def test_debug_pass_writes_a_file(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    program = edge(torch.sin, X)
    manager = propagate_dynamic_shape()
    for each in manager:
        each(program.graph_module)
    DebugPass("here", show_spec=True, log_filename=str(tmp_path / "log"))(program.graph_module)
    text = (tmp_path / "log").read_text()
    assert text == capsys.readouterr().out
    assert text.startswith("here") and "aten.sin.default" in text and "spec: TensorSpec" in text


def test_schemas_and_out_arguments_are_read() -> None:
    schemas = get_schema_for_operators(["torch.ops.aten.add.Tensor", "torch.ops.no.op.default"])
    assert schemas["aten::add.Tensor"].startswith("aten::add.Tensor(Tensor self")
    assert schemas["no::op.default"] == "<No Schema Found>"
    sort = torch.ops.aten.sort.values._schema
    assert extract_out_arguments(sort, {"values": 1, "indices": 2, "dim": 0}) == [
        ("values", 1),
        ("indices", 2),
    ]


def test_logs_and_limits_are_put_back(tmp_path: Path) -> None:
    level = logging.root.level
    with override_logger(logging.INFO, filename=str(tmp_path / "log")):
        logging.getLogger("a").info("written")
    assert logging.root.level == level and (tmp_path / "log").read_text() == "written\n"
    import sys

    before = sys.getrecursionlimit()
    with setting_python_recursive_limit(before + 10):
        assert sys.getrecursionlimit() == before + 10
    assert sys.getrecursionlimit() == before


def test_experimental_calls_warn() -> None:
    @experimental("may change")
    def f() -> int:
        return 1

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert f() == 1
    assert caught[0].category is ExperimentalWarning and "may change" in str(caught[0].message)


def test_origins_are_identified() -> None:
    program = edge(torch.sin, X)
    (sin,) = program.graph.find_nodes(op="call_function", target=ops.edge.aten.sin.default)
    name, _, graph = get_greatest_ancestor_node_identifier(sin).rpartition(".")
    assert name and int(graph)


def test_a_module_is_told_to_be_exported_first() -> None:
    with pytest.raises(TypeError, match="torch.export.export\\(module, inputs\\) first"):
        to_edge(torch.nn.ReLU())  # type: ignore[arg-type]


def test_a_module_in_training_mode_is_named() -> None:
    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Dropout(0.5))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.inner(x)

    with pytest.warns(UserWarning, match="module inner.1 is in training mode.*dropout"):
        to_edge(torch.export.export(Model().train(), (X,)))
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        to_edge(torch.export.export(Model().eval(), (X,)))


def test_another_method_is_exported_in_the_place_of_forward() -> None:
    from executorch.exir.capture._capture import patch_forward

    class Model(torch.nn.Module):
        def forward(self, x):  # type: ignore[no-untyped-def]
            return x.relu()

        def twice(self, x):  # type: ignore[no-untyped-def]
            return x * 2

    model = Model()
    for _ in range(2):
        with patch_forward(model, model.twice):
            program = torch.export.export(model, (X,))
        assert torch.equal(program.module()(X), X * 2)
        assert torch.equal(model(X), X.relu()) and "forward" not in vars(model)


def test_options_without_effect_are_refused() -> None:
    from executorch.exir import ExecutorchBackendConfig
    from executorch.exir.dynamic_shape import DynamicMemoryPlanningMode

    manager = to_edge(torch.export.export(torch.nn.ReLU(), (X,)))
    unbounded = DynamicMemoryPlanningMode.SYMBOLIC
    assert DynamicMemoryPlanningMode(1) == unbounded == 1
    with pytest.raises(ValueError, match="planned for upper bounds"):
        manager.to_executorch(ExecutorchBackendConfig(dynamic_memory_planning_mode=unbounded))


def test_the_verifier_takes_a_graph_module_and_no_list_of_exceptions() -> None:
    config = EdgeCompileConfig(_core_aten_ops_exception_list=None)  # type: ignore[arg-type]
    program = to_edge(torch.export.export(torch.nn.ReLU(), (X,)), compile_config=config)
    verifier = EXIREdgeDialectVerifier(config)
    verifier(program.exported_program().graph_module)
    aten = torch.export.export(torch.nn.ReLU(), (X,)).graph_module
    with pytest.raises(Exception, match="is not an edge operator"):
        verifier(aten)


def test_a_size_that_a_decomposition_fixes_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    from executorch.exir.program import _to_edge

    decompose = _to_edge.decompose

    def fixing(program, keep):  # type: ignore[no-untyped-def]
        (x,) = program.graph.find_nodes(op="placeholder")
        size = x.meta["val"].shape[0]
        size.node.shape_env.freeze()
        assert size == 2  # of this example
        return decompose(program, keep)

    dynamic = ({0: torch.export.Dim("n", max=7)},)
    exported = torch.export.export(torch.nn.ReLU(), (X,), dynamic_shapes=dynamic)
    monkeypatch.setattr(_to_edge, "decompose", fixing)
    with pytest.raises(RuntimeError, match="dimension 0 of input input.* declared dynamic"):
        to_edge(exported)


def test_passes_take_a_program_under_its_public_name() -> None:
    from executorch.exir.passes.debug_handle_generator_pass import generate_missing_debug_handles
    from executorch.exir.passes.insert_write_back_for_buffers_pass import (
        insert_write_back_for_buffers_pass,
    )
    from executorch.exir.passes.reinplace import reinplace_pass

    program = to_edge(torch.export.export(torch.nn.ReLU(), (X,))).exported_program()
    generate_missing_debug_handles(ep=program)
    module, _ = insert_write_back_for_buffers_pass(ep=program)
    assert module is reinplace_pass(ep=program).graph_module


def test_a_fake_program_has_no_data_until_it_gets_some() -> None:
    real = torch.export.export(torch.nn.Linear(3, 2), (torch.ones(1, 3),))
    fake = get_fake_program(real)
    weight = fake.state_dict["weight"]
    assert isinstance(weight, FakeTensor) and weight.shape == (2, 3)
    assert fake.graph is not real.graph and fake.graph_signature == real.graph_signature
    assert update_to_real_program(fake, real).state_dict["weight"] is real.state_dict["weight"]
    torch.testing.assert_close(fake.module()(torch.ones(1, 3)), real.module()(torch.ones(1, 3)))


def test_modules_are_attributes_of_their_packages() -> None:
    code = (
        "import executorch.exir as exir, executorch.devtools as devtools\n"
        "exir.memory_planning.greedy, exir.control_flow.cond, exir.control_flow.map\n"
        "exir.print_program.pretty_print, devtools.backend_debug.get_delegation_info\n"
        "assert not hasattr(exir, 'no_such_module') and not hasattr(exir, '__wrapped__')\n"
        "from executorch.exir.capture import *\n"
        "assert CallSpec is exir.CallSpec and EdgeCompileConfig is exir.EdgeCompileConfig\n"
        "assert exir.capture.capture is capture\n"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)


def test_the_version_is_that_of_the_package() -> None:
    import executorch
    from executorch.version import __version__, git_version

    assert __version__ == executorch.__version__ and git_version is None
