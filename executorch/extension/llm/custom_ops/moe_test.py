"""Mixtures of experts over packed weights, against dense layers and from export to run."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.export import Dim

from executorch.exir import to_edge
from executorch.extension.llm.custom_ops import custom_ops as custom_ops
from executorch.extension.llm.custom_ops.packed_linear import pack_linear, unpack_linear
from executorch.runtime import Runtime

ops = torch.ops.llama
SIZES = [  # experts, active, dim, hidden, group size, bits, score
    (6, 2, 64, 96, 32, 4, "sigmoid"),
    (4, 4, 48, 32, 16, 8, "softmax"),
    (1, 1, 16, 16, 16, 4, "sigmoid"),
    (8, 3, 160, 32, 32, 8, "sigmoid"),
]


def quantized(n: int, k: int, group: int, bits: int) -> tuple[Tensor, Tensor]:
    """Integers and scales of weights of about 1 / sqrt(k)."""
    most = 1 << (bits - 1)
    q = torch.randint(-most, most, (n, k), dtype=torch.int8)
    return q, (torch.rand(n, k // group) + 0.5) / (most * k**0.5)


class Layer:
    """What the operator is given, and the weights [experts, rows, columns] that it stands for."""

    def __init__(
        self, experts: int, active: int, dim: int, hidden: int, group: int, bits: int, score: str
    ) -> None:
        def made(n: int, k: int) -> tuple[Tensor, Tensor]:
            packed, dense = [], []
            for _ in range(experts):
                q, s = quantized(n, k, group, bits)
                packed.append(pack_linear(q, s, group, bits))
                dense.append(q * s.repeat_interleave(group, 1))
            return torch.stack(packed), torch.stack(dense)

        self.active, self.score = active, score
        self.scale = 2.5 if score == "sigmoid" else 1.0
        self.gate = torch.randn(experts, dim) / dim**0.5
        self.bias = torch.randn(experts) if score == "sigmoid" else torch.empty(0)
        packed_w13, self.w13 = made(2 * hidden, dim)
        packed_w2, self.w2 = made(dim, hidden)
        tensors = (self.gate, self.bias, packed_w13, packed_w2)
        self.given = (*tensors, active, experts, hidden, dim, group, bits, score, self.scale)

    def dense(self, x: Tensor) -> Tensor:
        """All experts of all tokens, in double; those that are not chosen count nothing."""
        scores = x.double() @ self.gate.double().T
        shares = scores.sigmoid() if self.score == "sigmoid" else scores
        ranks = shares + self.bias if self.bias.numel() else shares
        left_out = torch.ones_like(ranks, dtype=torch.bool)
        left_out.scatter_(1, ranks.topk(self.active).indices, False)
        if self.score == "sigmoid":
            shares = shares.masked_fill(left_out, 0)
            shares = shares / shares.sum(1, keepdim=True) * self.scale
        else:
            shares = shares.masked_fill(left_out, -torch.inf).softmax(1)
        up, gate = torch.einsum("td,efd->tef", x.double(), self.w13.double()).chunk(2, 2)
        hidden = torch.nn.functional.silu(up) * gate
        experts = torch.einsum("tef,edf->ted", hidden, self.w2.double())
        return torch.einsum("te,ted->td", shares, experts).float()


class Experts(torch.nn.Module):
    def __init__(self, layer: Layer) -> None:
        super().__init__()
        self.settings = layer.given[4:]
        for i, tensor in enumerate(layer.given[:4]):
            self.register_buffer(f"tensor_{i}", tensor)

    def forward(self, x: Tensor) -> Tensor:
        tensors = [self.get_buffer(f"tensor_{i}") for i in range(4)]
        return ops.quantized_moe_ffn(x, *tensors, *self.settings)  # type: ignore[no-any-return]


@pytest.mark.parametrize("sizes", SIZES)
def test_chosen_experts_are_summed(sizes: tuple[Any, ...]) -> None:
    torch.manual_seed(0)
    layer = Layer(*sizes)
    dim = sizes[2]
    module = Experts(layer)
    exported = torch.export.export(
        module, (torch.randn(3, dim),), dynamic_shapes=({0: Dim("tokens", min=0, max=600)},)
    )
    program = Runtime.get().load_program(to_edge(exported).to_executorch().buffer)
    method = program.load_method("forward")
    for tokens in (1, 7, 600, 0):
        x = torch.randn(tokens, dim)
        (found,) = method.execute((x,))
        torch.testing.assert_close(found, layer.dense(x), atol=1e-5, rtol=1e-4)
        torch.testing.assert_close(found, module(x), atol=1e-5, rtol=1e-4)


def test_of_equal_experts_the_first_is_chosen_and_nans_come_last() -> None:
    torch.manual_seed(1)
    layer = Layer(5, 2, 16, 16, 16, 4, "sigmoid")
    module = Experts(layer)
    for gate_rows, chosen in [((0, 0, 0, 0, 0), [0, 1]), ((torch.nan, 0, torch.nan, 0, 0), [1, 3])]:
        gate = torch.tensor(gate_rows, dtype=torch.float32)[:, None].expand(5, 16).contiguous()
        module.tensor_0, module.tensor_1 = gate, torch.empty(0)
        alone = Layer(2, 2, 16, 16, 16, 4, "sigmoid")
        alone.gate, alone.bias = gate[chosen], torch.empty(0)
        alone.w13, alone.w2 = layer.w13[chosen], layer.w2[chosen]
        x = torch.randn(3, 16)
        exported = torch.export.export(module, (x,))
        program = Runtime.get().load_program(to_edge(exported).to_executorch().buffer)
        method = program.load_method("forward")
        for found in (module(x), method.execute((x,))[0]):
            torch.testing.assert_close(found, alone.dense(x), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize(("n", "k", "group"), [(16, 32, 32), (13, 96, 48), (1, 16, 16)])
def test_packed_weights_are_read_again(n: int, k: int, group: int, bits: int) -> None:
    q, scales = quantized(n, k, group, bits)
    packed = pack_linear(q, scales, group, bits)
    expected = q * scales.repeat_interleave(group, 1)
    assert torch.equal(unpack_linear(packed, n, k, group, bits), expected)
    for damaged in (packed[:-1], torch.cat([packed[:8] + 1, packed[8:]])):
        with pytest.raises(ValueError, match="that are no weights"):
            unpack_linear(damaged, n, k, group, bits)


def test_packed_bytes_are_those_of_torchao() -> None:
    q = torch.arange(128, dtype=torch.int8).reshape(8, 16) % 16 - 8
    packed = pack_linear(q, torch.arange(8.0), 16, 4).tolist()
    assert packed[:4] == [0x38, 0x1A, 0, 0]
    # Columns 0..7 of rows 0 and 1, in the low bits, with those of rows 2 and 3 in the high ones.
    assert packed[64:80] == [c * 0x11 for c in range(8)] * 2
    assert packed[96:112] == [c * 0x11 for c in range(8, 16)] * 2
    assert torch.tensor(packed[128:160], dtype=torch.uint8).view(torch.float32).tolist() == [
        *map(float, range(8))
    ]
    assert packed[160:164] == [0xF8, 0xFF, 0xFF, 0xFF]  # -8, the sum of a row


@pytest.mark.parametrize(
    ("which", "value"),
    [
        (0, torch.zeros(2, 3, 16)),
        (0, torch.zeros(2, 16, dtype=torch.half)),
        (1, torch.zeros(4, 16)),
        (2, torch.zeros(4)),
        (3, torch.zeros(5, 9)),
        (5, 6),
        (5, 0),
        (9, 0),
        (9, 8),
        (10, 5),
        (11, "gelu"),
        (11, "softmax"),  # with a bias
    ],
)
def test_what_does_not_fit_is_refused(which: int, value: Any) -> None:
    given = [torch.zeros(2, 16), *Layer(5, 2, 16, 16, 16, 4, "sigmoid").given]
    given[which] = value
    for device in ("cpu", "meta"):
        there = [a.to(device) if isinstance(a, Tensor) else a for a in given]
        with pytest.raises(AssertionError, match="quantized_moe_ffn"):
            ops.quantized_moe_ffn(*there)
