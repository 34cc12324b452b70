"""Arguments of the wrong type are refused by the call that is given them."""

import re

import pytest
import torch

from executorch.exir import (
    EdgeCompileConfig,
    EdgeProgramManager,
    ExecutorchBackendConfig,
    to_edge,
    to_edge_transform_and_lower,
)
from executorch.exir.error import ExportError
from executorch.exir.pass_base import ExportPass
from executorch.exir.passes import MemoryPlanningPass
from executorch.exir.passes.sym_shape_eval_pass import ConstraintBasedSymShapeEvalPass

PROGRAM = torch.export.export(torch.nn.Linear(4, 3), (torch.ones(2, 4),))


@pytest.mark.parametrize("lower", [to_edge, to_edge_transform_and_lower, EdgeProgramManager])
def test_methods_have_names_and_constants_are_a_dict(lower):
    with pytest.raises(TypeError, match="programs: expected a str as a method's name, found 3"):
        lower({3: PROGRAM})
    with pytest.raises(TypeError, match=r"constant_methods: expected a dict .*, found \[1\]"):
        lower(PROGRAM, constant_methods=[1])
    with pytest.raises(TypeError, match="constant_methods: expected a str .*, found 7"):
        lower(PROGRAM, constant_methods={7: 1})
    for name in ("a\0b", "\ud800"):
        with pytest.raises(ValueError, match="programs: .* is no method's name: expected UTF-8"):
            lower({name: PROGRAM})
        with pytest.raises(ValueError, match="constant_methods: .* is no method's name"):
            lower(PROGRAM, constant_methods={name: 1})


@pytest.mark.parametrize("value", ["\ud800", torch.eye(2).to_sparse()], ids=["text", "sparse"])
def test_constants_that_no_program_holds_are_refused_by_name(value):
    edge = to_edge(PROGRAM, constant_methods={"n": value})
    with pytest.raises(ExportError, match="constant method n: .*(surrogates|sparse_coo tensor)"):
        edge.to_executorch()


def test_passes_of_a_method_that_does_not_exist_are_refused():
    with pytest.raises(KeyError, match=r"transform: no methods \['typo'\].*'forward'"):
        to_edge(PROGRAM).transform({"typo": [ExportPass()]})
    with pytest.raises(KeyError, match=r"no methods \['typo'\]"):
        to_edge_transform_and_lower(PROGRAM, transform_passes={"typo": [ExportPass()]})
    with pytest.raises(KeyError, match=r"to_backend: no methods \[3, 'typo'\]"):
        to_edge(PROGRAM).to_backend({3: None, "typo": None})


@pytest.mark.parametrize(
    ("passes", "found"),
    [
        (ExportPass(), "found <.*ExportPass object"),
        ("text", "found 'text'"),
        ([ExportPass], "found <class .*ExportPass'>"),
        ([[ExportPass(), 3]], "found 3"),
        ({"forward": [None]}, "found None"),
    ],
)
def test_what_is_no_list_of_passes_is_refused(passes, found):
    with pytest.raises(TypeError, match=f"passes: expected .*{found}"):
        to_edge(PROGRAM).transform(passes)
    with pytest.raises(TypeError, match=f"passes: expected .*{found}"):
        to_edge_transform_and_lower(PROGRAM, transform_passes=passes)
    if not isinstance(passes, dict):
        with pytest.raises(TypeError, match=f"passes: expected .*{found}"):
            to_edge(PROGRAM).to_executorch(ExecutorchBackendConfig(passes=passes))


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("_check_ir_validity", "no"),
        ("preserve_ops", torch.ops.aten.linear.default),
        ("preserve_ops", [torch.ops.aten.linear]),
        ("_core_aten_ops_exception_list", ["aten.linear"]),
    ],
)
def test_edge_options_have_types(option, value):
    config = EdgeCompileConfig(**{option: value})
    with pytest.raises(TypeError, match=f"EdgeCompileConfig.{option}: expected .*, found"):
        to_edge(PROGRAM, compile_config=config)
    with pytest.raises(TypeError, match=f"EdgeCompileConfig.{option}: expected .*, found"):
        to_edge(PROGRAM).transform([], config)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("emit_stacktrace", "no"),
        ("external_constants", "weights"),
        ("memory_planning_pass", None),
        ("memory_planning_pass", {"forward": 3}),
        ("sym_shape_eval_pass", ExportPass),
        ("to_out_var_pass", 3),
        ("propagate_device_config", {"forward": 1}),
        ("segment_alignment", 1.5),
        ("constant_tensor_alignment", "16"),
        ("reinplace_extra_ops", 3),
    ],
)
def test_backend_options_have_types(option, value):
    config = ExecutorchBackendConfig(**{option: value})
    found = value["forward"] if isinstance(value, dict) else value
    message = f"ExecutorchBackendConfig.{option}: expected .*, found {re.escape(repr(found))}"
    with pytest.raises(TypeError, match=message):
        to_edge(PROGRAM).to_executorch(config)


def test_methods_without_an_entry_have_the_default_passes():
    manager = to_edge({"a": PROGRAM, "b": PROGRAM})
    config = ExecutorchBackendConfig(
        memory_planning_pass={"a": MemoryPlanningPass(alloc_graph_input=False)},
        sym_shape_eval_pass={"a": ConstraintBasedSymShapeEvalPass()},
    )
    program = manager.to_executorch(config)
    planned = {
        name: next(
            node.meta["spec"].mem_id
            for node in program.exported_program(name).graph.find_nodes(op="placeholder")
            if node.name == "input"
        )
        for name in ("a", "b")
    }
    assert planned == {"a": None, "b": 1}


@pytest.mark.parametrize("data", [[1], {1: b""}, {"a": "text"}, {"a": 1}])
def test_named_data_are_bytes_by_name(data):
    with pytest.raises(TypeError, match="named_data: .*expected .*, found"):
        to_edge(PROGRAM).to_executorch(named_data=data)
