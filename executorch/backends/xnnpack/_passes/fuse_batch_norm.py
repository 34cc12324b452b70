from __future__ import annotations

from executorch.exir.passes.fuse_batch_norm_into_conv import FuseBatchNormIntoConv


class FuseBatchNormPass(FuseBatchNormIntoConv):
    """`FuseBatchNormIntoConv` under the name that it has here."""
