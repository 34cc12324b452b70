"""Passes before `to_edge` against the modules they are given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention as attend

from executorch.exir.capture._callable import as_module
from executorch.extension.llm.export.export_passes import (
    RemoveRedundantTransposes,
    ReplaceSDPAWithCustomSDPAPass,
)

aten = torch.ops.aten


def count(graph_module: torch.fx.GraphModule, *targets: Any) -> int:
    return sum(node.target in targets for node in graph_module.graph.nodes)


@pytest.mark.parametrize(
    ("function", "left"),
    [
        (lambda x: x.transpose(1, 2).transpose(-1, 1) + 1, 0),
        (lambda x: x.permute(1, 2, 0).permute(2, 0, 1) + 1, 0),
        (lambda x: x.permute(0, 2, 1).transpose(1, 2) + 1, 0),
        (lambda x: x.permute(1, 2, 0).permute(1, 2, 0) + 1, 2),  # another order, not undone
        (lambda x: x.transpose(0, 1).transpose(1, 2) + 1, 2),
        (lambda x: (y := x.transpose(0, 1)).transpose(0, 1).sum() + y, 1),
    ],
)
def test_orders_that_undo_each_other_go(function: Callable[..., Tensor], left: int) -> None:
    x = torch.randn(2, 3, 4)
    module = torch.export.export(as_module(function), (x,)).module()
    result = RemoveRedundantTransposes()(module).graph_module
    assert count(result, aten.transpose.int, aten.permute.default) == left
    assert torch.equal(result(x), function(x))


MASK = torch.rand(5, 7) < 0.7
CASES = [
    (lambda q, k: attend(q, q, q), 5, True),
    (lambda q, k: attend(q, q, q, is_causal=True, scale=0.3), 5, True),
    (lambda q, k: attend(q, k, k, MASK), 7, True),
    (lambda q, k: attend(q, k, k, MASK[None, None].float()), 7, True),
    (lambda q, k: attend(q, k[:, :2], k[:, :2], MASK, enable_gqa=True), 7, True),
    (lambda q, k: attend(q, k, k), 7, False),  # more keys than queries
    (lambda q, k: attend(q, k, k, MASK.expand(4, 5, 7)), 7, False),  # a mask for each head
    (lambda q, k: attend(q, k, k[..., :3], MASK), 7, False),  # shorter values
]


@pytest.mark.parametrize(("function", "keys", "replaced"), CASES)
def test_attention_becomes_the_operator(
    function: Callable[..., Tensor], keys: int, replaced: bool
) -> None:
    torch.manual_seed(0)
    q, k = torch.randn(2, 4, 5, 8), torch.randn(2, 4, keys, 8)
    module = torch.export.export(as_module(function), (q, k)).module()
    result = ReplaceSDPAWithCustomSDPAPass()(module).graph_module
    assert count(result, torch.ops.llama.custom_sdpa.default) == replaced
    torch.testing.assert_close(result(q, k), function(q, k))


def test_a_mask_may_be_taken_for_a_causal_one() -> None:
    q, mask = torch.randn(1, 2, 6, 4), torch.ones(6, 6, dtype=torch.bool).tril()
    module = torch.export.export(as_module(lambda q, m: attend(q, q, q, m)), (q, mask)).module()
    result = ReplaceSDPAWithCustomSDPAPass(assume_causal_mask=True)(module).graph_module
    (call,) = result.graph.find_nodes(
        op="call_function", target=torch.ops.llama.custom_sdpa.default
    )
    assert call.args[4] is None and call.args[6] is True
    torch.testing.assert_close(result(q, mask), attend(q, q, q, mask))
