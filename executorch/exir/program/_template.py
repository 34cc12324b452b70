"""What one operator call becomes in the core dialect, traced once and reused.

A model calls the same few operators with the same few shapes again and again. A `Template` holds
the core calls that one such call decomposes into, with their fake values; splicing it costs a node
creation per core call, where tracing costs a dispatch through all of PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import torch
from torch import SymBool, SymFloat, SymInt, Tensor

from executorch.exir.passes.replace_broken_ops_with_function_ops_pass import copy_variant
from executorch.exir.torch_internals import (
    OpOverload,
    TorchDispatchMode,
    composites_seen_by,
    enable_python_dispatcher,
    has_composite_kernel,
    is_preservable_composite,
    op_name,
    overload_name,
    pytree,
    schema_of,
    without_mkldnn,
)

Table = Mapping[OpOverload, Callable[..., Any]]


class NeedsFunctionalization(Exception):
    """The call mutates or aliases in a way that only torch's own functionalization sorts out."""


@dataclass(frozen=True)
class Ref:
    """A tensor of a template: input `index` (step < 0), or result `index` of call `step`."""

    step: int
    index: int | None  # None: the call has one result, which is no list


@dataclass
class Step:
    """One core call; `args` and `kwargs` hold Refs for tensors and symbolic numbers as they are."""

    target: Any
    args: Any
    kwargs: Any
    value: Any


@dataclass
class Template:
    """The core calls of one operator call.

    outputs  the result: Refs and numbers, in the structure that the operator returns
    rebound  input index -> Ref of its new content, for operators that write to an input
    roots    Ref -> the Ref whose memory it would share, if views were views
    """

    steps: list[Step] = field(default_factory=list)
    outputs: Any = None
    rebound: dict[int, Ref] = field(default_factory=dict)
    roots: dict[Ref, Ref] = field(default_factory=dict)
    values: dict[Ref, Tensor] = field(default_factory=dict)


class _Recorder(TorchDispatchMode):
    """Records the operators that reach the dispatcher, decomposing those of the table; views as
    copies if `copies_views`."""

    def __init__(
        self, table: Table, keep: Set[OpOverload], inputs: list[Tensor], copies_views: bool
    ) -> None:
        super().__init__()
        self.table = table
        self.keep = keep
        self.copies_views = copies_views
        self.template = Template()
        self.alive: list[Any] = []  # keeps ids unique
        self.refs: dict[int, Ref] = {}
        self.aliased: set[Ref] = set()  # what has two names, of which a write would change one
        self.computes_value = False  # what a recorded call is made of is not recorded
        for i, tensor in enumerate(inputs):
            self.refs[id(tensor)] = Ref(-1, i)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        kwargs = kwargs or {}
        if self.computes_value:
            return func(*args, **kwargs)
        if func in _IDENTITIES:
            return args[0]
        if func is _aten.alias.default:
            return self._alias(args[0])
        if func is _aten.lift_fresh_copy.default:
            func = _aten.clone.default
        rule = self.table.get(func)
        if rule is not None:
            with self:
                result = rule(*args, **kwargs)
            if result is not NotImplemented:
                return result
        if func.namespace == "prim":  # questions about a tensor
            return func(*args, **kwargs)
        if func not in self.keep and _must_decompose(func):
            with self:
                return func.decompose(*args, **kwargs)
        if schema_of(func).is_mutable:
            return self._write(func, args, kwargs)
        copy = copy_variant(func)
        target = copy if copy is not None and self.copies_views else func
        return self._record(target, args, kwargs, shares=copy is not None)

    def see_composite(
        self, op: OpOverload, own: Callable[..., Any], *args: Any, **kwargs: Any
    ) -> Any:
        """A call of an operator that is kept, inside of another one."""
        if self.computes_value:
            return own(*args, **kwargs)
        return self.__torch_dispatch__(op, (), args, kwargs)

    def _record(self, target: Any, args: Any, kwargs: Any, shares: bool) -> Any:
        recorded = self._as_refs((args, kwargs))
        self.computes_value = True
        try:
            result = target(*args, **kwargs)
        finally:
            self.computes_value = False
        if isinstance(result, (SymInt, SymFloat, SymBool)):
            raise NeedsFunctionalization(f"{target} makes a number from data")
        step = len(self.template.steps)
        self.template.steps.append(Step(target, recorded[0], recorded[1], result))
        listed = isinstance(result, (list, tuple))
        for i, tensor in enumerate(result if listed else [result]):
            if isinstance(tensor, Tensor):
                ref = Ref(step, i if listed else None)
                self._track(tensor, ref)
                if shares:
                    self.template.roots[ref] = self._root(self.refs[id(args[0])])
        return result

    def _track(self, tensor: Tensor, ref: Ref) -> None:
        self.alive.append(tensor)
        self.refs[id(tensor)] = ref
        self.template.values[ref] = tensor

    def _alias(self, tensor: Tensor) -> Tensor:
        """The same tensor under another name: torch takes no view that is its base itself."""
        alias: Tensor = _aten.alias.default(tensor)
        self.alive.append(alias)
        if id(tensor) in self.refs:
            self.refs[id(alias)] = ref = self.refs[id(tensor)]
            self.aliased.add(ref)
        return alias

    def _root(self, ref: Ref) -> Ref:
        return self.template.roots.get(ref, ref)

    def _write(self, func: OpOverload, args: Any, kwargs: Any) -> Any:
        """An in-place operator: the functional form, whose result is the tensor from now on."""
        functional = _functional_form(func)
        target = args[0]
        old = self.refs.get(id(target))
        if functional is None or old is None:
            raise NeedsFunctionalization(f"{func} writes to its arguments")
        root = self._root(old)
        views = {*self.template.roots.values(), *self.aliased}
        if root != old or old in views:
            raise NeedsFunctionalization(f"{func} writes to a tensor that has views")
        with self:
            result = functional(*args, **kwargs)
        new = self.refs.get(id(result))
        if new is None or result.shape != target.shape or result.dtype != target.dtype:
            raise NeedsFunctionalization(f"{func} has no functional form of equal shape and dtype")
        self.refs[id(target)] = new
        if old.step < 0:
            assert old.index is not None
            self.template.rebound[old.index] = new
        return target

    def _as_refs(self, tree: Any) -> Any:
        def ref_of(leaf: Any) -> Any:
            if isinstance(leaf, Tensor):
                ref = self.refs.get(id(leaf))
                if ref is None:
                    raise NeedsFunctionalization("a decomposition reads a constant of its own")
                return ref
            return leaf

        return pytree.tree_map(ref_of, tree)


