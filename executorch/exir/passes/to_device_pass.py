from __future__ import annotations

from typing import Any

import torch
from torch.fx import GraphModule

from executorch.exir.graph.graph_edit import GraphEdit


class ToDevicePass(GraphEdit):
    """Make calls that name a device name this one."""

    def __init__(self, device: str | torch.device) -> None:
        self.device = torch.device(device)

    def edit(self, graph_module: GraphModule) -> bool:
        modified = False
        for node in graph_module.graph.nodes:
            given: Any = node.kwargs.get("device")
            if given is not None and torch.device(given) != self.device:
                node.update_kwarg("device", self.device)
                modified = True
        return modified
