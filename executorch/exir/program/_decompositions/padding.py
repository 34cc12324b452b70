"""Padding with elements of the tensor itself."""

from __future__ import annotations

import torch
from torch import Tensor

from executorch.exir.program._decompositions._rule import rule

_aten = torch.ops.aten

_NAMES = {"reflect": "reflection", "replicate": "replication"}


@rule(_aten.pad.default)
def padded(
    self: Tensor, pad: list[int], mode: str = "constant", value: float | None = None
) -> Tensor:
    """Circular padding is slices side by side; torch writes them into an empty tensor."""
    if mode == "constant":
        return torch.constant_pad_nd(self, pad, value or 0)
    if mode != "circular":
        padding = getattr(_aten, f"{_NAMES[mode]}_pad{len(pad) // 2}d")
        return padding(self, pad)  # type: ignore[no-any-return]
    result = self
    for i in range(len(pad) // 2):
        dim, before, after = self.dim() - 1 - i, pad[2 * i], pad[2 * i + 1]
        end = result.shape[dim] + min(after, 0)
        middle = torch.narrow(result, dim, max(-before, 0), end - max(-before, 0))
        n = middle.shape[dim]
        parts = [torch.narrow(middle, dim, n - before, before)] if before > 0 else []
        parts += [middle, torch.narrow(middle, dim, 0, after)] if after > 0 else [middle]
        result = torch.cat(parts, dim) if len(parts) > 1 else middle
    return result
