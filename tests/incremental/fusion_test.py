"""What the runtime makes of incremental programs when it loads them."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.export import export

from executorch.exir import make_incremental, to_edge
from executorch.extension.pybindings import _C
from tests.incremental.incremental_test import exported, made
from tests.incremental.models import Model, Rotary, SoftCap, Triangle, Window


def fused(
    model: type[nn.Module],
    cache_dtype: torch.dtype = torch.float32,
    dtype: torch.dtype = torch.float32,
) -> list[tuple[str, list[str]]]:
    """(name, operators that it stands for) of each fused call of a model of type `dtype`."""
    incremental = make_incremental(exported(made(model).to(dtype)), cache_dtype=cache_dtype)
    buffer = to_edge(incremental).to_executorch().buffer
    program = _C._load_program_from_buffer(buffer)
    program.load_method("forward")
    lines = [line.split(": ")[1] for line in _C._last_fusion().splitlines()]
    return [(name, what.split()) for name, what in (line.split(" <- ") for line in lines)]


@pytest.mark.parametrize("model", [Model, Triangle, Window, Rotary], ids=lambda k: k.__name__)
def test_attention_reads_caches_where_they_lie(model: type[nn.Module]) -> None:
    calls = fused(model)
    attention = [what for name, what in calls if name.startswith("attention")]
    assert len(attention) == 2  # layers
    # One for the keys that were seen so far, one for their values.
    assert all(what.count("slice_copy.Tensor_out") >= 2 for what in attention)
    puts = [what for name, what in calls if name == "put"]
    assert len(puts) == 5  # keys and values of two layers, and the tokens


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_caches_in_half_are_not_widened_as_a_whole(dtype: torch.dtype) -> None:
    calls = fused(Model, dtype)
    attention = [what for name, what in calls if name.startswith("attention")]
    assert len(attention) == 2
    assert all(what.count("_to_dim_order_copy.out") == 2 for what in attention)
    puts = [what for name, what in calls if name == "put" and "permute_copy.out" in what]
    assert len(puts) == 4
    assert all("_to_dim_order_copy.out" in what for what in puts)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_models_in_half_keep_caches_of_their_own_type(dtype: torch.dtype) -> None:
    calls = fused(Model, dtype=dtype)
    attention = [what for name, what in calls if name.startswith("attention")]
    assert len(attention) == 2
    assert all(what.count("slice_copy.Tensor_out") >= 2 for what in attention)
    assert not any("_to_dim_order_copy.out" in what for name, what in calls if name == "put")


def test_masks_that_depend_on_what_was_seen_are_not_computed() -> None:
    names = [name for name, _ in fused(Model)]
    assert names.count("attention+causal") == 2
    names = [name for name, _ in fused(Window)]
    assert names.count("attention+mask") == 2


def test_a_soft_cap_between_product_and_softmax_is_left_to_operators() -> None:
    assert not [name for name, _ in fused(SoftCap) if name.startswith("attention")]


class Buffer(nn.Module):
    """What is read of a buffer before, between and behind updates must not be read later."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("kept", torch.zeros(4, 16))

    def write(self, at: Tensor, x: Tensor) -> None:
        self.kept.index_put_((at,), x)


class ReadBefore(Buffer):
    def forward(self, at: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        before = self.kept.t() * 2
        self.write(at, x)
        return (before + 1).t() + 3, self.kept.t() * 3 + 1


class UpdatedTwice(Buffer):
    def forward(self, at: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        self.write(at, x)
        between = self.kept.t() * 2
        self.write(at, x + 1)
        return between.t() + 3, self.kept.t() * 3 + 1


class ReadBehind(Buffer):
    def forward(self, at: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        self.write(at, x.t().reshape(1, 16) * 2)
        return (self.kept.t() * 2).t() + 3, self.kept[1:, :8] * 3 + 1


@pytest.mark.parametrize("kind", [ReadBefore, UpdatedTwice, ReadBehind], ids=lambda k: k.__name__)
def test_buffers_are_read_when_the_program_says(kind: type[nn.Module]) -> None:
    inputs = [(torch.tensor([i % 4]), torch.randn(1, 16)) for i in range(6)]
    buffer = to_edge(export(kind(), inputs[0])).to_executorch().buffer
    program = _C._load_program_from_buffer(buffer)
    method = program.load_method("forward")
    eager = kind()
    for given in inputs:
        expected = eager(*given)
        for found, wanted in zip(method(given), expected, strict=True):
            torch.testing.assert_close(found, wanted)
