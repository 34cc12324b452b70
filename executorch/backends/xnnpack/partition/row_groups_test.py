"""Mixtures of experts as one writes them: every expert computes, and counts where it was picked."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.export import Dim, export

from executorch.backends.xnnpack.lowering import aten
from executorch.backends.xnnpack.partition.xnnpack_partitioner import (
    XnnpackDynamicallyQuantizedPartitioner,
    XnnpackPartitioner,
)
from executorch.exir import to_edge_transform_and_lower
from executorch.exir.backend.delegation_info import get_delegation_info
from executorch.runtime import Runtime

WIDTH, HIDDEN, EXPERTS, MOST = 16, 24, 4, 32
NEVER = 2  # the expert that no token picks


class Expert(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, 2 * HIDDEN), nn.Linear(HIDDEN, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        gate, up = self.up(x).chunk(2, -1)
        return self.down(F.silu(gate) * up)  # type: ignore[no-any-return]


class Mixture(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.router = nn.Linear(WIDTH, EXPERTS)
        self.experts = nn.ModuleList(Expert() for _ in range(EXPERTS))
        with torch.no_grad():
            self.router.bias[NEVER] = -100

    def factors(self, x: Tensor) -> Tensor:
        shares, picked = self.router(x).softmax(-1).topk(2, -1)
        return torch.zeros(*x.shape[:-1], EXPERTS).scatter(-1, picked, shares)

    def forward(self, x: Tensor) -> Tensor:
        factors, total = self.factors(x), torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            total = total + expert(x) * factors[..., i : i + 1]
        return total


class Swapped(Mixture):
    """Of texts, the factor first, taken from a product of its own."""

    def forward(self, x: Tensor) -> Tensor:
        shares, picked = self.router(x).softmax(-1).topk(2, -1)
        total = x
        for i, expert in enumerate(self.experts):
            share = torch.where(picked == i, shares, 0.0).sum(-1, keepdim=True)
            total = share * expert(x) + total
        return total


class Attended(nn.Module):
    """An attention whose rows count by a factor."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.factor = nn.Linear(WIDTH, 1)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).chunk(3, -1)
        y = (q @ k.mT / WIDTH**0.5).softmax(-1) @ v
        return x + self.out(y) * F.relu(self.factor(x))


def lowered(model: nn.Module, x: Tensor, dim: int, only_quantized: bool = False) -> Any:
    partitioner = XnnpackDynamicallyQuantizedPartitioner if only_quantized else XnnpackPartitioner
    return to_edge_transform_and_lower(
        export(model, (x,), dynamic_shapes=({dim: Dim("tokens", max=MOST)},)),
        partitioner=[partitioner()],
    )


def quantize(model: nn.Module, *names: str) -> None:
    """Quantizes the layers below these names, dynamically."""
    from torchao.quantization import Int8DynamicActivationIntxWeightConfig, quantize_
    from torchao.quantization.granularity import PerAxis

    config = Int8DynamicActivationIntxWeightConfig(
        weight_dtype=torch.int8, weight_granularity=PerAxis(0)
    )
    quantize_(model, config, lambda m, name: isinstance(m, nn.Linear) and name.startswith(names))


def left_out(edge: Any) -> list[Any]:
    """The operators that are in no delegate."""
    return [n.target for n in edge.exported_program().graph_module.graph.nodes]


def made(kind: type[Mixture]) -> Mixture:
    torch.manual_seed(0)
    return kind().eval()


@pytest.mark.parametrize(
    ("kind", "leading"), [(Mixture, ()), (Mixture, (1,)), (Swapped, (1,))], ids=str
)
def test_weights_of_an_expert_that_no_token_picks_are_not_read(
    kind: type[Mixture], leading: tuple[int, ...]
) -> None:
    model, dim = made(kind), len(leading)
    texts = [torch.randn(*leading, n, WIDTH) for n in (9, 1, 2, MOST, 1, 0)]
    with torch.no_grad():
        expected = [model(x) for x in texts]
        for weight in model.experts[NEVER].parameters():
            weight.fill_(float("nan"))
    program = lowered(model, texts[0], dim).to_executorch()
    method = Runtime.get().load_program(program.buffer).load_method("forward")
    assert method is not None
    for x, y in zip(texts, expected, strict=True):
        # Sums of 24 products of numbers of order one.
        torch.testing.assert_close(method.execute([x])[0], y, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", [Mixture, Swapped])
def test_experts_are_in_the_delegate_that_adds_them_up(kind: type[Mixture]) -> None:
    edge = lowered(made(kind), torch.randn(9, WIDTH), 0)
    info = get_delegation_info(edge.exported_program().graph_module)
    assert info.num_delegated_subgraphs == 2
    graph_module = edge.exported_program().graph_module
    counts = [
        sum("linear" in str(n.target) for n in module.original_module.graph.nodes)
        for name, module in graph_module.named_children()
    ]
    assert sorted(counts) == [1, 2 * EXPERTS]


def test_what_others_read_stays_with_them() -> None:
    class Shown(Mixture):
        def forward(self, x: Tensor) -> Any:
            factors = self.factors(x)
            shown = self.experts[0](x)
            return shown * factors[..., :1] + self.experts[1](x) * factors[..., 1:2], shown

    model = made(Shown)
    x = torch.randn(9, WIDTH)
    program = lowered(model, x, 0).to_executorch()
    method = Runtime.get().load_program(program.buffer).load_method("forward")
    assert method is not None
    for n in (9, 1):
        with torch.no_grad():
            expected = model(x[:n])
        for found, y in zip(method.execute([x[:n]]), expected, strict=True):
            torch.testing.assert_close(found, y, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", [Mixture, Swapped])
def test_a_partitioner_of_quantized_layers_takes_what_is_between_those_of_an_expert(
    kind: type[Mixture],
) -> None:
    model = made(kind)
    quantize(model, "experts")
    texts = [torch.randn(1, n, WIDTH) for n in (9, 1, MOST)]
    with torch.no_grad():
        expected = [model(x) for x in texts]
        for layer in model.experts[NEVER].children():
            layer.bias.fill_(float("nan"))
    edge = lowered(model, texts[0], 1, only_quantized=True)
    info = get_delegation_info(edge.exported_program().graph_module)
    assert info.num_delegated_subgraphs == 1
    left = left_out(edge)
    assert aten._softmax.default in left
    assert not {aten.sigmoid.default, aten.mul.Tensor, aten.add.Tensor} & {*left}
    method = Runtime.get().load_program(edge.to_executorch().buffer).load_method("forward")
    assert method is not None
    for x, y in zip(texts, expected, strict=True):
        # Activations are rounded to 8 bits, and may be to the next number.
        torch.testing.assert_close(method.execute([x])[0], y, rtol=0, atol=0.02)


def test_an_attention_in_front_of_a_factor_stays_whole() -> None:
    torch.manual_seed(0)
    model = Attended().eval()
    quantize(model, "qkv", "out")
    edge = lowered(model, torch.randn(1, 9, WIDTH), 1, only_quantized=True)
    left = left_out(edge)
    assert left.count(aten.bmm.default) == 2 and aten._softmax.default in left
    assert aten.add.Tensor not in left  # the sum is where the product of its factor is
