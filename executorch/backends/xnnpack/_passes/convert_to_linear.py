from __future__ import annotations

from executorch.backends.transforms.addmm_mm_to_linear import AddmmToLinearTransform


class ConvertToLinearPass(AddmmToLinearTransform):
    """`AddmmToLinearTransform` under the name that it has here."""
