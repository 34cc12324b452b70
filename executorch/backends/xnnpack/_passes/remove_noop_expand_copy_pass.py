from __future__ import annotations

from executorch.exir.dialects._ops import ops
from executorch.exir.graph.graph_edit import same_shape
from executorch.exir.graph.pass_driver import CallPass
from executorch.exir.passes.patterns import drop_if


class RemoveNoopExpandCopyPass(CallPass):
    """Drop expansions to the shape that the operand has.

    Before    y = expand_copy(x, x.shape)
    After     x
    Leaves    expansions that repeat elements; one that is an output, of an input or other output.
    """

    rules = {
        ops.edge.aten.expand_copy.default: drop_if(
            lambda call: same_shape(call.args[0].meta["val"].shape, call.meta["val"].shape)  # type: ignore
        )
    }
