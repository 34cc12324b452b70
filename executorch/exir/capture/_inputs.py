"""Example inputs as torch.export is to see them."""

from __future__ import annotations

from typing import Any

import torch

from executorch.exir.torch_internals import tree_map


def distinct_inputs(args: Any) -> Any:
    """`args`, with a copy for each tensor that was there before. torch.export takes one object for
    one value: of `f(x, x)` it makes a program that never reads its first input."""
    seen: set[int] = set()

    def once(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor) or id(leaf) not in seen:
            seen.add(id(leaf))
            return leaf
        return leaf.detach().clone()

    return tree_map(once, args)
