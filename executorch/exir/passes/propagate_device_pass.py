from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch.export.graph_signature import InputKind
from torch.fx import GraphModule, Node
from torch.fx.node import map_arg

from executorch.exir.delegate import delegate_calls, lowered_module_of
from executorch.exir.error import ExportError, ExportErrorType
from executorch.exir.graph.graph_edit import provenance
from executorch.exir.graph.pass_driver import Pass
from executorch.exir.graph.program_view import ProgramView
from executorch.exir.passes._device_copy_ops_registry import D2H, H2D
from executorch.exir.passes.propagate_device_config import PropagateDeviceConfig
from executorch.exir.schema import DeviceType
from executorch.exir.tensor import TensorSpec
from executorch.exir.tensor_lifetimes import flatten_specs

# The compile spec by which a partitioner names the device of its delegates, such as b"cuda:0".
TARGET_DEVICE_COMPILE_SPEC_KEY = "target_device"


def _parse_device_spec_value(value: bytes) -> tuple[DeviceType, int]:
    """(type, index) of `cuda:0`, in any case; without an index the first. ValueError for a type
    that there is not, or an index that is no number."""
    kind, _, index = value.decode("utf-8", errors="replace").strip().lower().partition(":")
    if index and not index.isdecimal():
        raise ValueError(
            f"{TARGET_DEVICE_COMPILE_SPEC_KEY}: expected a device's number behind the colon of "
            f"{value!r}, found {index!r}"
        )
    for device in DeviceType:
        if device.name.lower() == kind:
            return device, int(index or 0)
    known = ", ".join(device.name for device in DeviceType)
    raise ValueError(f"Unknown device type {kind!r}. Valid types: {known}")


def _get_target_device_from_compile_specs(lowered: Any) -> tuple[DeviceType, int] | None:
    """The device that a delegate's compile specs name."""
    for spec in lowered.compile_specs:
        if spec.key == TARGET_DEVICE_COMPILE_SPEC_KEY:
            return _parse_device_spec_value(bytes(spec.value))
    return None


class PropagateDevicePass(Pass):
    """Let delegates of a device, which compile specs name, find their tensors in its memory.

    Before    y = call_delegate(module, x); z = aten.relu(y)
    After     d = et_copy._h2d_copy(x); y = call_delegate(module, d); h = et_copy._d2h_copy(y);
              z = aten.relu(h); the specs of d and y name the device
    Requires  specs.
    Ensures   what one delegate computes and another of the same device reads is not copied.
    Leaves    with `skip_h2d_for_method_inputs` inputs of the method that only delegates of one
              device read, with `skip_d2h_for_method_outputs` results that the method returns: the
              caller has them in the device's memory. Without `enable_non_cpu_memory_planning`
              nothing is copied, and only what delegates compute names the device. A delegate of a
              device inside of control flow is an ExportError.
    """

    def __init__(
        self,
        config: PropagateDeviceConfig | None = None,
        enable_non_cpu_memory_planning: bool = False,
        method: str = "forward",
    ) -> None:
        super().__init__()
        self.config = config or PropagateDeviceConfig()
        self.copies = enable_non_cpu_memory_planning
        self._skip_inputs = _of_method(self.config.skip_h2d_for_method_inputs, method)
        self._skip_outputs = _of_method(self.config.skip_d2h_for_method_outputs, method)
        if (self._skip_inputs or self._skip_outputs) and not self.copies:
            raise ValueError(
                "propagate_device_config leaves out copies that only "
                "enable_non_cpu_memory_planning=True makes"
            )

    def edit(self, view: ProgramView) -> bool:
        graph_module = view.graph_module
        for inner in view.graph_modules():
            if inner is not graph_module and (found := _delegates(inner)):
                node, device = next(iter(found.items()))
                raise ExportError(
                    ExportErrorType.NOT_SUPPORTED,
                    f"{node}: a delegate of {device} is inside of control flow, whose memory is "
                    "planned on the CPU only",
                )
        delegates = _delegates(graph_module)
        for node, device in delegates.items():
            for spec in flatten_specs(node.meta.get("spec")):
                device.mark(spec)
        if delegates and self.copies:
            own = {n for n, s in view.inputs.items() if s.kind is not InputKind.USER_INPUT}
            for node, device in delegates.items():
                self._copy_operands(node, device, delegates, own)
            for node, device in delegates.items():
                self._copy_results(node, device, delegates)
        return bool(delegates)

    def _copy_operands(
        self, call: Node, device: _Device, delegates: dict[Node, _Device], own: set[Node]
    ) -> None:
        copies: dict[Node, Node] = {}
        for operand in call.all_input_nodes[1:]:
            spec = operand.meta.get("spec")
            if not isinstance(spec, TensorSpec) or _device_of(operand, delegates) == device:
                continue
            given = operand.op == "placeholder" and operand not in own and not spec.const
            if given and self._skip_inputs and _all_read_on(device, operand, delegates):
                device.mark(spec)
            else:
                copies[operand] = _insert_copy(call.prepend, H2D, operand)
                device.mark(copies[operand].meta["spec"])
        call.args = (call.args[0], *map_arg(call.args[1:], lambda n: copies.get(n, n)))

    def _copy_results(self, call: Node, device: _Device, delegates: dict[Node, _Device]) -> None:
        for result in list(call.users) if _gives_list(call) else [call]:
            readers = [
                user
                for user in result.users
                if delegates.get(user) != device
                and not (user.op == "output" and self._skip_outputs)
            ]
            if readers:
                copy = _insert_copy(result.append, D2H, result)
                for reader in readers:
                    reader.replace_input_with(result, copy)


@dataclass(frozen=True)
class _Device:
    type: DeviceType
    index: int

    def mark(self, spec: TensorSpec) -> None:
        spec.device, spec.device_index = self.type, self.index

    def __str__(self) -> str:
        return f"{self.type.name.lower()}:{self.index}"


def _of_method(option: bool | dict[str, bool], method: str) -> bool:
    return option.get(method, False) if isinstance(option, dict) else option


def _delegates(graph_module: GraphModule) -> dict[Node, _Device]:
    """The delegate calls that work in other memory than the host's."""
    found: dict[Node, _Device] = {}
    for call in delegate_calls(graph_module.graph):
        device = _get_target_device_from_compile_specs(lowered_module_of(call, graph_module))
        if device is not None and device[0] is not DeviceType.CPU:
            found[call] = _Device(*device)
    return found


def _gives_list(call: Node) -> bool:
    return isinstance(call.meta.get("spec"), (list, tuple))


def _device_of(node: Node, delegates: dict[Node, _Device]) -> _Device | None:
    """The device of the delegate that computes `node`."""
    call = node.args[0] if node.target is operator.getitem else node
    return delegates.get(call)  # type: ignore[arg-type]


def _all_read_on(device: _Device, node: Node, delegates: dict[Node, _Device]) -> bool:
    return all(delegates.get(user) == device for user in node.users)


def _insert_copy(insert: Callable[[Node], None], target: Any, source: Node) -> Node:
    """A copy of `source`, on the host as far as its spec says."""
    copy = source.graph.create_node("call_function", target, (source,))
    insert(copy)
    copy.meta = {**provenance(source), "val": source.meta["val"]}
    spec: TensorSpec = source.meta["spec"]
    copy.meta["spec"] = TensorSpec(spec.dtype, spec.shape, spec.layout)
    copy.meta["spec"].dim_order = spec.dim_order
    copy.meta["spec"].shape_dynamism = spec.shape_dynamism
    return copy