_aten = torch.ops.aten
_IDENTITIES = {
    _aten.detach.default,
    _aten.detach_.default,
    _aten.lift_fresh.default,
}


@cache
def _must_decompose(func: OpOverload) -> bool:
    """Whether `func`, which the table does not have, is to be decomposed all the same.

    Composite operators of ATen whose schema does not tell all that they do, such as reshape, are
    decomposed. The others (upsample_nearest2d.vec) are missing in the table in order to stay whole.
    """
    return has_composite_kernel(func) and not (
        func.namespace == "aten" and is_preservable_composite(func)
    )


def _functional_form(func: OpOverload) -> OpOverload | None:
    name = op_name(func)
    if not name.endswith("_") or name.startswith("_") or name.endswith("__"):
        return None
    written = [a for a in schema_of(func).arguments if a.alias_info and a.alias_info.is_write]
    packet = getattr(getattr(torch.ops, func.namespace), name[:-1], None)
    functional = getattr(packet, overload_name(func), None) if packet is not None else None
    if functional is None or len(written) != 1 or schema_of(functional).is_mutable:
        return None
    return functional


@contextmanager
def no_cpu_kernels() -> Iterator[None]:
    """Decompose for inference, and not into operators that only this CPU's library has."""
    with without_mkldnn(), torch.no_grad():
        yield


def trace(
    target: OpOverload,
    args: Any,
    kwargs: Any,
    inputs: list[Tensor],
    table: Table,
    keep: Set[OpOverload],
    fake_mode: Any,
    copies_views: bool = True,
) -> Template:
    """The template of calling `target`, whose fake tensor arguments are `inputs` in order.

    Raises NeedsFunctionalization if the call cannot be had in functional form in isolation.
    """
    recorder = _Recorder(table, keep, inputs, copies_views)
    # The dispatcher would take these apart before the recorder sees them.
    composites = [op for op in keep if has_composite_kernel(op)]
    seen = composites_seen_by(recorder.see_composite, composites)
    shapes = fake_mode.shape_env
    no_pending = shapes.ignore_fresh_unbacked_symbols() if shapes is not None else nullcontext()
    with no_cpu_kernels(), fake_mode, enable_python_dispatcher(), no_pending, seen:
        # Nor would it see a composite operator that is called itself.
        result = recorder.__torch_dispatch__(target, (), args, kwargs)
    template = recorder.template
    template.outputs = recorder._as_refs(result)
    return template
