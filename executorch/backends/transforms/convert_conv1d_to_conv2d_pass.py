from __future__ import annotations

from collections.abc import Collection
from typing import Any

from torch.export import ExportedProgram
from torch.fx import Node
from torch.fx.node import Target

from executorch.backends.transforms.utils import (
    get_param_tensor,
    is_param_node,
    set_param_tensor,
)
from executorch.exir.dialects._ops import ops
from executorch.exir.graph.graph_edit import compute_value, insert_before
from executorch.exir.graph.pass_driver import CallPass
from executorch.exir.graph.program_view import ProgramView

_aten = ops.edge.aten
_conv = _aten.convolution.default
_unsqueeze, _squeeze = _aten.unsqueeze_copy.default, _aten.squeeze_copy.dim


class ConvertConv1dToConv2dPass(CallPass):
    """Compute convolutions over sequences as those over images of height 1.

    Before    y = convolution(x, w, b, [s], [p], [d], ...), x [n, c, l], w [o, i, k]
    After     z = convolution(unsqueeze_copy(x, 2), w, b, [1, s], [0, p], [1, d], ...)
              y = squeeze_copy(z, 2), w [o, i, 1, k]
    Requires  edge operators; the graphs of `exported_program`.
    Ensures   equal values. Weights that the program stores have the new shape there; in the graphs
              of control flow, where they are operands, they get it by a call.
    Leaves    weights that something else reads, and those that are computed, but where an operator
              of `graph_local_weight_targets` computes them.
    """

    def __init__(
        self,
        exported_program: ExportedProgram,
        graph_local_weight_targets: Collection[Target] = (),
    ) -> None:
        super().__init__()
        self.exported_program = exported_program
        self.local_targets = frozenset(graph_local_weight_targets)

    def edit(self, view: ProgramView) -> bool:
        if view.program is not None:  # `transform` runs passes over a program with the same graph
            self.exported_program = view.program
        return super().edit(view)

    def change(self, call: Node) -> bool:
        if not _is_over_sequences(call):
            return False
        x, weight, bias, stride, padding, dilation, transposed, extra, groups = call.args
        image_weight = self._image_weight(call, weight)
        if image_weight is None:
            return False
        image = insert_before(call, _unsqueeze, (x, 2))
        window: list[Any] = [[1, *stride], [0, *padding], [1, *dilation]]  # type: ignore[misc]
        rest = (transposed, [0, *extra], groups)  # type: ignore[misc]
        value = call.meta["val"]
        call.args = (image, image_weight, bias, *window, *rest)
        call.meta["val"] = compute_value(_conv, call.args)
        behind = call.next
        line = insert_before(behind, _squeeze, (call, 2), value=value)
        line.meta = {**call.meta, "val": value}
        call.replace_all_uses_with(line, delete_user_cb=lambda user: user is not line)
        return True

    def _image_weight(self, call: Node, weight: Any) -> Any:
        """The weight with a height; None where the call stays."""
        in_root = call.graph is self.exported_program.graph
        if in_root and is_param_node(self.exported_program, weight):
            if not all(_is_weight_alone(user, weight) for user in weight.users):
                return None
            tensor = get_param_tensor(self.exported_program, weight)
            if tensor is not None and tensor.dim() == 3:  # the first of its readers
                set_param_tensor(self.exported_program, weight, tensor.unsqueeze(2).contiguous())
            return weight
        if in_root and weight.target not in self.local_targets:
            return None
        return insert_before(call, _unsqueeze, (weight, 2))


def _is_over_sequences(call: Node) -> bool:
    return call.target is _conv and call.args[0].meta["val"].dim() == 3  # type: ignore[union-attr]


def _is_weight_alone(call: Node, weight: Node) -> bool:
    """Whether a convolution over sequences, or one that was such, reads a weight, and as such."""
    operands: Any = call.args
    if call.target is not _conv or operands[1] is not weight or operands.count(weight) != 1:
        return False
    return _is_over_sequences(call) or operands[0].target is _unsqueeze
