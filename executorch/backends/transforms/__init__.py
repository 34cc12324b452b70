"""Passes that backends share; what there is beside files of their names is in the table below."""

from __future__ import annotations

import sys

from executorch._alias import AliasFinder
from executorch.backends.transforms.addmm_mm_to_linear import (
    apply_addmm_mm_to_linear_transform,
    get_shape,
)
from executorch.backends.transforms.duplicate_dynamic_quant_chain import (
    DuplicateDynamicQuantChainPass,
)

__all__ = ["DuplicateDynamicQuantChainPass", "apply_addmm_mm_to_linear_transform", "get_shape"]

# Modules that upstream has, and the modules that hold their names here.
_MODULES = {
    **dict.fromkeys(
        (
            "collapse_view_copy",
            "fuse_cascaded_transpose_or_permute_ops",
            "fuse_cascaded_view_ops",
            "fuse_transpose_or_permute_op_pairs_pass",
            "fuse_view_copy",
            "replace_nop_transpose_or_permute_with_view",
            "replace_squeeze_unsqueeze_with_view",
            "view_copy_to_squeeze_unsqueeze",
        ),
        "views",
    ),
    **dict.fromkeys(("mean_to_sum_div", "replace_scalar_with_tensor"), "arithmetic"),
}

sys.meta_path.append(AliasFinder(__name__, _MODULES))
