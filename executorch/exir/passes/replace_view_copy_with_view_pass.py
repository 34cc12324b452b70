from __future__ import annotations

from typing import Any

from torch.fx import GraphModule

from executorch.exir import memory
from executorch.exir.passes.graph_edit import GraphEdit
from executorch.exir.passes.normalize_view_copy_base_pass import is_view_copy
from executorch.exir.tensor import TensorSpec

# Planning and storage belong to the base: read and written there.
_OF_BASE = (
    "const",
    "device",
    "device_index",
    "extra_tensor_info",
    "lifetime",
    "mem_id",
    "mem_obj_id",
    "mem_offset",
    "storage",
    "storage_base",
    "storage_base_offset",
)


class ViewSpec(TensorSpec):
    """The spec of a tensor that is its base's memory in another shape."""

    def __init__(self, base: TensorSpec, shape: Any) -> None:
        self._base = base
        super().__init__(base.dtype, shape, base.layout, requires_grad=base.requires_grad)

    @property
    def base(self) -> TensorSpec:
        return self._base

    def init_mem_planning_fields(self) -> None:
        """The base has them."""

    def nbytes(self) -> int:
        """Checked against the base once both are numbers: a view adds and drops no element."""
        return super().nbytes()


def _of_base(name: str) -> property:
    def read(self: ViewSpec) -> Any:
        return getattr(self._base, name)

    def write(self: ViewSpec, value: Any) -> None:
        if name in _PLANNED:
            setattr(self._base, name, value)

    return property(read, write)


# What a planner may set through a view; the rest is set when a spec is made.
_PLANNED = frozenset({"lifetime", "mem_id", "mem_obj_id", "mem_offset"})
for _name in _OF_BASE:
    setattr(ViewSpec, _name, _of_base(_name))


class ReplaceViewCopyWithViewPass(GraphEdit):
    """Turn view copies into names for the memory of their base.

    Before    y = view_copy(x, s)
    After     y = memory.view(x, s), whose spec is a ViewSpec
    Requires  specs; NormalizeViewCopyBasePass.
    Leaves    results that are graph outputs, whose memory the caller may replace, and views of
              tensors that are not contiguous, whose bytes have another order.
    """

    def edit(self, graph_module: GraphModule) -> bool:
        modified = False
        for node in graph_module.graph.nodes:
            if not is_view_copy(node) or any(u.op == "output" for u in node.users):
                continue
            base, spec = node.args[0].meta["spec"], node.meta["spec"]
            if (
                base.dtype != spec.dtype
                or base.is_static_shape_tensor != spec.is_static_shape_tensor
            ):
                continue
            if base.dim_order != tuple(range(len(base.shape))):
                continue
            node.target = memory.view
            node.args = (node.args[0], node.args[1])
            node.kwargs = {}
            node.meta["spec"] = ViewSpec(base, spec.shape)
            modified = True
        return modified
