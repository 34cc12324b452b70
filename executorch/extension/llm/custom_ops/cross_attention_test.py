"""Caches of keys and values that an encoder gives once, from export to run."""

from __future__ import annotations

import pytest
import torch
from torch.export import Dim

from executorch.exir import to_edge
from executorch.exir.error import ExportError
from executorch.extension.llm.custom_ops import custom_ops as custom_ops
from executorch.runtime import Runtime

ops = torch.ops.executorch


def method_of(module, inputs, dynamic_shapes=None, functional=False):  # noqa: ANN001, ANN201
    exported = torch.export.export(module, inputs, dynamic_shapes=dynamic_shapes)
    if functional:
        exported = exported.run_decompositions()
    program = to_edge(exported).to_executorch()
    return Runtime.get().load_program(program.buffer).load_method("forward")


class Whole(torch.nn.Module):
    """Writes a buffer, reads the result, the buffer, and a view that was made before."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("cache", torch.arange(40.0).reshape(1, 2, 5, 4))

    def forward(self, value):  # noqa: ANN001, ANN201
        first = self.cache[:, 0]
        return ops.update_cross_attn_cache(value, self.cache) * 2, self.cache + 1, first + 1


@pytest.mark.parametrize("functional", [False, True])
def test_a_cache_is_written_and_stays_written(functional: bool) -> None:
    eager = Whole()
    shapes = ({2: Dim("tokens", min=1, max=5)},)
    method = method_of(Whole(), (torch.randn(1, 2, 3, 4),), shapes, functional)
    for tokens in (5, 2, 1, 3):
        given = (torch.randn(1, 2, tokens, 4),)
        for found, expected in zip(method.execute(given), eager(*given), strict=True):
            assert torch.equal(found, expected)


class Decoder(torch.nn.Module):
    """Keys and values of an encoder's states: computed where `fresh`, else those of before."""

    def __init__(self) -> None:
        super().__init__()
        self.k_proj, self.v_proj = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)
        for name in ("keys", "values"):
            self.register_buffer(name, torch.zeros(1, 2, 6, 4))

    def compute(self, states, keys, values):  # noqa: ANN001, ANN201
        k = self.k_proj(states).view(1, -1, 2, 4).transpose(1, 2).contiguous()
        v = self.v_proj(states).view(1, -1, 2, 4).transpose(1, 2).contiguous()
        new_keys = ops.update_cross_attn_cache(k, keys)
        return new_keys, ops.update_cross_attn_cache(v, values)

    def keep(self, states, keys, values):  # noqa: ANN001, ANN201
        return ops.alias(keys, values)

    def forward(self, fresh, states):  # noqa: ANN001, ANN201
        given = (states, self.keys, self.values)
        k, v = torch.cond(fresh, self.compute, self.keep, given)
        return k.sum(2), v.sum(2), self.keys * 2


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_branch_writes_what_later_calls_read(dynamic: bool) -> None:
    torch.manual_seed(0)
    module = Decoder().eval()
    keys, values = torch.zeros(1, 2, 6, 4), torch.zeros(1, 2, 6, 4)
    # One less than the capacity, from which torch.cond tells the size apart.
    shapes = (None, {1: Dim("states", min=2, max=5)}) if dynamic else None
    sample = (torch.tensor(True), torch.randn(1, 3 if dynamic else 6, 8))
    method = method_of(module, sample, shapes)
    for fresh in (False, True, False, True, False):
        states = torch.randn(1, 4 if dynamic else 6, 8)
        found = method.execute((torch.tensor(fresh), states))
        if fresh:
            module.compute(states, keys, values)
        for x, y in zip(found, (keys.sum(2), values.sum(2), keys * 2), strict=True):
            torch.testing.assert_close(x, y)


class Twice(Decoder):
    """A branch that reads what it wrote, and writes again. Calls without a reader are no part of
    what torch exports."""

    def compute(self, states, keys, values):  # noqa: ANN001, ANN201
        first = ops.update_cross_attn_cache(states.view(1, 2, 6, 4), values)
        again = ops.update_cross_attn_cache(values[:, :, 2:] + first.mean(), values)
        return super().compute(states + again.mean() - first.mean(), keys, values * 2)


class View(Decoder):
    def compute(self, states, keys, values):  # noqa: ANN001, ANN201
        first = values[:, :1]
        new_keys, new_values = super().compute(states, keys, values)
        return new_keys + first.sum(), new_values


def test_a_branch_may_write_again_what_has_no_views() -> None:
    module = Twice().eval()
    sample = (torch.tensor(True), torch.randn(1, 6, 8))
    method = method_of(module, sample)
    keys, values = torch.zeros(1, 2, 6, 4), torch.zeros(1, 2, 6, 4)
    for fresh in (True, False):
        found = method.execute((torch.tensor(fresh), sample[1]))
        new_values = module.compute(sample[1], keys, values)[1] if fresh else values
        for x, y in zip(found, (keys.sum(2), new_values.sum(2), keys * 2), strict=True):
            torch.testing.assert_close(x, y)
    with pytest.raises(ExportError, match=r"(?s)of which a view is read.*cross_attention_test.py"):
        method_of(View().eval(), sample)


class Input(torch.nn.Module):
    def forward(self, value, cache):  # noqa: ANN001, ANN201
        return ops.update_cross_attn_cache(value, cache) + 0


def test_a_cache_may_be_an_input() -> None:
    value, cache = torch.randn(2, 1, 2, 4), torch.zeros(2, 1, 5, 4)
    method = method_of(Input(), (value, cache))
    (found,) = method.execute((value, cache.clone()))
    assert torch.equal(found, Input()(value, cache))


@pytest.mark.parametrize(
    "shape", [(1, 2, 3), (2, 2, 3, 4), (1, 1, 3, 4), (1, 2, 6, 4), (1, 2, 3, 5)]
)
def test_what_does_not_fit_is_refused(shape: tuple[int, ...]) -> None:
    cache = torch.zeros(1, 2, 5, 4)
    for device in ("cpu", "meta"):
        with pytest.raises(ValueError, match="do not fit a cache"):
            ops.update_cross_attn_cache(torch.zeros(shape, device=device), cache.to(device))
        with pytest.raises(ValueError, match="into a cache of"):
            ops.update_cross_attn_cache(cache.half().to(device), cache.to(device))
