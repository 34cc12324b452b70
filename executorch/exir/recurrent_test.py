"""Recurrent layers of many steps, and of a dynamic number of them, agree with eager."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim, export

from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import EdgeCompileConfig, dynamic_steps, to_edge, to_edge_transform_and_lower
from executorch.exir.backend.delegation_info import get_delegation_info
from executorch.runtime import Runtime


@pytest.fixture(autouse=True)
def fixed_seed() -> None:
    torch.manual_seed(0)


class Layers(nn.Module):
    """A recurrent layer, and all that it gives."""

    def __init__(self, layers: nn.Module) -> None:
        super().__init__()
        self.layers = layers

    def forward(self, x: Tensor, state: Tensor | None = None) -> Any:
        y, last = self.layers(x, state)
        return (y, *last) if isinstance(last, tuple) else (y, last)


LAYERS = {
    "lstm": lambda: nn.LSTM(5, 7, 2, bidirectional=True, batch_first=True),
    "lstm without biases": lambda: nn.LSTM(5, 7, bias=False),
    "lstm with a projection": lambda: nn.LSTM(5, 7, 2, proj_size=3, batch_first=True),
    "gru": lambda: nn.GRU(5, 7, 2, bidirectional=True),
    "gru without biases": lambda: nn.GRU(5, 7, bias=False, batch_first=True),
    "rnn": lambda: nn.RNN(5, 7, 2, batch_first=True),
    "rnn of relu": lambda: nn.RNN(5, 7, nonlinearity="relu"),
}


def called(edge: Any) -> list[str]:
    graph = edge.exported_program().graph
    return [str(n.target) for n in graph.nodes if n.op == "call_function"]


def run(edge: Any, *inputs: Tensor) -> Any:
    method = Runtime.get().load_program(edge.to_executorch().buffer).load_method("forward")
    assert method is not None
    return method.execute(list(inputs))


def check(edge: Any, model: nn.Module, *inputs: Tensor, dtype: torch.dtype = torch.float32) -> None:
    with torch.no_grad():
        expected = model(*inputs)
    atol = {torch.float32: 1e-5, torch.float64: 1e-12}.get(dtype, 0.03)
    for e, f in zip(expected, run(edge, *inputs), strict=True):
        torch.testing.assert_close(f, e, rtol=0, atol=atol)


def steps_first(layers: Any, steps: int, batch: int = 3) -> Tensor:
    return torch.randn((batch, steps, 5) if layers.batch_first else (steps, batch, 5))


@pytest.mark.parametrize("name", LAYERS)
def test_many_steps_are_a_loop(name: str) -> None:
    layers = LAYERS[name]()
    model, x = Layers(layers).eval(), steps_first(layers, 40)
    edge = to_edge(export(model, (x,)))
    names = called(edge)
    directions = 2 if layers.bidirectional else 1
    assert sum("scan" in name for name in names) == layers.num_layers * directions
    assert len(names) < 80
    check(edge, model, x)


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("lowered", [False, True], ids=["portable", "xnnpack"])
def test_the_number_of_steps_may_be_dynamic(name: str, lowered: bool) -> None:
    layers = LAYERS[name]()
    model, x = Layers(layers).eval(), steps_first(layers, 6)
    dim = {1 if layers.batch_first else 0: Dim("steps", min=1, max=50)}
    with dynamic_steps():
        program = export(model, (x,), dynamic_shapes=(dim,))
    partitioner = [XnnpackPartitioner()] if lowered else []
    edge = to_edge_transform_and_lower(program, partitioner=partitioner)
    for steps in (6, 1, 50):
        check(edge, model, steps_first(layers, steps))


def test_batch_and_steps_may_both_be_dynamic() -> None:
    layers = nn.GRU(5, 7)
    model, x = Layers(layers).eval(), steps_first(layers, 6)
    with dynamic_steps():
        shapes = ({0: Dim("steps", max=20), 1: Dim("batch", max=4)},)
        edge = to_edge(export(model, (x,), dynamic_shapes=shapes))
    for steps, batch in ((6, 3), (2, 2), (20, 4)):
        check(edge, model, steps_first(layers, steps, batch))


def test_a_state_and_a_sequence_without_a_batch_are_taken() -> None:
    model = Layers(nn.GRU(5, 7)).eval()
    inputs = (torch.randn(30, 5), torch.randn(1, 7))
    edge = to_edge(export(model, inputs))
    assert any("scan" in name for name in called(edge))
    check(edge, model, *inputs)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_types_are_taken(dtype: torch.dtype) -> None:
    layers = nn.LSTM(5, 7)
    model, x = Layers(layers).to(dtype).eval(), steps_first(layers, 12).to(dtype)
    check(to_edge(export(model, (x,))), model, x, dtype=dtype)


def test_few_steps_are_taken_apart() -> None:
    layers = nn.LSTM(5, 7)
    model, x = Layers(layers).eval(), steps_first(layers, 8)
    edge = to_edge(export(model, (x,)))
    assert not any("scan" in name for name in called(edge))
    check(edge, model, x)


def test_few_steps_beside_many_are_taken_apart() -> None:
    class Both(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.long, self.short = nn.LSTM(5, 5), nn.GRU(5, 7)

        def forward(self, x: Tensor) -> Any:
            y, _ = self.long(x)
            return self.short(y[-4:])

    model, x = Both().eval(), torch.randn(20, 3, 5)
    edge = to_edge(export(model, (x,)))
    assert sum("scan" in name for name in called(edge)) == 1
    check(edge, model, x)


def test_preserved_layers_stay_whole() -> None:
    op = torch.ops.aten.lstm.input
    layers = nn.LSTM(5, 7)
    program = export(Layers(layers).eval(), (steps_first(layers, 40),))
    config = EdgeCompileConfig(preserve_ops=[op], _check_ir_validity=False)
    names = called(to_edge(program, compile_config=config))
    assert any("lstm" in name for name in names) and not any("scan" in name for name in names)


def test_loops_are_left_to_the_runtime() -> None:
    class Tagger(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.memory, self.head = nn.LSTM(5, 32), nn.Linear(32, 4)

        def forward(self, x: Tensor) -> tuple[Tensor]:
            return (self.head(self.memory(x)[0]).relu(),)

    model, x = Tagger().eval(), torch.randn(40, 2, 5)
    edge = to_edge_transform_and_lower(export(model, (x,)), partitioner=[XnnpackPartitioner()])
    info = get_delegation_info(edge.exported_program().graph_module)
    assert info.num_delegated_subgraphs >= 1
    assert any("the body of a scan" in str(left) for left in info.left_out), info.left_out
    check(edge, model, x)


def test_training_keeps_its_dropout() -> None:
    layers = nn.GRU(5, 7, 2, dropout=1.0)
    model, x = Layers(layers).train(), steps_first(layers, 20)
    with pytest.warns(UserWarning, match="training mode"):
        edge = to_edge(export(model, (x,)))
    check(edge, model, x)
