"""Models that decomposition tears apart run fused, and give what they give unfused and in eager."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim, export
from torch.nn import functional as F

from executorch.exir import to_edge
from executorch.extension.pybindings import _C

T, WIDTH, HEADS = 48, 32, 4


@pytest.fixture(autouse=True)
def fixed_seed() -> Iterator[None]:
    torch.manual_seed(0)
    yield


@dataclass
class Case:
    module: nn.Module
    inputs: list[tuple[Tensor, ...]]  # the first is exported
    sum_length: int  # of the longest sum, times the depth of the model
    shapes: Any = None
    fused: list[str] = field(default_factory=list)


class Runs:
    """One program, loaded with and without fusion."""

    def __init__(self, buffer: bytes) -> None:
        self.plain, self.lines = self._load(buffer, False)
        assert not self.lines
        self.fused, self.lines = self._load(buffer, True)

    @staticmethod
    def _load(buffer: bytes, enabled: bool) -> tuple[Any, list[str]]:
        before = _C._set_fusion_enabled(enabled)
        try:
            program = _C._load_program_from_buffer(buffer)
            method = program.load_method("forward")
            return (program, method), _C._last_fusion().splitlines()
        finally:
            _C._set_fusion_enabled(before)

    @property
    def names(self) -> list[str]:
        return [line.split(": ")[1].split(" <- ")[0] for line in self.lines if " <- " in line]

    def check(self, module: nn.Module, inputs: tuple[Tensor, ...], sum_length: int) -> None:
        with torch.no_grad():
            expected = torch.utils._pytree.tree_leaves(module(*inputs))
        found = self.fused[1].call(inputs)
        plain = self.plain[1].call(inputs)
        for e, f, p in zip(expected, found, plain, strict=True):
            if e.is_floating_point():
                # Each sum is rounded at most once per term, relative to its largest partial sum.
                scale = e[e.isfinite()].abs().max().item() if e.numel() else 0.0
                bound = torch.finfo(e.dtype).eps * sum_length * max(scale, 1.0)
                torch.testing.assert_close(f, e, rtol=0, atol=bound, equal_nan=True)
                torch.testing.assert_close(f, p, rtol=0, atol=bound, equal_nan=True)
            else:
                assert torch.equal(f, e) and torch.equal(p, e)


def run(case: Case) -> Runs:
    module = case.module.eval()
    with torch.no_grad():
        program = export(module, case.inputs[0], dynamic_shapes=case.shapes, strict=False)
        runs = Runs(bytes(to_edge(program).to_executorch().buffer))
    for inputs in case.inputs:
        runs.check(module, inputs, case.sum_length)
    if case.fused:
        assert sorted(runs.names) == sorted(case.fused), "\n".join(runs.lines)
    return runs


def tokens_dim(**kwargs: int) -> Any:
    return Dim("t", **kwargs)


class SelfAttention(nn.Module):
    """As in GPT: one projection for q, k and v, heads split from it."""

    def __init__(self, causal: bool = True) -> None:
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.causal = causal

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        b, t, c = x.shape
        q, k, v = (
            y.view(b, t, HEADS, c // HEADS).transpose(1, 2) for y in self.qkv(x).split(c, dim=2)
        )
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=self.causal)
        return self.out(y.transpose(1, 2).reshape(b, t, c))


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = SelfAttention()
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(61, WIDTH), nn.Embedding(T, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(2))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, 61, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.tokens(tokens) + self.places(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)[:, [-1]])


def tokens(n: int, batch: int = 1) -> tuple[Tensor, ...]:
    return (torch.randint(0, 61, (batch, n)),)


def test_a_gpt_runs_as_attention_and_linears() -> None:
    lengths = (T, 1, 2, 7, T - 1)
    runs = run(Case(Gpt(), [tokens(n) for n in lengths], 8 * WIDTH * 10, ({1: tokens_dim(max=T)},)))
    layer = ["attention+causal", "linear+bias+residual", "linear+bias+gelu", "linear+bias+residual"]
    assert runs.names == layer * 2


@pytest.mark.parametrize("is_dynamic", [False, True])
def test_what_delegates_compute_is_fused_with(is_dynamic: bool) -> None:
    pytest.importorskip("torchao")
    from torchao.quantization import Int8DynamicActivationIntxWeightConfig, quantize_
    from torchao.quantization.granularity import PerGroup

    from executorch.backends.xnnpack.partition.xnnpack_partitioner import (
        XnnpackDynamicallyQuantizedPartitioner,
    )
    from executorch.exir import to_edge_transform_and_lower

    shapes = ({1: Dim("tokens", max=T)},) if is_dynamic else None
    inputs = (torch.randn(1, T, WIDTH),)
    module = nn.Sequential(Block(), Block()).eval()
    config = Int8DynamicActivationIntxWeightConfig(
        weight_dtype=torch.int4, weight_granularity=PerGroup(32)
    )
    quantize_(module, config)
    with torch.no_grad():
        edge = to_edge_transform_and_lower(
            export(module, inputs, dynamic_shapes=shapes),
            partitioner=[XnnpackDynamicallyQuantizedPartitioner()],
        )
    runs = Runs(edge.to_executorch().buffer)
    attention = "attention+causal" if is_dynamic else "attention+mask"
    assert runs.names.count(attention) == 2
    for length in (T, 7) if is_dynamic else (T,):
        x = (torch.randn(1, length, WIDTH),)
        plain, fused = (m.call(x)[0] for m in (runs.plain[1], runs.fused[1]))
        # A rounding moves an activation to the next integer now and then: 1 of 255 of its range.
        torch.testing.assert_close(fused, plain, rtol=0, atol=float(plain.abs().max()) / 255)


def test_batches_and_lengths_may_vary_together() -> None:
    case = Case(
        SelfAttention(),
        [(torch.randn(b, t, WIDTH),) for b, t in ((2, 5), (1, 1), (3, 16), (2, 48))],
        8 * WIDTH,
        ({0: Dim("b", max=4), 1: Dim("t", max=T)},),
        ["attention+causal"],
    )
    run(case)


@pytest.mark.parametrize("kind", ["float", "bool", "causal float", "none"])
def test_masks(kind: str) -> None:
    def mask(t: int) -> Tensor:
        if kind == "bool":
            made = torch.rand(t, t) > 0.5
            made[t // 2] = False  # a query that sees no key
            return made
        made = torch.randn(t, t)
        return made.masked_fill(torch.rand(t, t) > 0.5, -torch.inf)

    class Masked(SelfAttention):
        def forward(self, x: Tensor, mask: Tensor) -> Tensor:  # type: ignore[override]
            return super().forward(x, mask if "causal" not in kind and kind != "none" else None)

    dim = Dim("t", max=T)
    shapes = ({1: dim}, {0: dim, 1: dim})
    inputs = [(torch.randn(2, t, WIDTH), mask(t)) for t in (8, 1, 33)]
    runs = run(Case(Masked(kind == "causal float"), inputs, 8 * WIDTH, shapes))
    wanted = "attention+causal" if "causal" in kind else "attention"
    assert any(name.startswith(wanted) for name in runs.names), runs.lines


class Grouped(nn.Module):
    """Two query heads to a key head; rotary embedding and gated SiLU as in Llama."""

    def __init__(self, repeat: str) -> None:
        super().__init__()
        self.q, self.k = (
            nn.Linear(WIDTH, WIDTH, bias=False),
            nn.Linear(WIDTH, WIDTH // 2, bias=False),
        )
        self.v, self.o = (
            nn.Linear(WIDTH, WIDTH // 2, bias=False),
            nn.Linear(WIDTH, WIDTH, bias=False),
        )
        self.gate, self.up = nn.Linear(WIDTH, 2 * WIDTH, bias=False), nn.Linear(WIDTH, 2 * WIDTH)
        self.down = nn.Linear(2 * WIDTH, WIDTH, bias=False)
        self.scale1, self.scale2 = nn.Parameter(torch.rand(WIDTH)), nn.Parameter(torch.rand(WIDTH))
        angles = torch.outer(torch.arange(T).float(), 0.5 ** torch.arange(WIDTH // HEADS // 2))
        self.register_buffer("cos", torch.cat([angles.cos()] * 2, -1))
        self.register_buffer("sin", torch.cat([angles.sin()] * 2, -1))
        self.repeat = repeat

    @staticmethod
    def norm(x: Tensor, scale: Tensor) -> Tensor:
        return scale * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5))

    def rotate(self, x: Tensor) -> Tensor:
        t = x.shape[2]
        a, b = x.chunk(2, -1)
        return x * self.cos[:t] + torch.cat([-b, a], -1) * self.sin[:t]

    def attend(self, x: Tensor) -> Tensor:
        b, t, _ = x.shape
        heads = lambda y, n: y.view(b, t, n, WIDTH // HEADS).transpose(1, 2)  # noqa: E731
        q, k = self.rotate(heads(self.q(x), HEADS)), self.rotate(heads(self.k(x), HEADS // 2))
        v = heads(self.v(x), HEADS // 2)
        if self.repeat == "enable_gqa":
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        else:
            if self.repeat == "expand":
                k, v = (
                    z[:, :, None].expand(b, HEADS // 2, 2, t, -1).reshape(b, HEADS, t, -1)
                    for z in (k, v)
                )
            else:
                k, v = k.repeat_interleave(2, 1), v.repeat_interleave(2, 1)
            hidden = torch.triu(torch.full((t, t), torch.finfo(x.dtype).min), 1)
            scores = q @ k.transpose(2, 3) / (WIDTH // HEADS) ** 0.5 + hidden[None, None]
            y = F.softmax(scores, -1, dtype=torch.float32).to(x.dtype) @ v
        return self.o(y.transpose(1, 2).reshape(b, t, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attend(self.norm(x, self.scale1))
        y = self.norm(x, self.scale2)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


@pytest.mark.parametrize("repeat", ["enable_gqa", "expand", "repeat_interleave"])
def test_grouped_queries(repeat: str) -> None:
    inputs = [(torch.randn(2, t, WIDTH),) for t in (8, 1, T)]
    runs = run(Case(Grouped(repeat), inputs, 32 * WIDTH, ({1: Dim("t", max=T)},)))
    assert "attention+causal" in runs.names, runs.lines
    assert runs.names.count("rms_norm") == 2, runs.lines
    assert runs.names.count("rotary") == 2, runs.lines


@pytest.mark.parametrize("form", ["var", "square"])
def test_a_layer_norm_by_hand(form: str) -> None:
    class Norm(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight, self.bias = (
                nn.Parameter(torch.rand(WIDTH)),
                nn.Parameter(torch.rand(WIDTH)),
            )

        def forward(self, x: Tensor) -> Tensor:
            y = x - x.mean(-1, keepdim=True)
            if form == "var":
                y = y / torch.sqrt(x.var(-1, keepdim=True, unbiased=False) + 1e-5)
            else:
                y = y * torch.rsqrt((y * y).mean(-1, keepdim=True) + 1e-5)
            return y * self.weight + self.bias

    inputs = [(torch.randn(2, t, WIDTH) + 3,) for t in (5, 1)]
    run(Case(Norm(), inputs, 16 * WIDTH, ({1: Dim("t", max=T)},), ["layer_norm"]))


class Bert(nn.Module):
    """Scores divided by a number, a mask for padding added, softmax and products by hand."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.o, self.norm = nn.Linear(WIDTH, WIDTH), nn.LayerNorm(WIDTH)

    def forward(self, x: Tensor, visible: Tensor) -> Tensor:
        b, t, _ = x.shape
        q, k, v = (f(x).view(b, t, HEADS, -1).permute(0, 2, 1, 3) for f in (self.q, self.k, self.v))
        scores = torch.matmul(q, k.transpose(-1, -2)) / (WIDTH // HEADS) ** 0.5
        scores = scores + (1.0 - visible[:, None, None, :]) * torch.finfo(x.dtype).min
        y = torch.matmul(F.softmax(scores, dim=-1), v).permute(0, 2, 1, 3).reshape(b, t, WIDTH)
        return self.norm(x + self.o(y))


def test_bert() -> None:
    def inputs(b: int, t: int) -> tuple[Tensor, ...]:
        visible = torch.ones(b, t)
        visible[0, t // 2 + 1 :] = 0
        return torch.randn(b, t, WIDTH), visible

    b, t = Dim("b", max=4), Dim("t", max=T)
    case = Case(
        Bert(),
        [inputs(*s) for s in ((2, 8), (1, 1), (4, 31))],
        8 * WIDTH,
        ({0: b, 1: t}, {0: b, 1: t}),
        ["elementwise", "attention+mask", "linear+bias+residual"],
    )
    run(case)


class Hand(nn.Module):
    """The first nanoGPT: a triangle in a buffer, sliced to the length."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("bias", torch.tril(torch.ones(T, T)).view(1, 1, T, T))

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        t = q.shape[2]
        scores = (q @ k.transpose(-2, -1)) * (1.0 / 8**0.5)
        scores = scores.masked_fill(self.bias[:, :, :t, :t] == 0, float("-inf"))
        return (F.softmax(scores, dim=-1) @ v).transpose(1, 2).contiguous()


def test_a_triangle_in_a_buffer() -> None:
    inputs = [tuple(torch.randn(2, 3, t, 8) for _ in range(3)) for t in (5, 1, T - 1)]
    dim = {2: Dim("t", max=T - 1)}
    run(Case(Hand(), inputs, 8 * T, (dim, dim, dim), ["attention+causal"]))


class Elementwise(nn.Module):
    """GELU written out, gates, rows and columns that broadcast, a permuted operand."""

    def forward(self, x: Tensor, row: Tensor, column: Tensor) -> Tensor:
        y = 0.5 * x * (1.0 + torch.tanh(0.7978845608 * (x + 0.044715 * torch.pow(x, 3.0))))
        z = (y - row) / (column.abs() + 1) + torch.exp(-torch.maximum(x, row))
        return (1 - z).permute(1, 0, 2) * x.permute(1, 0, 2).sigmoid() + row


def test_elementwise_operators_run_in_one_pass() -> None:
    def inputs(t: int) -> tuple[Tensor, ...]:
        return torch.randn(3, t, WIDTH), torch.randn(WIDTH), torch.randn(t, 1)

    t = Dim("t", max=T)
    case = Case(Elementwise(), [inputs(n) for n in (5, 1, T)], 40, ({1: t}, None, {0: t}))
    runs = run(case)
    assert set(runs.names) == {"elementwise"} and len(runs.names) <= 3, runs.lines


def test_a_result_that_others_read_stays() -> None:
    class Shared(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.f = nn.Linear(WIDTH, WIDTH)

        def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            y = self.f(x)
            z = F.relu(y)
            return y, z, y.transpose(0, 1) @ z

    inputs = [(torch.randn(n, WIDTH),) for n in (6, 1, 3)]
    run(Case(Shared(), inputs, 16 * WIDTH, ({0: Dim("n", max=8)},)))


def test_a_buffer_is_read_before_it_changes() -> None:
    class State(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("state", torch.randn(WIDTH, WIDTH))

        def forward(self, x: Tensor) -> Tensor:
            y = self.state.transpose(0, 1).clone()
            self.state.add_(1)
            return torch.relu(x @ y) + self.state

    module = State().eval()
    x = torch.randn(WIDTH, WIDTH)
    with torch.no_grad():
        program = to_edge(export(module, (x,))).to_executorch()
    runs = Runs(bytes(program.buffer))
    for _ in range(3):
        (fused,), (plain,) = runs.fused[1].call((x,)), runs.plain[1].call((x,))
        bound = torch.finfo(x.dtype).eps * 8 * WIDTH * plain.abs().max().item()
        torch.testing.assert_close(fused, plain, rtol=0, atol=bound)


def test_branches_are_fused_within_themselves() -> None:
    class Branches(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.f, self.g = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

        def forward(self, x: Tensor) -> Tensor:
            def yes(x: Tensor) -> Tensor:
                return F.relu(self.f(x)) + x

            def no(x: Tensor) -> Tensor:
                return F.gelu(self.g(x)) - x

            return torch.cond(x.sum() > 0, yes, no, [x]) * 2

    x = torch.rand(4, WIDTH)
    runs = run(Case(Branches(), [(x,), (-x,)], 16 * WIDTH))
    assert "linear+bias+gelu" in runs.names, runs.lines


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision(dtype: torch.dtype) -> None:
    runs = run(Case(Block().to(dtype), [(torch.randn(2, 8, WIDTH, dtype=dtype),)], 4 * WIDTH))
    assert "attention+causal" in runs.names, runs.lines


def test_a_shape_error_names_the_operators() -> None:
    class Masked(SelfAttention):
        def forward(self, x: Tensor, mask: Tensor) -> Tensor:  # type: ignore[override]
            return super().forward(x, mask)

    t = Dim("t", max=T)
    inputs = (torch.randn(2, 8, WIDTH), torch.randn(8, 8))
    runs = run(Case(Masked(causal=False), [inputs], 8 * WIDTH, ({1: t}, {0: t, 1: t})))
    with pytest.raises(RuntimeError, match=r"add.out: .*(\n.*)*add.out, fused as attention\+mask"):
        runs.fused[1].call((inputs[0], torch.randn(5, 5)))
