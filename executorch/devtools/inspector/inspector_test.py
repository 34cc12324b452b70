"""Rows, tables and comparisons, of dumps that are written by hand."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
import torch

from executorch.devtools import ETRecord
from executorch.devtools.etdump.schema_flatcc import (
    AllocationEvent,
    Allocator,
    Bool,
    DebugEvent,
    Double,
    ETDumpFlatCC,
    Event,
    Int,
    ProfileEvent,
    RunData,
    ScalarType,
    Tensor,
    TensorList,
    Value,
)
from executorch.devtools.etdump.serialize import serialize_to_etdump_flatcc
from executorch.devtools.inspector import Inspector, TimeScale, compare_results
from executorch.devtools.inspector.inspector_cli import main
from executorch.devtools.inspector.numerical_comparator import MSEComparator
from executorch.exir import to_edge


def profile(name, instruction=0, start=0, end=1000, chain=0, id=-1, text=None, metadata=None):
    event = ProfileEvent(name, chain, instruction, id, text, metadata, start, end)
    return Event(event, None, None)


def value(tensor=None, output=None, **fields):
    empty = dict.fromkeys(("tensor_list", "int_value", "float_value", "double_value", "bool_value"))
    kind = "Tensor" if tensor is not None else fields.pop("kind")
    return Value(kind, tensor=tensor, output=output, **{**empty, **fields})


def debug(instruction=0, tensor=None, chain=0, id=-1, text=None, output=None, **fields):
    entry = value(tensor, output, **fields)
    return Event(None, None, DebugEvent(None, chain, instruction, id, text, entry))


def floats(offset, *sizes, strides=None):
    contiguous = [int(np.prod(sizes[i + 1 :])) for i in range(len(sizes))]
    return Tensor(ScalarType.FLOAT, list(sizes), strides or contiguous, offset)


def dump(*runs, index=-1):
    data = [RunData(name, index, None, events) for name, events in runs]
    return serialize_to_etdump_flatcc(ETDumpFlatCC(0, data), True)


EXECUTE = (
    "Execute",
    [
        profile("native_call_a.out", 0, 10, 20),
        profile("OPERATOR_CALL", 0, 5, 25),
        profile("native_call_b.out", 1, 30, 60),
        profile("OPERATOR_CALL", 1, 25, 70),
        profile("Method::execute", 0, 0, 80, chain=-1),
    ],
)


@pytest.fixture
def buffer(tmp_path: Path) -> str:
    path = tmp_path / "debug.bin"
    path.write_bytes(np.arange(64, dtype=np.float32).tobytes())
    return str(path)


def rows(inspector: Inspector) -> list[tuple]:
    return [
        (b.name, e.name, e.perf_data.raw if e.perf_data else None)
        for b in inspector.event_blocks
        for e in b.events
    ]


def test_a_row_for_every_event_in_the_order_of_the_run() -> None:
    inspector = Inspector(
        etdump_data=dump(("Default", [profile("Method::init", 0, 0, 7, -1)]), EXECUTE),
        target_time_scale=TimeScale.NS,
    )
    assert rows(inspector) == [
        ("Default", "Method::init", [7.0]),
        ("Execute", "native_call_a.out", [10.0]),
        ("Execute", "OPERATOR_CALL", [20.0]),
        ("Execute", "native_call_b.out", [30.0]),
        ("Execute", "OPERATOR_CALL", [45.0]),
        ("Execute", "Method::execute", [80.0]),
    ]


def test_runs_with_equal_events_are_one_block() -> None:
    slower = ("Execute", [profile("native_call_a.out", 0, 0, 30), profile("other", 1, 0, 9)])
    faster = ("Execute", [profile("native_call_a.out", 0, 100, 110), profile("other", 1, 0, 9)])
    inspector = Inspector(etdump_data=dump(slower, EXECUTE, faster), target_time_scale=TimeScale.NS)
    assert [len(b.events) for b in inspector.event_blocks] == [2, 5]
    event = inspector.event_blocks[0].events[0]
    assert event.perf_data.raw == [30.0, 10.0] and event.start_time == [0, 100]
    assert (event.perf_data.avg, event.perf_data.p50, event.perf_data.p10) == (20.0, 20.0, 12.0)
    assert (event.perf_data.min, event.perf_data.max, event.perf_data.p90) == (10.0, 30.0, 28.0)


def test_an_instruction_in_a_loop_keeps_all_its_durations() -> None:
    loop = ("Execute", [profile("native_call_a.out", 0, 10 * i, 11 * i + 1) for i in range(3)])
    inspector = Inspector(etdump_data=dump(loop), target_time_scale=TimeScale.NS)
    assert rows(inspector) == [("Execute", "native_call_a.out", [1.0, 2.0, 3.0])]


def test_the_columns_are_the_documented_ones() -> None:
    times = [f"{s} (ms)" for s in ("p10", "p50", "p90", "avg", "min", "max")]
    first = ["event_block_name", "event_name", "raw", *times, "op_types"]
    identity = ["delegate_debug_identifier", "stack_traces", "module_hierarchy"]
    last = ["is_delegated_op", "delegate_backend_name", "debug_data", "start_time"]
    inspector = Inspector(etdump_data=dump(EXECUTE))
    assert list(inspector.to_dataframe().columns) == [*first, *identity, *last]
    assert "p10" in inspector.to_dataframe(include_units=False).columns
    empty = Inspector(etdump_data=dump(("Execute", []))).to_dataframe()
    assert list(empty.columns) == [*first, *identity, *last] and len(empty) == 0


@pytest.mark.parametrize(
    "source, target, milliseconds", [("us", "ms", 1.0), ("ns", "us", 1.0), ("s", "ns", 1e12)]
)
def test_times_are_converted(source, target, milliseconds) -> None:
    inspector = Inspector(
        etdump_data=dump(("Execute", [profile("a", 0, 0, 1000)])),
        source_time_scale=TimeScale(source),
        target_time_scale=TimeScale(target),
    )
    assert rows(inspector)[0][2] == [pytest.approx(milliseconds)]


def test_cycles_go_with_cycles_only() -> None:
    with pytest.raises(RuntimeError, match="found cycles and ms"):
        Inspector(etdump_data=dump(EXECUTE), source_time_scale=TimeScale.CYCLES)


def test_a_clock_of_32_bits_may_start_anew() -> None:
    run = ("Execute", [profile("a", 0, 2**32 - 10, 5)])
    inspector = Inspector(etdump_data=dump(run), target_time_scale=TimeScale.NS)
    assert rows(inspector)[0][2] == [14.0]


def test_values_go_to_the_events_of_their_instruction(buffer: str) -> None:
    channels_last = floats(0, 2, 3, strides=[1, 2])
    two = TensorList([floats(64, 2), floats(128, 1)])
    run = [
        debug(0, channels_last),
        debug(0, kind="TensorList", tensor_list=two),
        debug(0, kind="Int", int_value=Int(7)),
        debug(0, kind="Double", double_value=Double(0.5)),
        profile("native_call_a.out"),
        profile("OPERATOR_CALL"),
        debug(0, floats(-1, 0), chain=2**64 - 1, output=Bool(True)),
    ]
    block = Inspector(etdump_data=dump(("Execute", run)), debug_buffer_path=buffer).event_blocks[0]
    assert [e.name for e in block.events] == ["native_call_a.out", "OPERATOR_CALL"]
    for event in block.events:
        tensor, tensors, seven, half = event.debug_data
        assert tensor.tolist() == [[0, 2, 4], [1, 3, 5]]
        assert [t.tolist() for t in tensors] == [[16, 17], [32]]
        assert (seven, half) == (7, 0.5)
    assert [tuple(t.shape) for t in block.run_output] == [(0,)]


def allocations(*events: AllocationEvent) -> bytes:
    allocators = [Allocator("method"), Allocator("temp"), Allocator("idle")]
    all_events = [profile("a"), *(Event(None, event, None) for event in events)]
    runs = [RunData("Execute", -1, allocators, all_events)] * 2
    return serialize_to_etdump_flatcc(ETDumpFlatCC(0, runs), True)


def test_allocations_have_a_table_of_their_own(capsys: pytest.CaptureFixture[str]) -> None:
    data = allocations(AllocationEvent(1, 4096), AllocationEvent(2, 64), AllocationEvent(2, 2**40))
    inspector = Inspector(etdump_data=data)
    (block,) = inspector.event_blocks
    assert block.allocations == {"method": [4096] * 2, "temp": [64, 2**40] * 2, "idle": []}
    table = inspector.allocations_to_dataframe()
    assert table.values.tolist() == [
        ["Execute", "method", 2, 2 * 4096, 4096],
        ["Execute", "temp", 4, 2 * (64 + 2**40), 2**40],
        ["Execute", "idle", 0, 0, 0],
    ]
    assert len(inspector.to_dataframe()) == 1
    inspector.print_data_tabular()
    assert "<table" in inspector._repr_html_()
    assert "allocator" in capsys.readouterr().out
    assert not len(Inspector(etdump_data=dump(EXECUTE)).allocations_to_dataframe())


def test_an_allocation_by_nobody_is_refused() -> None:
    with pytest.raises(ValueError, match="run 0 .'Execute'., event 1: allocator 4 of 3"):
        Inspector(etdump_data=allocations(AllocationEvent(4, 8)))


def test_a_tensor_outside_of_the_debug_buffer_is_refused(buffer: str) -> None:
    data = dump(("Execute", [debug(0, floats(200, 32)), profile("a")]))
    with pytest.raises(ValueError, match="run 0 .'Execute'., event 0.* ends at 328.* 256 bytes"):
        Inspector(etdump_data=data, debug_buffer_path=buffer)


def test_runs_that_differ_in_values_are_refused(buffer: str) -> None:
    runs = [("Execute", [debug(3, floats(i, 2)), profile("a", 3)]) for i in (0, 64)]
    with pytest.raises(AssertionError, match="instruction 3 of 'Execute'"):
        Inspector(etdump_data=dump(*runs), debug_buffer_path=buffer)


DELEGATE = (
    "Execute",
    [
        profile(None, 0, 0, 10, id=0, metadata=b"m"),
        profile(None, 0, 10, 30, id=5),
        profile(None, 0, 30, 60, text="conv #2"),
        profile("DELEGATE_CALL", 0, 0, 70),
    ],
)


def test_delegates_are_rows_with_their_own_clock_and_metadata() -> None:
    inspector = Inspector(
        etdump_data=dump(DELEGATE),
        target_time_scale=TimeScale.NS,
        delegate_time_scale_converter=lambda name, time: time * (3 if name == "conv #2" else 1),
        delegate_metadata_parser=lambda given: {"n": len(given)},
    )
    assert [r[1:] for r in rows(inspector)] == [
        ("0", [10]),
        ("5", [20]),
        ("conv #2", [90]),
        ("DELEGATE_CALL", [70.0]),
    ]
    table = inspector.to_dataframe(include_delegate_debug_data=True)
    assert table["n"].tolist()[:3] == [1, 0, 0] and np.isnan(table["n"][3])
    assert table["is_delegated_op"].tolist() == [True, True, True, False]
    assert inspector.event_blocks[0].events[0].delegate_debug_metadatas == {"n": 1}
    event = Inspector(etdump_data=dump(DELEGATE)).event_blocks[0].events[0]
    assert event.delegate_debug_metadatas == event.raw_delegate_debug_metadatas


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(2, 2)

    def forward(self, x):
        return torch.relu(self.first(x)), torch.topk(x, 1).values


X = torch.tensor([[1.0, -2.0]])


@pytest.fixture(scope="module")
def record() -> ETRecord:
    exported = torch.export.export(Net(), (X,))
    return to_edge(exported, generate_etrecord=True).to_executorch().get_etrecord()


def test_rows_name_operators_lines_and_modules(record: ETRecord) -> None:
    # the weight is transposed ahead of time, so that addmm comes first
    assert record._debug_handle_map == {"forward": {0: 1, 1: 2, 2: 3}}
    inspector = Inspector(etdump_data=dump(EXECUTE), etrecord=record)
    first, _, relu, *_, method = inspector.event_blocks[0].events
    assert first.op_types == ["aten.permute_copy.default", "aten.addmm.default"]
    assert __file__ in first.stack_traces["aten_addmm_default_"]
    hierarchy = first.module_hierarchy["aten_addmm_default_"]
    assert hierarchy["L__self__first"] == ("first", "torch.nn.modules.linear.Linear")
    assert relu.op_types == ["aten.relu.default"] and method.op_types == []
    in_first, in_all = map(inspector.find_total_for_module, ("L__self__first", "L__self__"))
    assert (in_first, in_all) == (pytest.approx(10e-6), pytest.approx(40e-6))
    assert list(inspector.get_op_list("Execute")["aten.relu.default"]) == [relu]


def test_delegates_resolve_by_the_debug_handle_map(record: ETRecord) -> None:
    delegated = record.copy()
    delegated._debug_handle_map = {"forward": {"0": [1, 2]}}
    handles = {"0": [2], "conv": [1]}
    delegated._delegate_map = {"forward": {"0": {"name": "Backend", "delegate_map": handles}}}
    inspector = Inspector(etdump_data=dump(DELEGATE), etrecord=delegated)
    linear = ["aten.permute_copy.default", "aten.addmm.default"]
    found = [(e.op_types, e.delegate_backend_name) for e in inspector.event_blocks[0].events]
    assert found == [
        (["aten.relu.default"], "Backend"),
        ([], "Backend"),
        (linear, "Backend"),
        ([*linear, "aten.relu.default"], "Backend"),
    ]
    without = inspector.get_op_list("Execute", show_delegated_ops=False)
    assert [e.name for e in without["aten.relu.default"]] == ["DELEGATE_CALL"]


def recorded_values(buffer: Path, linear: torch.Tensor, relu: torch.Tensor) -> bytes:
    """A dump of `Net` whose instructions gave these values."""
    buffer.write_bytes(
        linear.numpy().tobytes() + relu.numpy().tobytes() + np.float32(1.0).tobytes()
    )
    index = Tensor(ScalarType.LONG, [1, 1], [1, 1], -1)
    run = [
        profile("native_call_addmm.out", 0),
        debug(0, floats(0, 1, 2)),
        profile("native_call_relu.out", 1),
        debug(1, floats(8, 1, 2)),
        profile("native_call_topk.values", 2),
        debug(2, floats(16, 1, 1)),
        debug(2, index),
    ]
    return dump(("Execute", run))


@pytest.mark.parametrize("graph", ["exported_program", "edge_dialect_exported_program", None])
def test_the_gap_is_of_each_operators_values(record: ETRecord, tmp_path: Path, graph) -> None:
    state = record.exported_program.state_dict
    with torch.no_grad():
        linear = torch.nn.functional.linear(X, state["first.weight"], state["first.bias"])
    path = tmp_path / "values"
    data = recorded_values(path, linear, torch.relu(linear) + 0.5)
    inspector = Inspector(etdump_data=data, etrecord=record, debug_buffer_path=str(path))
    for distance, expected in (("L1", 1.0), ("MSE", 0.25)):
        table = inspector.calculate_numeric_gap(distance, reference_graph=graph)
        assert table["aot_debug_handle"].tolist() == [(1,), (2,), (3,), (3,)]
        assert table["gap"][0][0] <= 1e-6 and table["gap"][1] == [pytest.approx(expected)]
        assert table["gap"][2] == [0.0] and table["gap"][3] == [0.0]
    name = "aten_relu_default" if graph and graph.startswith("edge") else "relu"
    assert table["aot_ops"][1] == [name] and table["runtime_ops"][1] == ["native_call_relu.out"]
    assert __file__ in table["stacktraces"][1][name]
    snr = inspector.calculate_numeric_gap("SNR", reference_graph=graph)["gap"]
    assert snr[1][0] < 40 < 100 < snr[0][0]


def test_what_a_gap_needs_is_named(record: ETRecord, buffer: str) -> None:
    with pytest.raises(ValueError, match="needs an ETRecord"):
        Inspector(etdump_data=dump(EXECUTE)).calculate_numeric_gap("MSE")
    with pytest.raises(ValueError, match="needs the debug buffer"):
        Inspector(etdump_data=dump(EXECUTE), etrecord=record).calculate_numeric_gap("MSE")
    full = Inspector(etdump_data=dump(EXECUTE), etrecord=record, debug_buffer_path=buffer)
    with pytest.raises(ValueError, match=r"found 'MAX', expected one of \['L1', 'MSE', 'SNR'\]"):
        full.calculate_numeric_gap("MAX")
    with pytest.raises(TypeError, match="distance: expected one of .* found <class"):
        full.calculate_numeric_gap(MSEComparator)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="time scale: expected one of TimeScale, found 'ns'"):
        Inspector(etdump_data=dump(EXECUTE), source_time_scale="ns")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="Reference graph 'gone' not found"):
        full.calculate_numeric_gap("MSE", reference_graph="gone")
    other = record.copy()
    other.update_representative_inputs([X, X])
    wrong = Inspector(etdump_data=dump(EXECUTE), etrecord=other, debug_buffer_path=buffer)
    with pytest.raises(ValueError, match="expected 1 values, found 2"):
        wrong.calculate_numeric_gap("MSE")


def delegated(*operations: str) -> bytes:
    """A dump of a delegate that says what it did."""
    events = [profile(None, 0, text=operation) for operation in operations]
    return dump(("Execute", [*events, profile("DELEGATE_CALL", 0)]))


@pytest.mark.parametrize(
    ("data", "delegates", "message"),
    [
        (dump(EXECUTE), {}, "2 of 2 calls differ; instruction 0: the run called a.out, the record"),
        (dump(EXECUTE), {"0": {"name": "Demo"}}, "called a.out, the record has a call of Demo"),
        (delegated("Tanh"), {}, "instruction 0: the run called a delegate, the record has none"),
        (
            delegated("Tanh", "Relu"),
            {"0": {"name": "Demo", "delegate_map": {"Exp": [1], "Relu": [2], "Add": [2]}}},
            r"the delegate told of \['Tanh', 'Relu'\], the record of \['Exp', 'Relu', 'Add'\]",
        ),
    ],
)
def test_the_record_of_another_program_is_refused(
    record: ETRecord, buffer: str, data: bytes, delegates, message
) -> None:
    other = record.copy()
    other._delegate_map = {"forward": delegates}
    inspector = Inspector(etdump_data=data, etrecord=other, debug_buffer_path=buffer)
    with pytest.raises(ValueError, match=f"the ETRecord is of another program .*{message}"):
        inspector.calculate_numeric_gap("MSE")


def test_operators_of_the_library_xnnpack_do_not_tell_programs_apart(
    record: ETRecord, buffer: str
) -> None:
    other = record.copy()
    nodes = {"Conv2d #1": [1], "StaticReshape #4": [2], "StaticSlice #6": [2]}
    other._delegate_map = {"forward": {"0": {"name": "XnnpackBackend", "delegate_map": nodes}}}
    data = delegated("Convolution (NHWC, F32) IGEMM #1", "Static Reshape (NC) #1")
    inspector = Inspector(etdump_data=data, etrecord=other, debug_buffer_path=buffer)
    with pytest.raises(ValueError) as error:  # there are no values in common either
        inspector.calculate_numeric_gap("MSE")
    assert "another program" not in str(error.value)


def test_a_gap_without_values_in_common_is_refused(record: ETRecord, tmp_path: Path) -> None:
    other = record.copy()
    other.update_representative_inputs([torch.cat([X, X])])
    path = tmp_path / "values"
    data = recorded_values(path, torch.zeros(1, 2), torch.zeros(1, 2))
    inspector = Inspector(etdump_data=data, etrecord=other, debug_buffer_path=str(path))
    with pytest.raises(ValueError, match="no value of the run .* have other shapes"):
        inspector.calculate_numeric_gap("MSE")


def test_the_programs_of_a_record_are_found_by_name(record: ETRecord) -> None:
    inspector = Inspector(etdump_data=dump(EXECUTE), etrecord=record)
    assert inspector.get_exported_program() is record.edge_dialect_program
    assert inspector.get_exported_program("exported_program") is record.exported_program
    assert inspector.get_exported_program("gone") is None
    assert Inspector(etdump_data=dump(EXECUTE)).get_exported_program() is None


@pytest.mark.parametrize(
    ("count", "index", "found"), [(2, 1, 1.0), (2, -1, None), (1, -1, 0.0), (1, 1, None)]
)
def test_reference_outputs_are_those_of_the_bundled_input(
    record: ETRecord, count: int, index: int, found: float | None
) -> None:
    with_references = record.copy()
    with_references.update_reference_outputs([[torch.tensor(float(i))] for i in range(count)])
    data = dump(EXECUTE, index=index)
    block = Inspector(etdump_data=data, etrecord=with_references).event_blocks[0]
    assert block.bundled_input_index == index
    assert (block.reference_output and block.reference_output[0].item()) == found


def test_the_printed_table_leaves_out_long_columns_and_doubles(record: ETRecord) -> None:
    text = io.StringIO()
    inspector = Inspector(etdump_data=dump(EXECUTE), etrecord=record)
    inspector.print_data_tabular(text)
    lines = text.getvalue().splitlines()
    assert lines[0].startswith("╒") and "event_block_name" in lines[1]
    assert "OPERATOR_CALL" not in text.getvalue() and "stack_traces" not in lines[1]
    tabs = io.StringIO()
    inspector.save_data_to_tsv(tabs)
    assert tabs.getvalue().splitlines()[1].split("\t")[:3] == ["0", "Execute", "native_call_a.out"]


def test_five_operators_are_abbreviated(record: ETRecord) -> None:
    several = record.copy()
    several._debug_handle_map = {"forward": {"0": [1, 1, 2]}}
    inspector = Inspector(etdump_data=dump(EXECUTE), etrecord=several)
    text = io.StringIO()
    inspector.save_data_to_tsv(text)
    wanted = "['aten.permute_copy.default', 'aten.addmm.default' ... 'aten.relu.default'] (5 total)"
    assert wanted in text.getvalue()


def test_one_source_of_a_dump_is_needed(tmp_path: Path) -> None:
    for given in ({}, {"etdump_path": "a", "etdump_data": b""}):
        with pytest.raises(ValueError, match="exactly one of etdump_path or etdump_data"):
            Inspector(**given)
    path = tmp_path / "cut.etdp"
    path.write_bytes(dump(EXECUTE)[:40])
    with pytest.raises(ValueError, match=str(path)):
        Inspector(etdump_path=str(path))
    with pytest.raises(FileNotFoundError):
        Inspector(etdump_path=str(tmp_path / "gone"))
    with pytest.raises(TypeError, match="etdump_data: expected the bytes of an ETDump, got .*str"):
        Inspector(etdump_data="abc")
    with pytest.raises(TypeError, match="etdump_path: expected a path, got .*int"):
        Inspector(etdump_path=3)
    with pytest.raises(TypeError, match="debug_buffer_path: expected a path, got .*int"):
        Inspector(etdump_data=dump(EXECUTE), debug_buffer_path=3)


def test_compare_results_gives_each_metric_of_each_output(capsys) -> None:
    reference = [torch.ones(2, 2), [torch.tensor([1, 2])], 3.0]
    found = compare_results(reference, [torch.ones(2, 2) * 1.1, [torch.tensor([1, 3])], 3.0])
    assert found["mse"] == [0.01, 0.5, 0.0] and found["snr"] == [20.0, 6.99, float("inf")]
    assert found["cosine_similarity"] == [1.0, 0.99, 1.0]
    assert "20.00000" in capsys.readouterr().out
    with pytest.raises(ValueError, match="expected shape .2., found .3."):
        compare_results([torch.ones(2)], [torch.ones(3)])
    with pytest.raises(ValueError, match="no metrics .'max'."):
        compare_results([], [], ["max"])


def test_the_command_line_prints_the_table(tmp_path: Path, capsys) -> None:
    path, tabs = tmp_path / "d.etdp", tmp_path / "d.tsv"
    path.write_bytes(dump(EXECUTE))
    arguments = ["--etdump_path", str(path), "--tsv_path", str(tabs), "--target_time_scale", "us"]
    assert main(arguments) == 0
    assert "p50 (us)" in capsys.readouterr().out and "native_call_b.out" in tabs.read_text()
    assert main(["--etdump_path", str(tmp_path / "gone")]) == 1
    assert "No such file" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "example:" in capsys.readouterr().out
