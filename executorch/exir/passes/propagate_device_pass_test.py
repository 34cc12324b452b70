"""Delegates in a device's memory: copies, arenas, and what the file says about them."""

from collections import Counter

import pytest
import torch
from torch.export import export

from executorch.exir import EdgeCompileConfig, ExecutorchBackendConfig, to_edge
from executorch.exir.backend.backend_details import BackendDetails, PreprocessResult
from executorch.exir.backend.compile_spec_schema import CompileSpec
from executorch.exir.backend.partitioner import DelegationSpec, Partitioner, PartitionResult
from executorch.exir.capture._callable import as_module
from executorch.exir.dialects._ops import ops
from executorch.exir.error import ExportError
from executorch.exir.passes import MemoryPlanningPass
from executorch.exir.passes.propagate_device_config import PropagateDeviceConfig
from executorch.exir.schema import DeviceType
from executorch.exir.tensor import TensorSpec


class OfSomeDevice(BackendDetails):
    @staticmethod
    def preprocess(edge_program, compile_specs):
        return PreprocessResult(b"")


class AddsTo(Partitioner):
    """Every addition by itself, the i-th for the i-th device."""

    def __init__(self, *devices: str) -> None:
        super().__init__()
        self.devices = devices

    def partition(self, program) -> PartitionResult:
        tags = {}
        graph = program.graph_module.graph
        adds = graph.find_nodes(op="call_function", target=ops.edge.aten.add.Tensor)
        for i, node in enumerate(adds):
            device = self.devices[min(i, len(self.devices) - 1)]
            node.meta["delegation_tag"] = f"tag{i}"
            spec = CompileSpec("target_device", device.encode())
            tags[f"tag{i}"] = DelegationSpec("OfSomeDevice", [spec])
        return PartitionResult(program, tags)


def lowered(function, n_inputs, devices, **options):
    inputs = tuple(torch.ones(2, 2) for _ in range(n_inputs))
    config = EdgeCompileConfig(_check_ir_validity=False)
    edge = to_edge(export(as_module(function), inputs), compile_config=config).to_backend(
        AddsTo(*devices)
    )
    return edge.to_executorch(ExecutorchBackendConfig(**options))


def copies(program):
    """(to the device, to the host)"""
    calls = Counter(str(n.target) for n in program.exported_program().graph.nodes)
    return calls["et_copy._h2d_copy.out"], calls["et_copy._d2h_copy.out"]


def plan(program):
    return program.executorch_program.execution_plan[0]


def on_device(program):
    return [
        (t.extra_tensor_info.device_type.name, t.extra_tensor_info.device_index)
        for t in (value.val for value in plan(program).values)
        if getattr(t, "extra_tensor_info", None) is not None
        and t.extra_tensor_info.device_type is not DeviceType.CPU
    ]


@pytest.mark.parametrize("device", ["cuda:first", "cuda:-1"])
def test_the_index_of_a_device_is_a_number(device):
    with pytest.raises(ValueError, match=f"target_device: expected a device's number.*{device}"):
        lowered(lambda x: x + x, 1, [device])


def test_a_delegate_reads_and_writes_the_memory_of_its_device():
    program = lowered(lambda a, b: a + b, 2, ["CUDA:1"])
    assert copies(program) == (2, 1)
    assert on_device(program) == [("CUDA", 1)] * 3
    sizes, devices = plan(program).non_const_buffer_sizes, plan(program).non_const_buffer_device
    assert len(sizes) == 3 and sizes[1] >= 32 and sizes[2] >= 32
    (arena,) = devices
    assert (arena.buffer_idx, arena.device_type, arena.device_index) == (2, DeviceType.CUDA, 1)
    for value in plan(program).values:
        info = getattr(value.val, "extra_tensor_info", None)
        arena = value.val.allocation_info.memory_id if hasattr(value.val, "sizes") else None
        if arena is not None:
            assert (arena == 2) == (info is not None and info.device_type is DeviceType.CUDA)


