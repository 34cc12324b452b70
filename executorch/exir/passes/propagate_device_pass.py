from __future__ import annotations

from typing import Any

from torch.fx import GraphModule
from torch.fx.passes.infra.pass_base import PassBase, PassResult

from executorch.exir.error import ExportError, ExportErrorType
from executorch.exir.passes.operator_kind import is_delegate_call
from executorch.exir.passes.propagate_device_config import PropagateDeviceConfig
from executorch.exir.schema import DeviceType

# The compile spec by which a partitioner names the device of its delegates, such as b"cuda:0".
TARGET_DEVICE_COMPILE_SPEC_KEY = "target_device"


def _parse_device_spec_value(value: bytes) -> tuple[DeviceType, int]:
    """(type, index) of `cuda:0`, in any case; without an index the first. ValueError for a type
    that there is not, or an index that is no number."""
    kind, _, index = value.decode("utf-8", errors="replace").strip().lower().partition(":")
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


class PropagateDevicePass(PassBase):
    """Checks that every delegate works on CPU memory, the only kind that is planned.

    Leaves    all graphs as they are. A delegate whose compile specs name another device is an
              ExportError.
    """

    def __init__(self, config: PropagateDeviceConfig | None = None) -> None:
        super().__init__()
        self.config = config or PropagateDeviceConfig()

    def call(self, graph_module: GraphModule) -> PassResult:
        for node in graph_module.graph.nodes:
            if node.op == "call_function" and is_delegate_call(node):
                lowered = getattr(graph_module, str(node.args[0].target))
                device = _get_target_device_from_compile_specs(lowered)
                if device is not None and device[0] is not DeviceType.CPU:
                    raise ExportError(
                        ExportErrorType.NOT_SUPPORTED,
                        f"{node}: backend {lowered.backend_id} asks for device "
                        f"{device[0].name.lower()}:{device[1]}; memory is planned on the CPU only",
                    )
        return PassResult(graph_module, False)
