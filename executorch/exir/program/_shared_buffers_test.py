import copy

import pytest
import torch
from torch import nn

from executorch.exir import to_edge
from executorch.exir.error import ExportError
from executorch.runtime import Runtime


class Counter(nn.Module):
    def __init__(self, total):
        super().__init__()
        self.register_buffer("total", total)

    def forward(self, x):
        self.total.add_(x)
        return self.total * 2


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


def test_written_buffers_that_overlap_are_named():
    total = torch.zeros(2, 3)
    model = Model(Counter(total), Reader(total[0]))
    program = torch.export.export(model, (torch.ones(3),))
    with pytest.raises(ExportError, match="parts.0.total and parts.1.total are views of one"):
        to_edge(program)
