import copy

import pytest
import torch
from torch import nn

from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import to_edge, to_edge_transform_and_lower
from executorch.exir.error import ExportError
from executorch.runtime import Runtime


class Counter(nn.Module):
    def __init__(self, total):
        super().__init__()
        self.register_buffer("total", total)

    def forward(self, x):
        self.total.add_(x)
        return self.total * 2


class TrainedCounter(Counter):
    """Its state is a parameter, which the model writes itself."""

    def __init__(self, total):
        nn.Module.__init__(self)
        self.total = total if isinstance(total, nn.Parameter) else nn.Parameter(total)
        self.total.requires_grad_(False)


class Reader(Counter):
    def forward(self, x):
        return self.total * x


class Model(nn.Module):
    def __init__(self, *modules):
        super().__init__()
        self.parts = nn.ModuleList(modules)

    def forward(self, x):
        return [part(x) for part in self.parts]


def check(*parts):
    """The program and the model say the same in three calls, one after the other."""
    model = Model(*parts)
    program = torch.export.export(model, (torch.ones(3),))
    text = str(program.graph)
    edge = to_edge(program)
    assert str(program.graph) == text
    method = Runtime.get().load_program(edge.to_executorch().buffer).load_method("forward")
    eager = copy.deepcopy(model)
    for n in range(1, 4):
        x = torch.full((3,), float(n))
        for got, want in zip(method.execute([x]), eager(x), strict=True):
            torch.testing.assert_close(got, want)
    return sorted(edge.exported_program().graph_signature.buffers_to_mutate.values())


def test_a_buffer_that_two_modules_write_is_one_buffer():
    total = torch.zeros(3)
    assert check(Counter(total), Counter(total)) == ["parts.0.total"]


def test_readers_see_what_other_modules_wrote():
    total = torch.ones(3)
    check(Reader(total), Counter(total), Reader(total))


def test_a_module_of_two_names_has_one_state():
    counter = Counter(torch.zeros(3))
    check(counter, counter)


def test_equal_buffers_stay_two():
    written = check(Counter(torch.zeros(3)), Counter(torch.zeros(3)))
    assert written == ["parts.0.total", "parts.1.total"]


def test_a_parameter_that_the_model_writes_is_state():
    assert check(TrainedCounter(torch.zeros(3))) == ["parts.0.total"]
    tied = nn.Parameter(torch.ones(3))
    assert check(TrainedCounter(tied), TrainedCounter(tied)) == ["parts.0.total"]


@pytest.mark.parametrize("lower", [False, True])
def test_a_written_parameter_beside_weights_stays_state_in_delegated_programs(lower):
    class Normed(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, 3)
            self.mean = nn.Parameter(torch.zeros(3), requires_grad=False)

        def forward(self, x):
            y = self.layer(x)
            self.mean.mul_(0.5).add_(y.mean(0))
            return y - self.mean

    model = Normed().eval()
    program = torch.export.export(model, (torch.ones(2, 3),))
    edge = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()] * lower)
    method = Runtime.get().load_program(edge.to_executorch().buffer).load_method("forward")
    eager = copy.deepcopy(model)
    for n in range(3):
        x = torch.full((2, 3), float(n))
        torch.testing.assert_close(method.execute([x])[0], eager(x))


def test_written_buffers_that_overlap_are_named():
    total = torch.zeros(2, 3)
    model = Model(Counter(total), Reader(total[0]))
    program = torch.export.export(model, (torch.ones(3),))
    with pytest.raises(ExportError, match="parts.0.total and parts.1.total are views of one"):
        to_edge(program)
