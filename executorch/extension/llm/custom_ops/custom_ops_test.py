"""Programs with the operators of language models against their eager form."""

from __future__ import annotations

import pytest
import torch
from torch.export import Dim

from executorch.exir import to_edge
from executorch.exir.capture._callable import as_module
from executorch.extension.llm.custom_ops import custom_ops as custom_ops
from executorch.extension.llm.custom_ops import preprocess_custom_ops as preprocess_custom_ops
from executorch.runtime import Runtime

ops = torch.ops.llama
TOLERANCE = {torch.float32: 2e-6, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}


def program_of(module, inputs, dynamic_shapes=None):  # noqa: ANN001, ANN201
    with torch.no_grad():
        exported = torch.export.export(module, inputs, dynamic_shapes=dynamic_shapes, strict=True)
    program = to_edge(exported).to_executorch()
    return Runtime.get().load_program(program.buffer)


class Attention(torch.nn.Module):
    """Caches of keys and values, written and read by the operators of one of two styles."""

    def __init__(self, dtype: torch.dtype, fused: bool, batch: int = 1) -> None:
        super().__init__()
        self.fused = fused
        for name in ("k_cache", "v_cache"):
            self.register_buffer(name, torch.zeros(batch, 24, 2, 8, dtype=dtype))

    def forward(self, q, k, v, pos):  # noqa: ANN001, ANN201
        start = pos[0].item()
        torch._check(start >= 0)
        torch._check(start + q.size(1) <= 24)
        if self.fused:
            return ops.sdpa_with_kv_cache(
                q, k, v, self.k_cache, self.v_cache, start, q.size(1), None, 0.0, True
            )
        ops.update_cache(k, self.k_cache, start)
        ops.update_cache(v, self.v_cache, start)
        return ops.custom_sdpa(q, self.k_cache, self.v_cache, start, None, 0.0, True)


def rows(tokens: int, heads: int, dtype: torch.dtype, batch: int = 1) -> torch.Tensor:
    return torch.randn(batch, tokens, heads, 8).to(dtype)


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("batch", [1, 2])
def test_prefill_and_decode_equal_eager(dtype: torch.dtype, fused: bool, batch: int) -> None:
    torch.manual_seed(0)
    tokens = Dim("tokens", min=1, max=23)
    sample = (*(rows(3, h, dtype, batch) for h in (4, 2, 2)), torch.tensor([0]))
    shapes = ({1: tokens}, {1: tokens}, {1: tokens}, None)
    method = program_of(Attention(dtype, fused, batch), sample, shapes).load_method("forward")
    eager = Attention(dtype, fused, batch)
    start = 0
    for n in (5, 1, 1, 7, 1, 9):
        q, k, v = (rows(n, h, dtype, batch) for h in (4, 2, 2))
        given = (q, k, v, torch.tensor([start]))
        (found,) = method.execute(given)
        torch.testing.assert_close(found, eager(*given), atol=TOLERANCE[dtype], rtol=0)
        start += n
    # Back to an earlier position: what follows is overwritten.
    given = (*(rows(2, h, dtype, batch) for h in (4, 2, 2)), torch.tensor([4]))
    torch.testing.assert_close(
        method.execute(given)[0], eager(*given), atol=TOLERANCE[dtype], rtol=0
    )
    full = (*(rows(2, h, dtype, batch) for h in (4, 2, 2)), torch.tensor([23]))
    with pytest.raises(RuntimeError):
        method.execute(full)
    with pytest.raises((RuntimeError, ValueError)):
        eager(*full)


class Quantized(torch.nn.Module):
    def __init__(self, heads_first: bool, float_query: bool) -> None:
        super().__init__()
        self.heads_first, self.float_query = heads_first, float_query

    def forward(self, q, k, v, qs, qz, ks, kz, vs, vz, pos):  # noqa: ANN001, ANN201
        start = pos[0].item()
        torch._check(start >= 0)
        torch._check(start + 3 <= 11)
        query = (None, None) if self.float_query else (qz, qs)
        return ops.custom_quantized_sdpa(
            q, k, v, start, None, 0.0, True, None, *query, kz, ks, vz, vs, self.heads_first
        )


@pytest.mark.parametrize("heads_first", [False, True])
@pytest.mark.parametrize("float_query", [False, True])
def test_attention_over_int8_equals_eager(heads_first: bool, float_query: bool) -> None:
    torch.manual_seed(1)

    def quantized(n: int, heads: int) -> list[torch.Tensor]:
        shape = (2, heads, n) if heads_first else (2, n, heads)
        return [
            torch.randint(-128, 128, (*shape, 16), dtype=torch.int8),
            torch.rand(*shape, 1) / 50,
            torch.randint(-9, 9, (*shape, 1), dtype=torch.int8),
        ]

    (q, qs, qz), (k, ks, kz), (v, vs, vz) = quantized(3, 4), quantized(11, 2), quantized(11, 2)
    if float_query:
        q = torch.randn(q.shape)
    given = (q, k, v, qs, qz, ks, kz, vs, vz, torch.tensor([5]))
    module = Quantized(heads_first, float_query)
    method = program_of(module, given).load_method("forward")
    for start in (0, 5, 8):
        given = (*given[:-1], torch.tensor([start]))
        torch.testing.assert_close(method.execute(given)[0], module(*given), atol=2e-5, rtol=0)


