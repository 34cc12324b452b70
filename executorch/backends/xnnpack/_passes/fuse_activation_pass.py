from __future__ import annotations

from typing import cast

from torch.fx import Node

from executorch.backends.xnnpack.lowering import FUSED_ACTIVATION, aten, clamp_bounds
from executorch.exir.graph.graph_edit import replace_node
from executorch.exir.graph.pass_driver import CallPass


class FuseActivationPass(CallPass):
    """Note the bounds of a clamp at the call in front of it.

    Before    y = linear(x, w); z = relu(y)
    After     z = linear(x, w), with its bounds in the node's metadata
    Requires  the calls are lowered to XnnpackBackend, which reads the bounds; nothing else does.
    Leaves    clamps of results that have other readers, or bounds already.
    """

    FUSED_ACTIVATION_TAG = FUSED_ACTIVATION
    FUSEABLE_OPS = (
        aten.convolution.default,
        aten.add.Tensor,
        aten.sub.Tensor,
        aten.mul.Tensor,
        aten.linear.default,
    )
    FUSEABLE_ACTIVATIONS = (aten.relu.default, aten.hardtanh.default)

    @staticmethod
    def get_fused_activation(node: Node) -> tuple[float, float] | None:
        """The least and largest value of a call's result, if the pass gave it bounds."""
        return node.meta.get(FUSED_ACTIVATION)

    def change(self, call: Node) -> bool:
        if call.target not in self.FUSEABLE_ACTIVATIONS:
            return False
        source = cast("Node", call.args[0])
        taken = len(source.users) > 1 or FUSED_ACTIVATION in source.meta
        if source.target not in self.FUSEABLE_OPS or taken:
            return False
        source.meta[FUSED_ACTIVATION] = clamp_bounds(call)
        replace_node(call, source)
        return True
