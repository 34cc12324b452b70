"""Calls of a module that leave it, and what they are given, as they were."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from executorch.exir.torch_internals import tree_map


@contextmanager
def unchanged_buffers(module: nn.Module) -> Iterator[None]:
    """Afterwards the buffers are those of before, with the values of before, whether calls inside
    wrote them, replaced them or failed."""
    before = [
        (owner, name, buffer, buffer.clone())
        for owner in module.modules()
        for name, buffer in owner.named_buffers(recurse=False)
    ]
    try:
        yield
    finally:
        with torch.no_grad():
            for owner, name, buffer, value in before:
                setattr(owner, name, buffer.copy_(value))


def copied(inputs: Any) -> Any:
    """The same arguments, with copies of their tensors: an operator may write them."""
    return tree_map(lambda v: v.clone() if isinstance(v, Tensor) else v, inputs)
