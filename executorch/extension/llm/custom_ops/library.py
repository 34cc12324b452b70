"""How operators of this folder become known to PyTorch: schemas, eager form, fake form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor
from torch.library import Library, register_fake

from executorch.exir.torch_internals import all_operator_names


def define(
    library: Library,
    inputs: str,
    compute: Callable[..., Any],
    fake: Callable[..., Any],
    n_results: int = 1,
    outs: tuple[str, ...] = ("out",),
) -> None:
    """An operator and, where `outs` are named, its out variant. `inputs` reads like
    "update_cache(Tensor value, Tensor(a!) cache, SymInt start_pos)". A compiled library that was
    loaded before has defined the operator: it stays as it is."""
    name, _, arguments = inputs.partition("(")
    namespace = library.ns
    if f"{namespace}::{name}" in all_operator_names():
        return
    result = "Tensor" if n_results == 1 else f"({', '.join(['Tensor'] * n_results)})"
    library.define(f"{inputs} -> {result}")
    library.impl(name, compute, "CompositeExplicitAutograd")
    register_fake(f"{namespace}::{name}", fake, lib=library)
    if not outs:
        return
    letters = [chr(ord("a") + arguments.count("!") + i) for i in range(n_results)]
    written = ", ".join(f"Tensor({x}!) {o}" for x, o in zip(letters, outs, strict=True))
    kinds = ", ".join(f"Tensor({x}!)" for x in letters)
    returned = kinds if n_results == 1 else f"({kinds})"
    library.define(f"{name}.out({arguments[:-1]}, *, {written}) -> {returned}")

    argument_names = [a.partition("=")[0].split()[-1] for a in arguments[:-1].split(",")]

    def into(*args: Any, **kwargs: Any) -> Any:
        targets = [kwargs.pop(o) for o in outs]
        given = [*zip(argument_names, args, strict=False), *kwargs.items()]
        for out, target in zip(outs, targets, strict=True):
            for argument, value in given:
                if isinstance(value, Tensor) and _overlap(target, value):
                    raise RuntimeError(f"{name}.out: {out} must not alias {argument}")
        results = compute(*args, **kwargs)
        for target, value in zip(targets, [results] if n_results == 1 else results, strict=True):
            target.resize_(value.shape).copy_(value)
        return targets[0] if n_results == 1 else tuple(targets)

    library.impl(f"{name}.out", into, "CompositeExplicitAutograd")


def _overlap(a: Tensor, b: Tensor) -> bool:
    """Whether some byte between the first and the last of `a` lies between those of `b`."""

    def span(t: Tensor) -> tuple[int, int]:
        reach = sum((n - 1) * s for n, s in zip(t.shape, t.stride(), strict=True)) + 1
        begin = t.data_ptr()
        return begin, begin + (reach * t.element_size() if t.numel() else 0)

    (a_begin, a_end), (b_begin, b_end) = span(a), span(b)
    return a_begin < b_end and b_begin < a_end
