"""`exir.capture`, the predecessor of torch.export."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch

from executorch.exir.capture._callable import as_module
from executorch.exir.capture._config import CaptureConfig
from executorch.exir.capture._inputs import distinct_inputs
from executorch.exir.program._legacy import (
    ExirExportedProgram,
    MultiMethodExirExportedProgram,
)


@contextmanager
def patch_forward(obj: torch.nn.Module, new_method: Callable[..., Any]) -> Iterator[None]:
    """While the block runs, `obj.forward` is `new_method`: so another method can be exported."""
    own = obj.__dict__.get("forward")
    obj.forward = new_method  # type: ignore[method-assign]
    try:
        yield
    finally:
        if own is None:
            del obj.forward
        else:
            obj.forward = own  # type: ignore[method-assign]


class CallSpec(NamedTuple):
    """Structure of a program's inputs and outputs."""

    in_spec: Any = None
    out_spec: Any = None


def capture(
    f: Callable[..., Any],
    args: tuple[Any, ...],
    config: CaptureConfig | None = None,
    dynamic_shapes: Any = None,
) -> ExirExportedProgram:
    """Export a module or function; `.to_edge().to_executorch()` lead on. `config` has no effect."""
    program = torch.export.export(
        as_module(f), distinct_inputs(args), dynamic_shapes=dynamic_shapes
    )
    return ExirExportedProgram(program, after_to_edge_passes=False)


def _capture_legacy_do_not_use(
    f: Callable[..., Any], args: tuple[Any, ...]
) -> torch.fx.GraphModule:
    return torch.export.export(as_module(f), distinct_inputs(args)).module()


def capture_multiple(
    m: torch.nn.Module | Callable[..., Any],
    args: dict[str, tuple[Any, ...]] | tuple[Any, ...],
    config: CaptureConfig | None = None,
    prim_getters: dict[str, Any] | set[str] | None = None,
    dynamic_shapes: Any = None,
) -> MultiMethodExirExportedProgram:
    """Export several methods of one module: `args` is a dict method name -> example inputs.

    prim_getters  names of methods without arguments that return a constant, or a dict of constants
    """
    inputs = args if isinstance(args, dict) else {"forward": args}
    shapes = dynamic_shapes if isinstance(dynamic_shapes, dict) else {}
    methods = {
        name: capture(getattr(m, name) if name != "forward" else m, given, config, shapes.get(name))
        for name, given in inputs.items()
    }
    if isinstance(prim_getters, set):
        prim_getters = {name: getattr(m, name)() for name in prim_getters}
    return MultiMethodExirExportedProgram(methods, prim_getters)
