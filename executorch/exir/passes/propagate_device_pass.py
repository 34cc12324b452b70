from __future__ import annotations

from torch.fx import GraphModule
from torch.fx.passes.infra.pass_base import PassBase, PassResult

from executorch.exir.error import ExportError, ExportErrorType
from executorch.exir.passes.operator_kind import is_delegate_call
from executorch.exir.passes.propagate_device_config import PropagateDeviceConfig

_KEY = "target_device"


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
                for spec in lowered.compile_specs:
                    device = bytes(spec.value).decode(errors="replace")
                    if spec.key == _KEY and device != "cpu":
                        raise ExportError(
                            ExportErrorType.NOT_SUPPORTED,
                            f"{node}: backend {lowered.backend_id} asks for device {device!r}; "
                            "memory is planned on the CPU only",
                        )
        return PassResult(graph_module, False)
