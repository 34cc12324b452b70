"""What a delegate's operations should compute: what the parity gate asks of backends.

A backend's folder may hold a module `reference` with BACKEND_ID and
`read(processed, named_data) -> ReferenceGraph`; nothing needs to be registered.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

Function = Callable[[Sequence[Tensor]], list[Tensor]]


@dataclass(frozen=True)
class Quantization:
    """Integers of a value: real = (q - zero_point) * scale, q in [low, high]."""

    scale: float
    zero_point: int
    low: int
    high: int


@dataclass(frozen=True)
class ReferenceNode:
    """One operation. Values are named by numbers, in the layout of memory.

    name      as the runtime reports it to tracers
    kind      "aten::linear" and the like where the result is a sum of products,
              "aten::upsample_bilinear2d" where positions are computed, else any text
    function  of the inputs, in their own type, without the bounds; None: no reference
    bounds    that the result is held within
    moves     it only gives its input another shape, and need not be reported
    by_row    rows of this many dims are quantized on the fly: results lie up to a step away
    """

    name: str
    kind: str
    inputs: Sequence[int]
    outputs: Sequence[int]
    function: Function | None
    bounds: tuple[float, float] | None = None
    moves: bool = False
    by_row: int = 0


@dataclass
class ReferenceGraph:
    """constants: by value; inputs: argument of the call -> (value, its dims); nodes in order;
    types: of floating values, which may be recorded as wider ones."""

    nodes: list[ReferenceNode] = field(default_factory=list)
    constants: dict[int, Tensor] = field(default_factory=dict)
    inputs: dict[int, tuple[int, list[int]]] = field(default_factory=dict)
    types: dict[int, torch.dtype] = field(default_factory=dict)
    quantization: dict[int, Quantization] = field(default_factory=dict)


Reader = Callable[[bytes, Mapping[str, bytes]], ReferenceGraph]


def find_reader(backend_id: str) -> Reader | None:
    """The reader of a backend's delegated parts, if its folder has one."""
    backends = importlib.util.find_spec("executorch.backends")
    places = backends.submodule_search_locations if backends is not None else []
    for folder in pkgutil.iter_modules(places):
        name = f"executorch.backends.{folder.name}.reference"
        if importlib.util.find_spec(name) is not None:
            module = importlib.import_module(name)
            if backend_id == module.BACKEND_ID:
                return module.read  # type: ignore[no-any-return]
    return None
