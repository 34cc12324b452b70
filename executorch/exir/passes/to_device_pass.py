from __future__ import annotations

from typing import Any

import torch
from torch.fx import Node

from executorch.exir.graph.pass_driver import CallPass


class ToDevicePass(CallPass):
    """Make calls that name a device name this one."""

    def __init__(self, device: str | torch.device) -> None:
        self.device = torch.device(device)

    def change(self, call: Node) -> bool:
        given: Any = call.kwargs.get("device")
        if given is None or torch.device(given) == self.device:
            return False
        call.update_kwarg("device", self.device)
        return True
