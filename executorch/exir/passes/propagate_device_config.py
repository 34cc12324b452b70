from __future__ import annotations

from dataclasses import dataclass


@dataclass
class PropagateDeviceConfig:
    """Copies between host and device that are left out, because the caller has the tensors in the
    device's memory.

    skip_h2d_for_method_inputs   inputs of the method are not copied to the device
    skip_d2h_for_method_outputs  outputs of the method are not copied to the host
    A dict is by method name.
    """

    skip_h2d_for_method_inputs: bool | dict[str, bool] = False
    skip_d2h_for_method_outputs: bool | dict[str, bool] = False
