from __future__ import annotations

import operator
from typing import Any, cast

import torch
from torch import Tensor
from torch.fx import GraphModule, Node
from torch.fx.passes.infra.pass_base import PassResult

from executorch.backends.xnnpack._passes.xnnpack_pass import XNNPACKPass
from executorch.backends.xnnpack.utils.utils import get_param_tensor
from executorch.exir.dialects._ops import ops
from executorch.exir.graph.graph_edit import insert_before
from executorch.exir.torch_internals import detect_fake_mode

_aten = ops.edge.aten
_NORM = _aten._native_batch_norm_legit_no_training.default


class DecomposeBatchNorm(XNNPACKPass):
    """Turn batch norms into convolutions of each channel by itself.

    Before    y, _, _ = batch_norm(x, scale, shift, mean, variance, momentum, eps)
    After     y = convolution(x, w, b, groups=channels), w = scale / sqrt(variance + eps), windows
              of one element, b = shift - mean * w; rows without a space around an unsqueeze
    Requires  scale, shift, mean and variance are constants of the program.
    Ensures   w and b have the type of x.
    Leaves    inputs of more than two dims of space, batch norms whose statistics are read.
    """

    def call(self, graph_module: GraphModule) -> PassResult:
        modified = False
        for node in list(graph_module.graph.find_nodes(op="call_function", target=_NORM)):
            rank = cast("Node", node.args[0]).meta["val"].dim()
            reads_result = [user.args[1] for user in node.users] == [0]
            if rank in (2, 3, 4) and reads_result:
                self._replace(graph_module, node)
                modified = True
        if modified:
            graph_module.graph.eliminate_dead_code()
            graph_module.recompile()
        return PassResult(graph_module, modified)

    def _replace(self, graph_module: GraphModule, norm: Node) -> None:
        x = cast("Node", norm.args[0])
        value: Tensor = x.meta["val"]
        n_space = max(value.dim() - 2, 1)
        weight, bias = self._weight_and_bias(norm, value.dtype)
        channels = weight.numel()
        (result,) = norm.users
        assert result.target is operator.getitem
        constants = [
            _attach(graph_module, result, f"{norm.name}_{kind}", data)
            for kind, data in (
                ("weight", weight.reshape(channels, *[1] * (n_space + 1))),
                ("bias", bias),
            )
        ]
        source = x
        if value.dim() == 2:
            source = insert_before(result, _aten.unsqueeze_copy.default, (x, 2))
        ones, zeros = [1] * n_space, [0] * n_space
        arguments: tuple[Any, ...] = (source, *constants, ones, zeros, ones, False, zeros, channels)
        found = insert_before(result, _aten.convolution.default, arguments)
        if value.dim() == 2:
            found = insert_before(result, _aten.squeeze_copy.dims, (found, [2]))
        result.replace_all_uses_with(found)
        graph_module.graph.erase_node(result)
        graph_module.graph.erase_node(norm)

    def _weight_and_bias(self, norm: Node, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        scale, shift, mean, variance = (
            get_param_tensor(self.exported_program, cast("Node | None", n)) for n in norm.args[1:5]
        )
        assert mean is not None and variance is not None
        factor = torch.rsqrt(variance.double() + cast("float", norm.args[6]))
        if scale is not None:
            factor = factor * scale.double()
        moved = -mean.double() * factor
        if shift is not None:
            moved = moved + shift.double()
        return factor.detach().to(dtype), moved.detach().to(dtype)


def _attach(graph_module: GraphModule, anchor: Node, name: str, data: Tensor) -> Node:
    """A constant in front of `anchor`, which becomes an input of the program."""
    graph_module.register_buffer(name, data)
    with anchor.graph.inserting_before(anchor):
        node = anchor.graph.get_attr(name)
    mode = detect_fake_mode(anchor.meta["val"])
    node.meta["val"] = mode.from_tensor(data, static_shapes=True) if mode else data
    return node