def test_the_file_names_the_devices():
    from executorch.exir._serialize._program import deserialize_pte_binary

    program = lowered(lambda a, b: a + b, 2, ["cuda:0"])
    read = deserialize_pte_binary(program.buffer).program.execution_plan[0]
    assert read.non_const_buffer_device == plan(program).non_const_buffer_device


@pytest.mark.parametrize(
    "function, n_inputs, devices, expected",
    [
        (lambda a, b, c: (a + b) + c, 3, ["cuda:0"], (3, 1)),
        (lambda a, b, c: (a + b) + c, 3, ["cuda:0", "cuda:1"], (4, 2)),
        (lambda a, b: ((t := a + b) + a, torch.relu(t)), 2, ["cuda:0"], (3, 2)),
        (lambda a, b: torch.relu(a) * b, 2, ["cuda:0"], (0, 0)),
        (lambda a, b: a + b, 2, ["cpu"], (0, 0)),
    ],
    ids=["one device", "two devices", "a reader on the host", "no delegate", "cpu"],
)
def test_copies_stand_where_the_memory_changes(function, n_inputs, devices, expected):
    program = lowered(function, n_inputs, devices)
    assert copies(program) == expected
    if expected == (0, 0):
        assert plan(program).non_const_buffer_device is None


def test_the_caller_may_have_inputs_and_results_on_the_device():
    skip = PropagateDeviceConfig(True, {"forward": True, "other": False})
    program = lowered(lambda a, b: torch.sin(a) + b, 2, ["cuda:0"], propagate_device_config=skip)
    assert copies(program) == (1, 0)
    inputs = [plan(program).values[i].val for i in plan(program).inputs]
    assert [t.extra_tensor_info is not None for t in inputs] == [False, True]
    unplanned = MemoryPlanningPass(alloc_graph_input=False, alloc_graph_output=False)
    program = lowered(
        lambda a, b: a + b,
        2,
        ["cuda:0"],
        propagate_device_config=PropagateDeviceConfig(True, True),
        memory_planning_pass=unplanned,
    )
    values = plan(program).values
    assert all(values[i].val.allocation_info is None for i in plan(program).inputs)
    assert all(values[i].val.allocation_info is None for i in plan(program).outputs)


def test_an_input_that_the_host_reads_too_is_copied():
    skip = PropagateDeviceConfig(skip_h2d_for_method_inputs=True)
    function = lambda a, b: (a + b, torch.relu(a))  # noqa: E731
    program = lowered(function, 2, ["cuda:0"], propagate_device_config=skip)
    assert copies(program)[0] == 1


def test_without_planning_for_devices_nothing_is_copied():
    program = lowered(lambda a, b: a + b, 2, ["cuda:0"], enable_non_cpu_memory_planning=False)
    assert copies(program) == (0, 0)
    assert plan(program).non_const_buffer_device is None
    with pytest.raises(ValueError, match="enable_non_cpu_memory_planning=True"):
        lowered(
            lambda a, b: a + b,
            2,
            ["cuda:0"],
            enable_non_cpu_memory_planning=False,
            propagate_device_config=PropagateDeviceConfig(True),
        )


def test_a_delegate_of_a_device_in_control_flow_is_refused():
    def function(p, a):
        return torch.cond(p.sum() > 0, lambda x: x + x, lambda x: x * 2, [a])

    with pytest.raises(ExportError, match="cuda:0 is inside of control flow"):
        lowered(function, 2, ["cuda:0"])


def test_memory_ids_and_devices_cannot_be_combined():
    from executorch.exir.device_arenas import place_by_device

    one, other = (TensorSpec(torch.float32, [2]) for _ in range(2))
    one.device, other.mem_id = DeviceType.CUDA, 3
    with pytest.raises(NotImplementedError, match="memory ids"):
        place_by_device([one, other], [], lambda specs, regions: [0, 8])


def test_copies_clone_in_python():
    x = torch.arange(4.0)
    for copy in (torch.ops.et_copy._h2d_copy, torch.ops.et_copy._d2h_copy):
        y, out = copy(x), torch.empty(4)
        assert torch.equal(y, x) and y.data_ptr() != x.data_ptr()
        assert copy.out(x, out=out) is out and torch.equal(out, x)
