from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

from executorch.exir.dialects._ops import ops as exir_ops
from executorch.exir.graph.pass_driver import Pass
from executorch.exir.graph.program_view import Dialect, Place, ProgramView, place_of
from executorch.exir.passes.constant_prop_pass import replace_by_constants
from executorch.exir.passes.debug_handle_generator_pass import merge_debug_handles

_aten = exir_ops.edge.aten
_batch_norm = _aten._native_batch_norm_legit_no_training.default
_conv = _aten.convolution.default


class FuseBatchNormIntoConv(Pass):
    """Put the scale and shift of inference batch norms into the convolutions before them.

    Before    y = batch_norm(conv(x, w, b), gamma, beta, mean, var, eps)
    After     y = conv(x, w * s, (b - mean) * s + beta), with s = gamma / sqrt(var + eps)
    Requires  edge dialect.
    Ensures   values equal within rounding: the new weights are computed in float64 and rounded
              once, as much as the convolution itself rounds each of its products. The
              convolution has the debug handles of both.
    Leaves    programs that compute gradients, convolutions with other readers, weights that
              something else reads, in any of the programs, other types than float32 and float64,
              statistics that give no finite weight.
    """

    takes = frozenset({Dialect.EDGE})

    def edit_methods(self, views: Sequence[ProgramView]) -> bool:
        if any(view.is_trained for view in views):
            return False
        readers: Counter[Place] = Counter()
        for view in views:
            readers.update(view.readers)
        return any([_fuse(view, readers) for view in views])


def _fuse(view: ProgramView, readers: Mapping[Place, int]) -> bool:
    known: dict[Node, Tensor] = dict(view.constants)
    modified = False
    for norm in view.graph.find_nodes(op="call_function", target=_batch_norm):
        conv: Any = norm.args[0]
        if not _fits(conv, norm, known) or readers[place_of(known[conv.args[1]])] != 1:
            continue
        fused = _fused(conv, norm, known)
        if fused is None:
            continue
        for position, tensor in zip((1, 2), fused, strict=True):
            conv.update_arg(position, _new_constant(conv, tensor, known))
        merge_debug_handles(conv, norm)
        for item in list(norm.users):
            item.replace_all_uses_with(conv)
            view.graph.erase_node(item)
        view.graph.erase_node(norm)
        modified = True
    return modified and replace_by_constants(view, known)


def _fits(conv: Any, norm: Node, known: Mapping[Node, Tensor]) -> bool:
    if not isinstance(conv, Node) or conv.target is not _conv or len(conv.users) != 1:
        return False
    if any(user.args[1] != 0 for user in norm.users):  # the saved statistics are empty
        return False
    parameters = [*conv.args[1:3], *norm.args[1:5]]
    if any(p is not None and p not in known for p in parameters):
        return False
    dtypes = {known[p].dtype for p in parameters if isinstance(p, Node)}
    return len(dtypes) == 1 and dtypes <= {torch.float32, torch.float64}


def _fused(conv: Node, norm: Node, known: Mapping[Node, Tensor]) -> tuple[Tensor, Tensor] | None:
    def wide(parameter: Any, default: float) -> Tensor:
        if parameter is None:
            return torch.full_like(mean, default)
        return known[parameter].detach().double()

    mean, variance = (known[p].detach().double() for p in norm.args[3:5])  # type: ignore[index]
    scale = wide(norm.args[1], 1.0) / torch.sqrt(variance + float(norm.args[6]))  # type: ignore[arg-type]
    weight = known[conv.args[1]].detach()  # type: ignore[index]
    bias = (wide(conv.args[2], 0.0) - mean) * scale + wide(norm.args[2], 0.0)
    transposed, groups = conv.args[6], int(conv.args[8])  # type: ignore[arg-type]
    if transposed:  # weight [in, out / groups, ...]
        rows = weight.shape[0] // groups
        by_row = scale.view(groups, 1, -1).expand(-1, rows, -1).reshape(weight.shape[:2])
        factor = by_row.view(*by_row.shape, *[1] * (weight.dim() - 2))
    else:
        factor = scale.view(-1, *[1] * (weight.dim() - 1))
    results = ((weight.double() * factor).to(weight.dtype), bias.to(weight.dtype))
    return results if all(torch.isfinite(r).all() for r in results) else None


def _new_constant(conv: Node, tensor: Tensor, known: dict[Node, Tensor]) -> Node:
    """A call that stands for a constant until all are made at once."""
    with conv.graph.inserting_before(conv):
        node = conv.graph.call_function(_aten.clone.default, (conv.args[1],))
    mode = conv.meta["val"].fake_mode
    node.meta["val"] = mode.from_tensor(tensor, static_shapes=True)
    known[node] = tensor
    return node
