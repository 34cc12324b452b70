"""Test cases of methods, as users give them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from executorch.exir.torch_internals import tree_flatten

ConfigValue = torch.Tensor | int | bool | float
DataContainer = list | tuple | dict  # what values may be nested in
MethodInputType = Sequence[ConfigValue]
MethodOutputType = Sequence[torch.Tensor]


class MethodTestCase:
    """Inputs of a method and, optionally, the tensors that should come out.

    Both are flattened, in the order in which the method takes and gives them.
    TypeError for anything that a bundled program cannot hold.
    """

    def __init__(
        self,
        inputs: MethodInputType,
        expected_outputs: MethodOutputType | None = None,
    ) -> None:
        self.inputs = _flatten("input", inputs, (torch.Tensor, int, bool, float))
        self.expected_outputs = _flatten("expected output", expected_outputs, (torch.Tensor,))


def _flatten(what: str, items: Any, types: tuple[type, ...]) -> list[Any]:
    leaves = [] if items is None else tree_flatten(items)[0]
    for i, leaf in enumerate(leaves):
        if not isinstance(leaf, types):
            names = ", ".join(t.__name__ for t in types)
            raise TypeError(f"{what} {i} is a {type(leaf).__name__}; expected one of: {names}")
        if isinstance(leaf, torch.Tensor) and (leaf.is_meta or leaf.layout is not torch.strided):
            kind = "meta" if leaf.is_meta else str(leaf.layout)
            raise TypeError(f"{what} {i} is a {kind} tensor; expected one with strides and memory")
    return leaves


@dataclass
class MethodTestSuite:
    """All test cases of one method."""

    method_name: str
    test_cases: Sequence[MethodTestCase]
