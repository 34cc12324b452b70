from __future__ import annotations

from dataclasses import dataclass


@dataclass
class PropagateDeviceConfig:
    """Which copies between host and device a delegate on a device does without: of the method's
    inputs to the device, of its outputs to the host. A dict is by method name."""

    skip_h2d_for_method_inputs: bool | dict[str, bool] = False
    skip_d2h_for_method_outputs: bool | dict[str, bool] = False
