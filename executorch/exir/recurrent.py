"""Recurrent layers (nn.RNN, nn.LSTM, nn.GRU) as loops over their steps.

`torch.export` keeps `aten.lstm.input` and its siblings whole where the number of steps is static.
Taken apart, a thousand steps make a program of more than ten thousand calls, and a dynamic number
cannot be taken apart at all: `torch.export` refuses it. Here a layer is one product for the inputs
of all steps, and a `scan` whose body is one step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from executorch.exir.torch_internals import OpOverload, get_decompositions

# Carried values, the step's share of the input's product, weights -> the next carried values.
Step = Callable[[Sequence[Tensor], Tensor, Sequence[Tensor]], Sequence[Tensor]]


def lstm(input: Tensor, hx: Sequence[Tensor], *args: Any) -> tuple[Tensor, Tensor, Tensor]:
    """As aten::lstm.input, whose other arguments are `args`: (output, h_n, c_n)."""
    is_projected = hx[0].shape[2] != hx[1].shape[2]
    output, (h, c) = _Layers(is_projected, *args).run(input, hx, _lstm_step)
    return output, h, c


def gru(input: Tensor, hx: Tensor, *args: Any) -> tuple[Tensor, Tensor]:
    """As aten::gru.input: (output, h_n)."""
    output, (h,) = _Layers(False, *args).run(input, [hx], _gru_step)
    return output, h


def rnn_tanh(input: Tensor, hx: Tensor, *args: Any) -> tuple[Tensor, Tensor]:
    """As aten::rnn_tanh.input: (output, h_n)."""
    output, (h,) = _Layers(False, *args).run(input, [hx], partial(_rnn_step, torch.tanh))
    return output, h


def rnn_relu(input: Tensor, hx: Tensor, *args: Any) -> tuple[Tensor, Tensor]:
    """As aten::rnn_relu.input: (output, h_n)."""
    output, (h,) = _Layers(False, *args).run(input, [hx], partial(_rnn_step, torch.relu))
    return output, h


def _rnn_step(
    function: Callable[[Tensor], Tensor],
    carried: Sequence[Tensor],
    share: Tensor,
    weights: Sequence[Tensor],
) -> Sequence[Tensor]:
    return [function(_product(carried[0], *weights) + share)]


def _product(x: Tensor, weights: Tensor, bias: Tensor | None = None) -> Tensor:
    """Of weights that were transposed outside of the loop, while the program was exported."""
    return torch.mm(x, weights) if bias is None else torch.addmm(bias, x, weights)


def _lstm_step(
    carried: Sequence[Tensor], share: Tensor, weights: Sequence[Tensor]
) -> Sequence[Tensor]:
    hidden, cell = carried
    is_projected = hidden.shape[1] != cell.shape[1]
    gates = _product(hidden, *(weights[:-1] if is_projected else weights)) + share
    into, forget, update, out = gates.chunk(4, 1)
    cell = forget.sigmoid() * cell + into.sigmoid() * update.tanh()
    hidden = out.sigmoid() * cell.tanh()
    return [_product(hidden, weights[-1]) if is_projected else hidden, cell]


def _gru_step(
    carried: Sequence[Tensor], share: Tensor, weights: Sequence[Tensor]
) -> Sequence[Tensor]:
    (hidden,) = carried
    reset, update, new = _product(hidden, *weights).chunk(3, 1)
    reset_in, update_in, new_in = share.chunk(3, 1)
    reset, update = (reset + reset_in).sigmoid(), (update + update_in).sigmoid()
    new = (new_in + new * reset).tanh()
    return [(hidden - new) * update + new]


class _Layers:
    """Layers on top of each other, in both directions where they are bidirectional."""

    def __init__(
        self,
        is_projected: bool,
        params: Sequence[Tensor],
        has_biases: bool,
        num_layers: int,
        dropout: float,
        train: bool,
        bidirectional: bool,
        batch_first: bool,
    ) -> None:
        size = 2 + 2 * has_biases + is_projected
        self.weights = [params[i : i + size] for i in range(0, len(params), size)]
        self.has_biases = has_biases
        self.n = num_layers
        self.dropout = dropout if train else 0.0
        self.directions = 2 if bidirectional else 1
        self.batch_first = batch_first

    def run(
        self, input: Tensor, hidden: Sequence[Tensor], step: Step
    ) -> tuple[Tensor, list[Tensor]]:
        """(output, what is carried out of all layers and directions, stacked as `hidden` is)."""
        x = input.transpose(0, 1) if self.batch_first else input
        last = []
        for layer in range(self.n):
            outputs = []
            for k in range(layer * self.directions, (layer + 1) * self.directions):
                output, carried = self._run_layer(k, x, [each[k] for each in hidden], step)
                outputs.append(output)
                last.append(carried)
            x = torch.cat(outputs, 2) if len(outputs) > 1 else outputs[0]
            if self.dropout > 0 and layer + 1 < self.n:
                x = torch.dropout(x, self.dropout, True)
        output = x.transpose(0, 1) if self.batch_first else x
        return output, [torch.stack(each) for each in zip(*last, strict=True)]

    def _run_layer(
        self, k: int, x: Tensor, hidden: Sequence[Tensor], step: Step
    ) -> tuple[Tensor, Sequence[Tensor]]:
        """(outputs of all steps, what the last step carries on), of layer and direction `k`."""
        input_weight, weight, *rest = self.weights[k]
        input_bias = rest[0] if self.has_biases else None
        is_backward = k % self.directions == 1
        shares = functional.linear(x, input_weight, input_bias)
        shares = shares.flip(0) if is_backward else shares
        projection = rest[2 * self.has_biases :]
        operands = [weight.t(), *rest[1:2] * self.has_biases, *(each.t() for each in projection)]

        def combine(*given: Tensor) -> list[Tensor]:
            n = len(hidden)
            after = step(given[:n], given[n], given[n + 1 :])
            return [*after, after[0].clone()]  # no result of a scan may be another one

        first = [each.clone() for each in hidden]
        *carried, output = torch.ops.higher_order.scan(combine, first, [shares], tuple(operands))
        return output.flip(0) if is_backward else output, carried


# More steps than these become a loop where their number is static. Fewer are taken apart, as
# upstream does, for backends that know no loops.
MOST_STEPS_APART = 8

_aten = torch.ops.aten
_LOOPS: dict[OpOverload, Callable[..., Any]] = {
    _aten.lstm.input: lstm,
    _aten.gru.input: gru,
    _aten.rnn_tanh.input: rnn_tanh,
    _aten.rnn_relu.input: rnn_relu,
}


def becomes_loop(node: Node) -> bool:
    """Whether `node` is a call of a recurrent layer that to_edge makes a loop."""
    if node.op != "call_function" or node.target not in _LOOPS:
        return False
    given: Any = node.args
    return _is_long(given[0].meta["val"], batch_first=given[-1])


def decompositions() -> dict[OpOverload, Callable[..., Any]]:
    """Recurrent operators -> their decomposition: loops, or all steps if these are few."""
    apart = get_decompositions(list(_LOOPS))
    return {op: _by_length(loop, apart[op]) for op, loop in _LOOPS.items()}


def _by_length(loop: Callable[..., Any], apart: Callable[..., Any]) -> Callable[..., Any]:
    def decompose(input: Tensor, *args: Any) -> Any:
        is_long = _is_long(input, batch_first=args[-1])
        return loop(input, *args) if is_long else apart(input, *args)

    return decompose


def _is_long(input: Tensor, batch_first: bool) -> bool:
    steps = input.shape[1 if batch_first else 0]
    return not isinstance(steps, int) or steps > MOST_STEPS_APART


# nn.Module calls them as torch._VF.lstm, which is torch.lstm.
_FUNCTIONS = {
    torch.lstm: lstm,
    torch.gru: gru,
    torch.rnn_tanh: rnn_tanh,
    torch.rnn_relu: rnn_relu,
}


class _Loops(TorchFunctionMode):
    def __torch_function__(  # type: ignore[no-untyped-def]
        self, func, types, args=(), kwargs=None
    ):
        loop = _FUNCTIONS.get(func)
        # A packed sequence comes with the sizes of its batches before the hidden state.
        is_padded = loop is not None and len(args) == 9 and isinstance(args[3], bool)
        if is_padded and _is_long(args[0], batch_first=args[8]):
            return loop(*args)
        return func(*args, **(kwargs or {}))


@contextmanager
def dynamic_steps() -> Iterator[None]:
    """Inside, `torch.export.export` takes recurrent layers whose number of steps is dynamic.

        with dynamic_steps():
            program = torch.export.export(model, (x,), dynamic_shapes={"x": {1: Dim("steps")}})

    They are captured as loops, which upstream's runtime runs as well. `executorch.export` does so
    by itself; torch.export alone says that the model specialized the dimension.
    """
    with _Loops():
        yield
