"""The spec of a view: what planning needs of it is its base's."""

from __future__ import annotations

from typing import Any

from executorch.exir.tensor import TensorSpec

# Planning and storage belong to the base: read and written there.
_OF_BASE = (
    "const",
    "device",
    "device_index",
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
