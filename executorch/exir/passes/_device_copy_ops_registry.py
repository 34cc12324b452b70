"""The `et_copy` library: copies between host and device memory, which the runtime makes with the
device's allocator. Importing this module registers the operators; in Python they clone.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.library import Library, register_fake

lib = Library("et_copy", "DEF")


def _clone(self: Tensor) -> Tensor:
    return self.clone()


def _copy(self: Tensor, *, out: Tensor) -> Tensor:
    out.resize_(self.shape)
    return out.copy_(self)


for _name in ("_h2d_copy", "_d2h_copy"):
    lib.define(f"{_name}(Tensor self) -> Tensor")
    lib.define(f"{_name}.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)")
    lib.impl(_name, _clone, "CPU")
    lib.impl(f"{_name}.out", _copy, "CPU")
    register_fake(f"et_copy::{_name}", _clone, lib=lib)
    register_fake(f"et_copy::{_name}.out", _copy, lib=lib)

H2D = torch.ops.et_copy._h2d_copy.default
D2H = torch.ops.et_copy._d2h_copy.default
