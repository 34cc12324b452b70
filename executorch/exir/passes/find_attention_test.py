"""Attention in the forms that exports and models have."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram
from torch.nn import functional as F

from executorch.exir import to_edge
from executorch.exir.passes.find_attention import Attentions

D = 8


class Module(nn.Module):
    triangle: Tensor

    def __init__(self, attention: Callable[..., Tensor]) -> None:
        super().__init__()
        self.attention = attention
        self.project = nn.Linear(2 * D, 6 * D)
        self.register_buffer("triangle", torch.tril(torch.ones(65, 65)))

    def forward(self, x: Tensor) -> Tensor:
        n, t, _ = x.shape
        q, k, v = self.project(x).split(2 * D, dim=2)
        q, k, v = (y.view(n, t, 2, D).transpose(1, 2) for y in (q, k, v))
        y = self.attention(q, k, v, self.triangle[:t, :t])
        return y.transpose(1, 2).reshape(n, t, 2 * D)


def lowered(attention: Callable[..., Tensor]) -> ExportedProgram:
    x = torch.randn(1, 16, 2 * D)
    shapes = ({1: Dim("tokens", min=2, max=64)},)
    program = torch.export.export(Module(attention), (x,), dynamic_shapes=shapes)
    return to_edge(program).exported_program()


def fused(q: Tensor, k: Tensor, v: Tensor, triangle: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def fused_with_mask(q: Tensor, k: Tensor, v: Tensor, triangle: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v, triangle > 0)


def without_mask(q: Tensor, k: Tensor, v: Tensor, triangle: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v)


def filled(q: Tensor, k: Tensor, v: Tensor, triangle: Tensor) -> Tensor:
    scores = q @ k.transpose(-2, -1) / math.sqrt(D)
    return scores.masked_fill(triangle == 0, -math.inf).softmax(-1) @ v


def added(q: Tensor, k: Tensor, v: Tensor, triangle: Tensor) -> Tensor:
    return ((q * 0.5) @ k.transpose(-2, -1) + (1 - triangle) * -1e9).softmax(-1) @ v


FORMS = [fused, fused_with_mask, without_mask, filled, added]


@pytest.mark.parametrize("form", FORMS, ids=lambda f: f.__name__)
def test_every_form_is_found(form: Callable[..., Tensor]) -> None:
    program = lowered(form)
    attentions = Attentions(program)
    (found,) = attentions.found
    assert len(found.masks) == (form is not without_mask)
    query, key, value = (n.meta["val"].shape for n in found.operands)
    assert query[2] == key[1] == value[2] == D
    # Nothing but the projection, and nothing of it, is outside.
    members = attentions.all_of([found])
    outside = [n for n in program.graph.nodes if n.op == "call_function" and n not in members]
    names = {n.target.__name__ for n in outside}
    assert names <= {"aten.addmm.default", "aten.permute_copy.default", "aten.view_copy.default",
                     "sym_size.int"}  # fmt: skip


def test_the_scale_behind_the_first_product_is_known() -> None:
    (found,) = Attentions(lowered(filled)).found
    assert found.scale == pytest.approx(1 / math.sqrt(D))


def along_queries(q: Tensor, k: Tensor, v: Tensor, triangle: Tensor) -> Tensor:
    return (q @ k.transpose(-2, -1)).softmax(-2) @ v


def capped(q: Tensor, k: Tensor, v: Tensor, triangle: Tensor) -> Tensor:
    return torch.tanh(q @ k.transpose(-2, -1)).softmax(-1) @ v


def read_twice(q: Tensor, k: Tensor, v: Tensor, triangle: Tensor) -> Tensor:
    weights = (q @ k.transpose(-2, -1)).softmax(-1)
    return weights @ v * weights.sum()


def of_sums(q: Tensor, k: Tensor, v: Tensor, triangle: Tensor) -> Tensor:
    return (q @ k.transpose(-2, -1) + q.sum() * (q @ k.transpose(-2, -1)).mean()).softmax(-1) @ v


def weights_on_the_right(q: Tensor, k: Tensor, v: Tensor, triangle: Tensor) -> Tensor:
    return (v.transpose(-2, -1) @ (q @ k.transpose(-2, -1)).softmax(-1)).transpose(-2, -1)


@pytest.mark.parametrize(
    "form", [along_queries, capped, read_twice, weights_on_the_right], ids=lambda f: f.__name__
)
def test_what_is_another_computation_is_left(form: Callable[..., Tensor]) -> None:
    assert Attentions(lowered(form)).found == []


def test_a_mask_that_reads_products_keeps_them() -> None:
    """What a mask is computed from is no part of the attention if it is a product itself."""
    program = lowered(of_sums)
    attentions = Attentions(program)
    (found,) = attentions.found
    products = [n for n in program.graph.nodes if n.target is found.first.target]
    assert len(products) == 3
    assert sum(n in attentions.all_of([found]) for n in products) == 2