class Masked(torch.nn.Module):
    def forward(self, q, k, mask):  # noqa: ANN001, ANN201
        return ops.custom_sdpa(q, k, k, 2, mask)


def test_a_mask_says_what_is_visible_also_nothing() -> None:
    torch.manual_seed(2)
    q, k = torch.randn(1, 3, 2, 8), torch.randn(1, 6, 1, 8)
    mask = torch.zeros(3, 6).masked_fill(torch.rand(3, 6) < 0.5, -torch.inf)
    mask[1] = -torch.inf
    for given in (mask, mask == 0):
        method = program_of(Masked(), (q, k, given)).load_method("forward")
        (found,) = method.execute((q, k, given))
        assert torch.equal(found[:, 1], torch.zeros(1, 2, 8))
        torch.testing.assert_close(found, Masked()(q, k, given), atol=2e-6, rtol=0)


class Ring(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("cache", torch.zeros(2, 5, 1, 2))

    def forward(self, value, indices):  # noqa: ANN001, ANN201
        ops.update_cache_with_indices(value, self.cache, 0, indices)
        return self.cache + 0


def test_indices_say_where_each_token_goes() -> None:
    value, indices = torch.randn(2, 3, 1, 2), torch.tensor([[4, 0, 0], [2, 2, 3]])
    eager = Ring()
    method = program_of(Ring(), (value, indices)).load_method("forward")
    for _ in range(2):
        assert torch.equal(method.execute((value, indices))[0], eager(value, indices))
        indices = (indices + 1) % 5
    with pytest.raises(RuntimeError):
        method.execute((value, indices + 5))


class Old(torch.nn.Module):
    """Reads the old value of what is written, writes a constant's copy and an intermediate."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("cache", torch.arange(8.0).reshape(1, 4, 1, 2))

    def forward(self, value):  # noqa: ANN001, ANN201
        before = self.cache.clone()
        ops.update_cache(value, self.cache, 1)
        fresh = value * 2
        ops.update_cache(value[:, :1] + 0, fresh, 0)
        return before - self.cache, fresh


def test_old_values_and_intermediates_are_kept_apart() -> None:
    value = torch.randn(1, 2, 1, 2)
    eager = Old()
    method = program_of(Old(), (value,)).load_method("forward")
    for _ in range(2):
        for found, expected in zip(method.execute((value,)), eager(value), strict=True):
            torch.testing.assert_close(found, expected)


class Part(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("caches", torch.zeros(2, 1, 4, 1, 2))

    def forward(self, value):  # noqa: ANN001, ANN201
        ops.update_cache(value, self.caches[1], 1)
        return self.caches + 0


def test_a_view_that_is_written_is_refused_with_its_line() -> None:
    with pytest.raises(Exception, match=r"(?s)a view of a tensor.*custom_ops_test.py"):
        program_of(Part(), (torch.randn(1, 2, 1, 2),))


@pytest.mark.parametrize("n", [1, 2, 64, 28, 28 * 8])
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_hadamard_transform_equals_eager(n: int, dtype: torch.dtype) -> None:
    x = torch.randn(3, 2, n).to(dtype)
    module = as_module(ops.fast_hadamard_transform)
    (found,) = program_of(module, (x,)).load_method("forward").execute((x,))
    bound = 4 * x.float().abs().max() * 28**0.5
    torch.testing.assert_close(found, module(x), atol=TOLERANCE[dtype] * float(bound), rtol=0)


def delta_rule_inputs(
    heads: int, state_heads: int, tokens: int, by_channel: bool, batch: int = 2
) -> tuple[torch.Tensor, ...]:
    leading = (batch, state_heads, tokens)
    return (
        torch.randn(batch, heads, tokens, 5),
        torch.randn(*leading, 5) / 5**0.5,
        torch.randn(*leading, 6),
        torch.rand(*leading, 5) if by_channel else torch.rand(leading),
        torch.rand(leading),
        torch.randn(batch, state_heads, 5, 6),
    )


def delta_rule_in_steps(q, k, v, decay, beta, state):  # noqa: ANN001, ANN201
    """Head by head and token by token, in double."""
    q, k, v, decay, beta, state = (t.double() for t in (q, k, v, decay, beta, state))
    out, state = torch.zeros(*q.shape[:3], v.size(3)).double(), state.clone()
    group = q.size(1) // k.size(1)
    for b in range(q.size(0)):
        for h in range(k.size(1)):
            s = state[b, h]
            for t in range(q.size(2)):
                s *= decay[b, h, t].reshape(-1, 1)
                s += torch.outer(k[b, h, t], beta[b, h, t] * (v[b, h, t] - s.T @ k[b, h, t]))
                for n in range(group):
                    out[b, h * group + n, t] = s.T @ q[b, h * group + n, t]
    return out.float(), state.float()


@pytest.mark.parametrize("name", ["gated_delta_rule", "channelwise_gated_delta_rule"])
@pytest.mark.parametrize("heads", [(3, 3), (4, 2), (6, 1)])
@pytest.mark.parametrize("by_channel", [True, False])
def test_gated_delta_rule_is_its_definition(
    name: str, heads: tuple[int, int], by_channel: bool
) -> None:
    torch.manual_seed(3)
    module = as_module(getattr(ops, name))
    sample = delta_rule_inputs(*heads, 4, by_channel)
    tokens = {2: Dim("tokens", min=1, max=40)}
    shapes = ((*(tokens for _ in range(5)), None),)
    method = program_of(module, sample, shapes).load_method("forward")
    for n in (4, 1, 40):
        given = delta_rule_inputs(*heads, n, by_channel)
        expected = delta_rule_in_steps(*given)
        for results in (module(*given), method.execute(given)):
            for found, want in zip(results, expected, strict=True):
                torch.testing.assert_close(found, want, atol=1e-4, rtol=1e-4)
    state = given[5]
    into = getattr(ops, name).out
    with pytest.raises(RuntimeError, match="final_state_out must not alias initial_state"):
        into(*given, out=torch.empty(0), final_state_out=state)


@pytest.mark.parametrize(("which", "shape"), [(0, (2, 3, 4, 5)), (3, (2, 2, 4, 1)), (4, (2, 2, 3))])
def test_gated_delta_rule_refuses_what_does_not_fit(which: int, shape: tuple[int, ...]) -> None:
    given = list(delta_rule_inputs(4, 2, 4, True))
    given[which] = torch.zeros(shape)
    for device in ("cpu", "meta"):
        with pytest.raises(RuntimeError, match="do not fit"):
            ops.gated_delta_rule(*(t.to(device) for t in given))


def test_tiles_and_fallback_equal_eager() -> None:
    image = torch.randn(3, 8, 4)
    module = as_module(lambda x: torch.ops.preprocess.tile_crop(x, 4))
    (found,) = program_of(module, (image,)).load_method("forward").execute((image,))
    assert torch.equal(found, torch.ops.preprocess.tile_crop(image, 4))
    (found,) = (
        program_of(as_module(ops.fallback), (image,)).load_method("forward").execute((image,))
    )
    assert torch.equal(found, image)


def test_schemas_are_those_that_programs_of_other_exporters_call() -> None:
    assert str(ops.sdpa_with_kv_cache.out._schema) == (
        "llama::sdpa_with_kv_cache.out(Tensor query, Tensor key, Tensor value, "
        "Tensor(a!) key_cache, Tensor(b!) value_cache, SymInt start_pos, SymInt seq_len, "
        "Tensor? attn_mask=None, float drpout_p=0., bool is_causal=False, float? scale=None, *, "
        "Tensor(c!) out) -> Tensor(c!)"
    )
    assert str(ops.update_cache_with_indices.default._schema) == (
        "llama::update_cache_with_indices(Tensor value, Tensor(a!) cache, SymInt start_pos, "
        "Tensor indices) -> Tensor"
    )
    assert "is_seq_at_dim_2=False" in str(ops.custom_quantized_sdpa.default._schema)
    assert str(ops.gated_delta_rule.out._schema).endswith(
        "*, Tensor(a!) out, Tensor(b!) final_state_out) -> (Tensor(a!), Tensor(b!))"
    )


@pytest.mark.parametrize(
    "call",
    [
        lambda q, k: ops.custom_sdpa(q, k, k, 3),
        lambda q, k: ops.custom_sdpa(q, k, k, -1),
        lambda q, k: ops.custom_sdpa(q, k, k, 0, torch.zeros(2, 4), 0.0, True),
        lambda q, k: ops.update_cache(q, k, 3),
        lambda q, k: ops.fast_hadamard_transform(torch.zeros(12)),
    ],
)
def test_eager_refuses_what_does_not_fit(call) -> None:  # noqa: ANN001
    with pytest.raises((ValueError, RuntimeError)):
        call(torch.zeros(1, 2, 1, 4), torch.zeros(1, 4, 1, 4))
