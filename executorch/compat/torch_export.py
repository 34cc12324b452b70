"""Former entry points of torch.export: functions, `constraints=`, `dynamic_dim`, calls."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import torch

from executorch.exir.capture._callable import as_module
from executorch.exir.torch_internals import pytree


def _todays_export() -> Callable[..., Any]:
    export = torch.export.export
    return getattr(export, "__wrapped__", export)


def export(
    f: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    constraints: Sequence[Constraint | DynamicDim] | None = None,
    *,
    dynamic_shapes: Any = None,
    **options: Any,
) -> torch.export.ExportedProgram:
    """`torch.export.export` for any callable, with dynamic dims given in either way."""
    module = as_module(f)
    if constraints is not None:
        if dynamic_shapes is not None:
            raise ValueError("export: give constraints or dynamic_shapes, not both")
        dynamic_shapes = dynamic_shapes_of(constraints, module.forward, args, kwargs)
    return _todays_export()(module, args, kwargs, dynamic_shapes=dynamic_shapes, **options)


def export_for_training(
    mod: torch.nn.Module,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    strict: bool = False,
    preserve_module_call_signature: tuple[str, ...] = (),
) -> torch.export.ExportedProgram:
    """`torch.export.export`, which now does what this did."""
    return export(
        mod,
        args,
        kwargs,
        dynamic_shapes=dynamic_shapes,
        strict=strict,
        preserve_module_call_signature=preserve_module_call_signature,
    )


def capture_pre_autograd_graph(
    f: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    constraints: Sequence[Constraint | DynamicDim] | None = None,
    dynamic_shapes: Any = None,
) -> torch.fx.GraphModule:
    """The flat graph module of `f`, fit for eager training and quantization."""
    return export(f, args, kwargs, constraints, dynamic_shapes=dynamic_shapes).module()


def call_program(program: torch.export.ExportedProgram, *args: Any, **kwargs: Any) -> Any:
    """Run an exported program; inputs that its guards refuse raise."""
    cached = program.__dict__.get("_called_module")
    if cached is None or cached[0] is not program.graph_module:
        cached = program.__dict__["_called_module"] = (program.graph_module, program.module())
    return cached[1](*args, **kwargs)


class DynamicDim:
    """Dimension `dim` of `tensor`; comparisons make constraints: `lo <= d`, `d <= hi`, `d == e`."""

    def __init__(self, tensor: torch.Tensor, dim: int) -> None:
        if not -tensor.dim() <= dim < tensor.dim():
            raise IndexError(f"dynamic_dim: dimension {dim} of a {tensor.dim()}-d tensor")
        self.tensor = tensor
        self.dim = dim % tensor.dim()

    def __le__(self, bound: int) -> Constraint:
        return Constraint(self, high=bound)

    def __lt__(self, bound: int) -> Constraint:
        return Constraint(self, high=bound - 1)

    def __ge__(self, bound: int) -> Constraint:
        return Constraint(self, low=bound)

    def __gt__(self, bound: int) -> Constraint:
        return Constraint(self, low=bound + 1)

    def __eq__(self, other: object) -> Any:
        if not isinstance(other, DynamicDim):
            raise TypeError(f"a dynamic dim equals another dynamic dim, not {other!r}")
        return Constraint(self, equal=other)

    __hash__ = object.__hash__

    @property
    def key(self) -> tuple[int, int]:
        return id(self.tensor), self.dim


class Constraint:
    """One relation of a dynamic dim: a bound, or equality with another."""

    def __init__(
        self,
        dim: DynamicDim,
        low: int | None = None,
        high: int | None = None,
        equal: DynamicDim | None = None,
    ) -> None:
        self.dim, self.low, self.high, self.equal = dim, low, high, equal

    def __bool__(self) -> bool:
        raise TypeError("a constraint has no truth value; write `lo <= d <= hi` as two constraints")


def dynamic_dim(tensor: torch.Tensor, index: int) -> DynamicDim:
    """Dimension `index` of an example input, free to vary."""
    return DynamicDim(tensor, index)


class _Group:
    """Dims that are equal, and their common range. An open range starts at 2."""

    def __init__(self) -> None:
        self.low: int | None = None
        self.high: int | None = None
        self.members: list[DynamicDim] = []

    def narrow(self, low: int | None, high: int | None) -> None:
        if low is not None:
            self.low = low if self.low is None else max(self.low, low)
        if high is not None:
            self.high = high if self.high is None else min(self.high, high)


def dynamic_shapes_of(
    constraints: Sequence[Constraint | DynamicDim],
    forward: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None,
) -> dict[str, Any]:
    """The `dynamic_shapes` that say what `constraints` say about tensors among the arguments."""
    groups = _groups(constraints)
    dims: dict[int, dict[int, Any]] = {}
    for number, group in enumerate(groups):
        low = 2 if group.low is None else group.low
        if group.high is not None and group.high < low:
            raise ValueError(f"constraints: no size is >= {low} and <= {group.high}")
        dim = torch.export.Dim(f"dim{number}", min=low, max=group.high)
        for member in group.members:
            dims.setdefault(id(member.tensor), {})[member.dim] = dim
    arguments = inspect.signature(forward).bind(*args, **(kwargs or {})).arguments
    known = {id(leaf) for leaf in pytree.tree_leaves(arguments)}
    if dims.keys() - known:
        raise ValueError("constraints: a dynamic_dim of a tensor that is no example input")
    return pytree.tree_map(lambda leaf: dims.get(id(leaf)), dict(arguments))


def _groups(constraints: Sequence[Constraint | DynamicDim]) -> list[_Group]:
    group_of: dict[tuple[int, int], _Group] = {}
    for each in constraints:
        constraint = each if isinstance(each, Constraint) else Constraint(each)
        group = _group_of(constraint.dim, group_of)
        group.narrow(constraint.low, constraint.high)
        if constraint.equal is not None:
            _merge(group, _group_of(constraint.equal, group_of), group_of)
    return list(dict.fromkeys(group_of.values()))


def _group_of(dim: DynamicDim, group_of: dict[tuple[int, int], _Group]) -> _Group:
    group = group_of.get(dim.key)
    if group is None:
        group = group_of[dim.key] = _Group()
        group.members.append(dim)
    return group


def _merge(a: _Group, b: _Group, group_of: dict[tuple[int, int], _Group]) -> None:
    if a is b:
        return
    a.narrow(b.low, b.high)
    a.members += b.members
    for member in b.members:
        group_of[member.key] = a
